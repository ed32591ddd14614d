import json
import pickle

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import LabelBinarizer, LabelEncoder, OneHotEncoder

from datum._write.encoders import FeatureEncoder
from datum.columns import Sparse
from datum.errors import SchemaError
from datum.schema import Feature

TEXTS = ["the cat sat on the cat", "the dog", None, ""]


def fitted(estimator, values):
    encoder = FeatureEncoder("x", estimator)
    encoder.fit(values)
    return encoder


def test_words_are_counted_into_sparse_rows():
    encoder = FeatureEncoder("text", CountVectorizer())
    assert not encoder.is_fitted
    encoder.fit(TEXTS)
    assert encoder.is_fitted
    column = encoder.transform(["cat cat the", "", "unheard"])
    assert isinstance(column, Sparse)
    assert column.values.dtype == np.int64
    assert column.dense_shape == (3, 5)
    assert column.to_list() == [[2, 0, 0, 0, 1], [0] * 5, [0] * 5]
    assert encoder.feature == Feature("int64", (5,), encoding="sparse")


def test_indices_rise_within_a_row():
    encoder = fitted(CountVectorizer(), ["zebra apple mango"])
    assert encoder.transform(["zebra apple mango"]).indices.tolist() == [[0, 0], [0, 1], [0, 2]]


def test_weights_come_as_the_estimator_gives_them():
    encoder = fitted(TfidfVectorizer(), TEXTS)
    column = encoder.transform(["the cat"])
    assert encoder.feature == Feature("float64", (5,), encoding="sparse")
    assert column.values.dtype == np.float64
    exact = TfidfVectorizer().fit([t for t in TEXTS if t is not None]).transform(["the cat"])
    assert (column.to_dense() == exact.toarray()).all()


@pytest.mark.parametrize(
    ("estimator", "values", "expected"),
    [
        (LabelEncoder(), ["a", "b"], Feature("int64")),
        (LabelBinarizer(), ["a", "b"], Feature("int64", (1,))),
        (LabelBinarizer(), ["a", "b", "c"], Feature("int64", (3,))),
        (
            LabelBinarizer(sparse_output=True),
            ["a", "b", "c"],
            Feature("int64", (3,), encoding="sparse"),
        ),
        (OneHotEncoder(), ["a", "b"], Feature("float64", (2,), encoding="sparse")),
        (OneHotEncoder(sparse_output=False), ["a", "b"], Feature("float64", (2,))),
        (OneHotEncoder(sparse_output=False, dtype=np.uint8), ["a", "b"], Feature("uint8", (2,))),
        (
            CountVectorizer(dtype=np.int32),
            ["aa", "bb"],
            Feature("int32", (2,), encoding="sparse"),
        ),
        (
            HashingVectorizer(n_features=8),
            ["aa"],
            Feature("float64", (8,), encoding="sparse"),
        ),
    ],
)
def test_the_feature_is_what_transform_gives(estimator, values, expected):
    encoder = FeatureEncoder("x", estimator)
    if not encoder.is_fitted:
        encoder.fit(values)
    assert encoder.feature == expected
    for some in (values, values[:1], []):
        column = encoder.transform(some)
        found = column.values if isinstance(column, Sparse) else column
        shape = column.dense_shape if isinstance(column, Sparse) else column.shape
        assert found.dtype.name == expected.dtype
        assert shape == (len(some), *expected.shape)
        assert isinstance(column, Sparse) == (expected.encoding == "sparse")


def test_a_wide_label_is_still_stored_as_a_list_of_numbers():
    encoder = fitted(LabelBinarizer(), [f"class {i}" for i in range(1000)])
    assert encoder.feature == Feature("int64", (1000,), encoding="values")


def test_a_value_that_is_refused_names_its_record():
    encoder = fitted(LabelEncoder(), ["a", "b"])
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected one of 2") as caught:
        encoder.transform(["a", "z"])
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_what_can_be_encoded_is_kept_apart_from_what_cannot():
    encoder = fitted(LabelEncoder(), ["a", "b"])
    column, kept, faults = encoder.transform_each(["b", "z", "a", 3])
    assert column.tolist() == [1, 0]
    assert kept == [0, 2]
    assert faults == {
        1: "expected one of 2 classes, got 'z'",
        3: "expected one of 2 classes, got 3",
    }


def split_words(text):
    if "bad" in text:
        raise RuntimeError("cannot split")
    return text.split()


def test_a_function_of_the_users_own_may_fail_for_a_value():
    encoder = fitted(CountVectorizer(tokenizer=split_words, token_pattern=None), ["a b", "b"])
    column, kept, faults = encoder.transform_each(["a", "bad", "b b"])
    assert column.to_list() == [[1, 0], [0, 2]]
    assert kept == [0, 2]
    assert faults == {1: "CountVectorizer: RuntimeError: cannot split"}


