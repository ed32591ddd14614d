import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import LabelBinarizer, LabelEncoder, OneHotEncoder, StandardScaler

from datum._write.estimators import SUPPORTED, wrap

TEXTS = ["the cat sat", "the dog", "a cat and a dog", ""]


def dense(found):
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


@pytest.mark.parametrize(
    "estimator",
    [
        CountVectorizer(),
        CountVectorizer(ngram_range=(1, 2), min_df=2),
        CountVectorizer(binary=True, dtype=np.int32),
        TfidfVectorizer(),
        TfidfVectorizer(use_idf=False),
        HashingVectorizer(n_features=16),
    ],
)
def test_texts_are_encoded_as_scikit_learn_does(estimator):
    found = wrap(clone(estimator))
    if not found.is_fitted:
        found.fit(iter(TEXTS))
    assert found.is_fitted
    expected = estimator.fit(TEXTS).transform(TEXTS)
    assert (dense(found.apply(TEXTS)) == expected.toarray()).all()
    assert found.size == expected.shape[1]


@pytest.mark.parametrize(
    "labels",
    [["b", "a", "c", "a"], ["yes", "no", "no"], ["only", "only"], [3, 1, 2], [True, False, True]],
)
@pytest.mark.parametrize(
    "estimator",
    [
        LabelBinarizer(),
        LabelBinarizer(neg_label=-1, pos_label=2),
        LabelBinarizer(sparse_output=True),
        LabelEncoder(),
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_labels_are_encoded_as_scikit_learn_does(estimator, labels):
    found = wrap(clone(estimator))
    found.fit(labels)
    expected = dense(estimator.fit(labels).transform(labels))
    assert dense(found.apply(labels)).tolist() == expected.tolist()
    assert found.size == (expected.shape[1] if expected.ndim == 2 else len(set(labels)))


@pytest.mark.parametrize(
    "rows",
    [
        [["red"], ["blue"], ["red"]],
        [[3], [1], [2]],
        [["a", 1], ["b", 2], ["a", 3]],
        [["a\0"], ["a"]],
        [[0.5], [1.5]],
    ],
)
@pytest.mark.parametrize(
    "estimator",
    [
        OneHotEncoder(),
        OneHotEncoder(sparse_output=False),
        OneHotEncoder(drop="first"),
        OneHotEncoder(max_categories=2),
    ],
)
def test_one_hot_rows_are_encoded_as_scikit_learn_does(estimator, rows):
    found = wrap(clone(estimator))
    found.fit(rows)
    table = np.array(rows, object)
    expected = dense(estimator.fit(table).transform(table))
    assert dense(found.apply(rows)).tolist() == expected.tolist()
    assert found.size == expected.shape[1]


def test_one_column_is_given_as_scalars_or_as_lists():
    found = wrap(OneHotEncoder())
    found.fit(["red", "blue"])
    assert dense(found.apply(["red", ["blue"], ("red",)])).tolist() == [[0, 1], [1, 0], [0, 1]]
    assert dense(found.apply([np.array(["red"]), np.str_("blue")])).tolist() == [[0, 1], [1, 0]]


def test_an_encoder_of_another_class_is_not_known():
    assert wrap(StandardScaler()) is None
    assert wrap("CountVectorizer") is None
    assert len(SUPPORTED) == 6


@pytest.mark.parametrize(
    ("estimator", "learned"),
    [
        (CountVectorizer(), "vocabulary_"),
        (LabelEncoder(), "classes_"),
        (OneHotEncoder(), "categories_"),
    ],
)
def test_the_encoder_that_was_given_learns_nothing(estimator, learned):
    wrap(estimator).fit(["cat", "dog"])
    assert not hasattr(estimator, learned)


def test_an_encoder_that_is_fitted_is_taken_as_it_is():
    estimator = LabelEncoder().fit(["x", "y"])
    found = wrap(estimator)
    assert found.is_fitted
    assert found.fitted is estimator


@pytest.mark.parametrize(
    "table",
    [
        np.array([[1], [2]]),
        np.array([[1], [2]], object),
        np.array([[1], [2]], np.float32),
        np.array([["a"], ["b"]]),
        np.array([["a"], ["b"]], object),
    ],
)
def test_a_one_hot_encoder_may_have_been_fitted_on_arrays_of_any_type(table):
    found = wrap(OneHotEncoder().fit(table))
    assert found.find_fault(table[1].tolist()) is None
    assert dense(found.apply(table.tolist())).tolist() == [[1, 0], [0, 1]]


def test_what_is_told_beforehand_needs_no_data():
    words = wrap(CountVectorizer(vocabulary=["cat", "dog"]))
    assert words.is_fitted
    assert dense(words.apply(["dog dog"])).tolist() == [[0, 2]]
    colours = wrap(OneHotEncoder(categories=[["red", "blue"]]))
    assert colours.is_fitted
    assert dense(colours.apply(["blue"])).tolist() == [[0, 1]]


def test_weights_need_data_even_for_a_given_vocabulary():
    found = wrap(TfidfVectorizer(vocabulary=["cat", "dog"]))
    assert not found.is_fitted
    found.fit(["a cat", "a dog", "no"])
    assert found.is_fitted


def test_texts_have_faults():
    found = wrap(CountVectorizer())
    assert found.find_fault("text") is None
    assert found.find_fault(b"bytes") is None
    assert found.find_fault(b"\xff") == (
        "expected text that is utf-8, got 'utf-8' codec can't decode byte 0xff in position 0:"
        " invalid start byte"
    )
    assert found.find_fault(3) == "expected text, got int"
    assert wrap(CountVectorizer(analyzer=lambda words: words)).find_fault(["a", "b"]) is None


def test_what_has_a_fault_is_not_learned_from():
    words = wrap(CountVectorizer())
    words.fit(["cat", 3, b"\xff", "dog"])
    assert words.facts() == {"vocabulary": {"cat": 0, "dog": 1}}
    labels = wrap(LabelEncoder())
    labels.fit(["b", ["a"], float("nan"), "a"])
    assert labels.facts()["classes"] == ["a", "b"]
    colours = wrap(OneHotEncoder())
    colours.fit(["b", [{}], "a"])
    assert colours.facts() == {"categories": [["a", "b"]]}


@pytest.mark.parametrize("estimator", [LabelBinarizer(), LabelEncoder()])
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_labels_have_faults(estimator):
    found = wrap(estimator)
    found.fit(["a", "b"])
    assert found.find_fault("a") is None
    assert found.find_fault(np.str_("a")) is None
    assert found.find_fault(b"a") is None
    assert found.find_fault("z") == "expected one of 2 classes, got 'z'"
    assert found.find_fault("z" * 100).endswith("...")
    assert found.find_fault(["a"]) == "expected a text or a number, got ['a']"
    assert found.find_fault(b"\xff") == "expected a text or a number, got b'\\xff'"
    assert found.find_fault(float("nan")) == "expected a text or a number, got nan"


def test_one_hot_values_have_faults():
    found = wrap(OneHotEncoder())
    found.fit([["a", 1], ["b", 2]])
    assert found.find_fault(["a", 2]) is None
    assert found.find_fault(["a"]) == "expected 2 values, got 1"
    assert found.find_fault(["a", 3]) == "expected one of 2 categories, got 3"
    assert found.find_fault(["a", None]) == "expected a text or a number, got None"
    lenient = wrap(OneHotEncoder(handle_unknown="ignore"))
    lenient.fit(["a", "b"])
    assert lenient.find_fault("z") is None
    assert dense(lenient.apply(["z"])).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("estimator", "values"),
    [
        (LabelEncoder(), []),
        (OneHotEncoder(), []),
        (LabelEncoder(), ["a", 1]),
        (OneHotEncoder(), [["a"], ["a", "b"]]),
        (CountVectorizer(), ["", "..."]),
    ],
)
def test_values_that_cannot_be_learned_from_are_refused(estimator, values):
    with pytest.raises((TypeError, ValueError)):
        wrap(estimator).fit(values)


def test_the_facts_are_in_the_order_of_their_numbers():
    words = wrap(TfidfVectorizer())
    words.fit(["b a b", "a c", "aa bb"])
    assert list(words.facts()["vocabulary"].items()) == [("aa", 0), ("bb", 1)]
    assert len(words.facts()["idf"]) == 2
    assert "idf" not in wrap(TfidfVectorizer(use_idf=False).fit(TEXTS)).facts()
    assert wrap(HashingVectorizer()).facts() == {}


def test_only_numbers_that_stand_for_names_have_class_names():
    named = wrap(LabelEncoder().fit(["b", "a"])).facts()
    assert named == {"classes": ["a", "b"], "class_names": ["a", "b"]}
    assert wrap(LabelEncoder().fit([5, 7])).facts() == {"classes": [5, 7]}
    assert wrap(LabelBinarizer().fit(["a", "b", "a", "b"])).facts() == {"classes": ["a", "b"]}