def test_the_description_is_plain_json_in_a_fixed_order():
    encoder = fitted(CountVectorizer(ngram_range=(1, 2), stop_words=["a", "b"]), TEXTS)
    described = encoder.describe()
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert list(described) == ["encoder", "size", "parameters", "vocabulary"]
    assert described["encoder"] == "CountVectorizer"
    assert described["size"] == len(described["vocabulary"])
    assert list(described["vocabulary"].values()) == list(range(described["size"]))
    parameters = described["parameters"]
    assert parameters["ngram_range"] == [1, 2]
    assert parameters["lowercase"] is True
    assert parameters["dtype"] == "int64"
    assert parameters["stop_words"] == ["a", "b"]
    assert "vocabulary" not in parameters
    again = fitted(CountVectorizer(ngram_range=(1, 2), stop_words=["a", "b"]), TEXTS)
    assert json.dumps(again.describe()) == json.dumps(described)


def test_the_description_of_weights_has_them():
    described = fitted(TfidfVectorizer(norm="l1"), TEXTS).describe()
    assert described["parameters"]["norm"] == "l1"
    assert len(described["idf"]) == described["size"]
    assert all(type(weight) is float for weight in described["idf"])


def test_the_description_of_labels_has_their_classes():
    described = fitted(LabelEncoder(), np.array([5, 7], np.int32)).describe()
    assert described["classes"] == [5, 7]
    assert type(described["classes"][0]) is int
    described = fitted(LabelBinarizer(), ["no", "yes"]).describe()
    assert (described["size"], described["classes"]) == (1, ["no", "yes"])
    described = fitted(OneHotEncoder(), [["a", 1], ["b", 1]]).describe()
    assert (described["size"], described["categories"]) == (3, [["a", "b"], [1]])


def test_what_json_cannot_hold_is_left_out_or_spelt():
    described = fitted(
        CountVectorizer(tokenizer=split_words, token_pattern=None), ["a b"]
    ).describe()
    assert "tokenizer" not in described["parameters"]
    encoder = LabelEncoder().fit([b"a", b"b"])
    assert FeatureEncoder("x", encoder).describe()["classes"] == ["b'a'", "b'b'"]
    encoder = LabelEncoder().fit([0.5, float("inf")])
    assert FeatureEncoder("x", encoder).describe()["classes"] == [0.5, "inf"]


@pytest.mark.parametrize(
    ("estimator", "values"),
    [
        (CountVectorizer(), ["aa bb"]),
        (TfidfVectorizer(), ["aa bb"]),
        (LabelBinarizer(), ["aa bb", "cc", "dd"]),
        (OneHotEncoder(), ["aa bb"]),
    ],
)
def test_an_encoder_can_be_sent_to_another_process(estimator, values):
    encoder = fitted(estimator, values)
    sent = pickle.loads(pickle.dumps(encoder))
    assert sent.describe() == encoder.describe()
    assert sent.feature == encoder.feature
    first, second = sent.transform(values), encoder.transform(values)
    assert repr(first) == repr(second)
    assert getattr(first, "values", first).tolist() == getattr(second, "values", second).tolist()


def test_another_encoder_is_refused_with_the_names_of_those_that_work():
    with pytest.raises(
        SchemaError, match="encoder of 'x': expected one of CountVectorizer, .*got PCA"
    ):
        FeatureEncoder("x", PCA())


def test_a_class_is_refused_with_the_call_that_fixes_it():
    with pytest.raises(
        SchemaError, match=r"got the class CountVectorizer\nhint: CountVectorizer\(\)"
    ):
        FeatureEncoder("x", CountVectorizer)


def test_texts_are_in_records_not_in_files():
    with pytest.raises(SchemaError, match="expected input='content'.*got input='filename'"):
        FeatureEncoder("x", CountVectorizer(input="filename"))


def test_an_encoder_that_is_not_fitted_says_so():
    encoder = FeatureEncoder("x", LabelEncoder())
    for use in (lambda: encoder.feature, encoder.describe, lambda: encoder.transform([])):
        with pytest.raises(
            SchemaError, match="feature 'x': expected a LabelEncoder that is fitted"
        ):
            use()


@pytest.mark.parametrize(
    ("estimator", "values", "reason"),
    [
        (CountVectorizer(), ["", "."], "empty vocabulary"),
        (LabelEncoder(), ["a", 1], "uniformly strings or numbers"),
        (LabelBinarizer(), [None], "expected labels, got none"),
    ],
)
def test_values_that_cannot_be_learned_from_name_the_feature(estimator, values, reason):
    with pytest.raises(
        SchemaError, match=f"feature 'x': {type(estimator).__name__} cannot.*{reason}"
    ):
        fitted(estimator, values)
