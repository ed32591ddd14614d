"""Encoders of features: how they are recognised, applied and rebuilt."""

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import LabelBinarizer, LabelEncoder, OneHotEncoder, StandardScaler

import datum
from datum._write import encoders as module
from datum._write.encoders import (
    FeatureEncoder,
    apply_encoders,
    fit_encoders,
    make_encoders,
    rebuild_encoder,
)
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import ManifestError, MissingDependencyError, SchemaError, SourceError
from datum.schema import Feature
from datum.sources import Block, PartInfo, Reject

ROWS = [
    {"text": "a big cat", "label": "cat", "n": 1},
    {"text": "a big dog", "label": "dog", "n": 2},
    {"text": "nothing", "label": "cat", "n": 3},
]


@dataclass
class Streamed(PartInfo):
    made: list
    schema: None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    is_repeatable: bool = True
    times_read: int = 0

    def blocks(self):
        self.times_read += 1
        yield from self.made


@dataclass
class Indexed:
    rows: list
    schema: None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    keys: None = None
    stored_bytes: None = None
    is_slow_python: bool = False
    sizes: list = field(default_factory=list)

    def __len__(self):
        return len(self.rows)

    def read(self, numbers):
        self.sizes.append(len(numbers))
        return Block([self.rows[n] for n in numbers], numbers)


def rows_block(rows, **kwargs):
    return Block(rows, np.arange(len(rows)) + 10, **kwargs)


def fit(mapping, rows=ROWS):
    encoders = make_encoders(mapping)
    fit_encoders(encoders, {"train": Streamed([rows_block(rows)])})
    return encoders


def test_encoders_are_made_by_feature():
    encoders = make_encoders({"text": CountVectorizer(), "label": LabelEncoder()})
    assert list(encoders) == ["text", "label"]
    assert encoders["text"].name == "text"
    assert make_encoders({}) == {}


def test_what_is_no_encoder_of_a_feature_is_refused():
    with pytest.raises(SchemaError, match="encoder of 'n': expected one of .*got StandardScaler"):
        make_encoders({"n": StandardScaler()})
    with pytest.raises(SchemaError, match="expected a dict of encoders by feature"):
        make_encoders([CountVectorizer()])


def test_rows_come_back_with_encoded_values():
    encoders = fit({"text": CountVectorizer(), "label": LabelBinarizer()})
    given = rows_block(ROWS, keys=["x", "y", "z"])
    block = apply_encoders(given, encoders)
    assert [row["n"] for row in block.data] == [1, 2, 3]
    assert list(block.data[0]) == ["text", "label", "n"]
    assert [row["label"].tolist() for row in block.data] == [[0], [1], [0]]
    first = block.data[0]["text"]
    assert isinstance(first, Sparse)
    assert first.dense_shape == (4,)
    assert first.to_list() == [1, 1, 0, 0]
    assert block.data[2]["text"].to_list() == [0, 0, 0, 1]
    assert block.keys == ["x", "y", "z"]
    assert block.numbers.tolist() == [10, 11, 12]
    assert ROWS[0]["label"] == "cat"


def test_a_label_becomes_a_plain_number_in_a_row():
    block = apply_encoders(rows_block(ROWS), fit({"label": LabelEncoder()}))
    assert [row["label"] for row in block.data] == [0, 1, 0]
    assert type(block.data[0]["label"]) is int


@pytest.mark.parametrize(
    "texts",
    [
        ["a big cat", "a big dog", "nothing"],
        np.array(["a big cat", "a big dog", "nothing"]),
        BytesColumn.from_values(["a big cat", "a big dog", "nothing"]),
        BytesColumn.from_values([b"a big cat", b"a big dog", b"nothing"]),
    ],
)
def test_columns_come_back_with_an_encoded_column(texts):
    encoders = fit({"text": CountVectorizer()})
    block = apply_encoders(Block({"n": np.arange(3), "text": texts}, np.arange(3)), encoders)
    assert isinstance(block.data["text"], Sparse)
    assert block.data["text"].to_list() == [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]]
    assert block.data["n"].tolist() == [0, 1, 2]


def test_numbers_in_arrays_are_labels_too():
    encoders = fit({"label": LabelEncoder()}, [{"label": 3}, {"label": 7}])
    block = apply_encoders(Block({"label": np.array([7, 3], np.int32)}, np.arange(2)), encoders)
    assert block.data["label"].tolist() == [1, 0]


def test_several_columns_are_given_as_lists_or_as_one_array():
    rows = [{"x": ["a", "u"]}, {"x": ["b", "u"]}]
    encoders = fit({"x": OneHotEncoder(sparse_output=False)}, rows)
    block = apply_encoders(Block({"x": np.array([["b", "u"]])}, np.arange(1)), encoders)
    assert block.data["x"].tolist() == [[0, 1, 1]]


def test_what_is_absent_stays_absent_in_rows():
    encoders = fit({"text": CountVectorizer(), "label": LabelEncoder()})
    rows = [{"text": None, "label": "dog"}, {"text": "cat"}, {}]
    block = apply_encoders(rows_block(rows), encoders)
    assert block.data[0]["text"] is None
    assert block.data[0]["label"] == 1
    assert "label" not in block.data[1]
    assert block.data[2] == {}
    assert not block.rejects


def test_what_is_absent_stays_absent_in_columns():
    encoders = fit({"text": CountVectorizer(), "label": LabelEncoder()})
    texts = Masked(BytesColumn.from_values(["", "big dog"]), np.array([False, True]))
    block = apply_encoders(Block({"text": texts}, np.arange(2)), encoders)
    found = block.data["text"]
    assert isinstance(found, Masked)
    assert found.present.tolist() == [False, True]
    assert found.values.to_list() == [[0] * 4, [1, 0, 1, 0]]
    assert "label" not in block.data
    dense = apply_encoders(Block({"label": ["dog", None]}, np.arange(2)), encoders).data["label"]
    assert dense.to_list() == [1, None]


def test_a_column_without_any_value_still_becomes_one_of_the_encoders_type():
    encoders = fit({"text": CountVectorizer(), "label": LabelEncoder()})
    absent = Masked(BytesColumn.from_values(["", ""]), np.array([False, False]))
    block = apply_encoders(Block({"text": absent, "label": [None, None]}, np.arange(2)), encoders)
    assert isinstance(block.data["text"].values, Sparse)
    assert block.data["text"].values.dense_shape == (2, 4)
    assert block.data["label"].values.dtype == np.int64
    assert block.data["label"].to_list() == [None, None]


def test_a_record_that_is_refused_leaves_the_others_as_they_are():
    encoders = fit({"label": LabelEncoder(), "text": CountVectorizer()})
    rows = [*ROWS, {"text": "cat", "label": "bird", "n": 4}, {"text": 5, "label": "dog", "n": 5}]
    earlier = Reject(12, "lost", "file", "damaged")
    given = Block(rows, np.array([10, 11, 13, 14, 15]), list("abcde"), [earlier])
    block = apply_encoders(given, encoders)
    assert [row["n"] for row in block.data] == [1, 2, 3]
    assert block.numbers.tolist() == [10, 11, 13]
    assert block.keys == ["a", "b", "c"]
    assert [str(reject) for reject in block.rejects] == [
        "file: record 12 (lost): damaged",
        "record 14 (d): feature 'label': expected one of 2 classes, got 'bird'",
        "record 15 (e): feature 'text': expected text, got int",
    ]


def test_a_record_that_is_refused_is_taken_out_of_every_kind_of_column():
    encoders = fit({"label": LabelEncoder()})
    columns = {
        "label": ["cat", "bird", "dog"],
        "array": np.arange(6).reshape(3, 2),
        "list": ["x", "y", "z"],
        "text": BytesColumn.from_values(["a", "b", "c"]),
        "ragged": Ragged(np.arange(4), np.array([0, 1, 3, 4])),
        "nested": Ragged.from_rows([[[1], [2, 3]], [[4]], [[], [5]]], levels=2),
        "sparse": Sparse(np.array([[0, 1], [1, 1], [2, 0]]), np.array([5, 6, 7]), (3, 2)),
        "masked": Masked(np.arange(3), np.array([True, True, False])),
    }
    block = apply_encoders(Block(columns, np.arange(3)), encoders)
    assert len(block) == 2
    found = block.data
    assert isinstance(found["label"], np.ndarray)  # nothing that is left is absent
    assert found["label"].tolist() == [0, 1]
    assert found["array"].tolist() == [[0, 1], [4, 5]]
    assert found["list"] == ["x", "z"]
    assert found["text"].to_list() == ["a", "c"]
    assert found["ragged"].to_list() == [[0], [3]]
    assert [[row.tolist() for row in rows] for rows in found["nested"]] == [
        [[1], [2, 3]],
        [[], [5]],
    ]
    assert found["sparse"].to_list() == [[0, 5], [7, 0]]
    assert found["masked"].to_list() == [0, None]
    assert [reject.record for reject in block.rejects] == [1]


def test_all_records_may_be_refused():
    encoders = fit({"label": LabelEncoder(), "text": CountVectorizer()})
    block = apply_encoders(rows_block([{"label": "bird"}]), encoders)
    assert (len(block), len(block.rejects)) == (0, 1)
    block = apply_encoders(Block({"text": np.array([1, 2])}, np.arange(2)), encoders)
    assert (len(block), len(block.rejects)) == (0, 2)
    assert block.data["text"].dense_shape == (0, 4)


def test_a_feature_within_a_dict_is_found_by_its_whole_name():
    rows = [{"n": 1, "meta": {"kind": "b", "x": 2}}, {"n": 2, "meta": {"kind": "a", "x": 3}}]
    encoders = fit({"meta/kind": LabelEncoder()}, rows)
    block = apply_encoders(rows_block(rows), encoders)
    assert block.data[0] == {"n": 1, "meta/kind": 1, "meta/x": 2}


def test_encoders_learn_from_the_split_train():
    parts = {
        "test": Streamed([rows_block([{"label": "t"}])]),
        "train": Streamed([rows_block([{"label": "b"}]), rows_block([{"label": "a"}])]),
    }
    encoders = make_encoders({"label": LabelEncoder()})
    fit_encoders(encoders, parts)
    assert encoders["label"].describe()["classes"] == ["a", "b"]
    assert parts["test"].times_read == 0


def test_encoders_learn_from_the_first_split_if_none_is_train():
    parts = {
        "x": Streamed([rows_block([{"label": "b"}])]),
        "y": Streamed([rows_block([{"label": "a"}])]),
    }
    encoders = make_encoders({"label": LabelEncoder()})
    fit_encoders(encoders, parts)
    assert encoders["label"].describe()["classes"] == ["b"]


def test_encoders_learn_from_indexed_parts_piece_by_piece(monkeypatch):
    monkeypatch.setattr(module, "FIT_RECORDS", 2)
    part = Indexed(ROWS)
    encoders = make_encoders({"text": CountVectorizer()})
    fit_encoders(encoders, {"train": part})
    assert part.sizes == [2, 1]
    assert encoders["text"].describe()["vocabulary"] == {"big": 0, "cat": 1, "dog": 2, "nothing": 3}


def test_encoders_learn_only_from_records_that_are_kept():
    encoders = make_encoders({"label": LabelEncoder()})
    part = Streamed([rows_block([{"label": name} for name in "abcd"])])
    fit_encoders(encoders, {"train": part}, keep=lambda block: block.numbers % 2 == 0)
    assert encoders["label"].describe()["classes"] == ["a", "c"]


def test_encoders_that_are_fitted_need_not_read_anything():
    encoders = make_encoders({"label": LabelEncoder().fit(["x"])})
    part = Streamed([rows_block(ROWS)], is_repeatable=False)
    fit_encoders(encoders, {"train": part})
    assert part.times_read == 0


def test_an_iterator_that_can_be_read_once_says_what_to_pass_instead():
    part = Streamed([rows_block(ROWS)], is_repeatable=False)
    with pytest.raises(
        SourceError, match="(?s)'train': expected .*encoders of label.*hint: pass a function"
    ):
        fit_encoders(make_encoders({"label": LabelEncoder()}), {"train": part})


def test_a_misspelt_feature_lists_those_that_there_are():
    with pytest.raises(SchemaError, match="encoder of 'lable': .*\nhint: did you mean 'label'"):
        fit({"lable": LabelEncoder()})
    with pytest.raises(SchemaError, match="encoder of 'q': .*\nhint: there are label, n, text"):
        fit({"q": LabelEncoder()})
    columns = Streamed([Block({"a": [1], "b": [2]}, np.arange(1))])
    with pytest.raises(SchemaError, match="hint: there are a, b"):
        fit_encoders(make_encoders({"q": LabelEncoder()}), {"train": columns})


def test_a_split_without_records_cannot_be_learned_from():
    with pytest.raises(SchemaError, match="hint: there are no records"):
        fit({"label": LabelEncoder()}, [])


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
        with pytest.raises(SchemaError, match="feature 'x': expected a fitted LabelEncoder"):
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


text = pytest.importorskip("sklearn.feature_extraction.text")
labels = pytest.importorskip("sklearn.preprocessing")

SENTENCES = ["a small red house", "a red car, a fast car", "Ein kleines Haus", "tall tree red"]
KINDS = ["house", "car", "house", "tree"]


def words_of(line):
    return line.split()


def write(path, values, encoder, **options):
    rows = [{"x": value, "n": n} for n, value in enumerate(values)]
    datum.write(rows, path, encoders={"x": encoder}, shuffle=False, progress=False, **options)
    return datum.load(path)


def dense(found):
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


@pytest.mark.parametrize(
    "encoder",
    [
        text.CountVectorizer(),
        text.CountVectorizer(ngram_range=(1, 2), binary=True, dtype=np.int32, stop_words=["a"]),
        text.CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), max_df=0.9, min_df=1),
        text.CountVectorizer(vocabulary=["red", "car"]),
        text.TfidfVectorizer(),
        text.TfidfVectorizer(use_idf=False, norm="l1", sublinear_tf=True),
        text.TfidfVectorizer(dtype=np.float32, smooth_idf=False),
        text.HashingVectorizer(n_features=32, alternate_sign=False),
    ],
    ids=str,
)
def test_a_vectorizer_comes_back(encoder, tmp_path):
    ds = write(tmp_path / "out", SENTENCES, encoder)
    found = ds.encoders["x"]
    expected = encoder if hasattr(encoder, "n_features") else encoder.fit(SENTENCES)
    asked = [*SENTENCES, "a house that is new"]
    np.testing.assert_array_equal(dense(found.transform(asked)), dense(expected.transform(asked)))
    assert type(found) is type(encoder)
    if not hasattr(encoder, "n_features"):
        names = expected.get_feature_names_out().tolist()
        assert found.get_feature_names_out().tolist() == names
        assert [sorted(row) for row in found.inverse_transform(found.transform(["red car"]))] == [
            sorted(row) for row in expected.inverse_transform(expected.transform(["red car"]))
        ]


@pytest.mark.parametrize(
    ("encoder", "values"),
    [
        (labels.LabelEncoder(), KINDS),
        (labels.LabelEncoder(), [7, 3, 7, -1]),
        (labels.LabelEncoder(), [0.5, 2.5, 0.5, 1.0]),
        (labels.LabelBinarizer(), KINDS),
        (labels.LabelBinarizer(neg_label=-1, pos_label=2), ["no", "yes", "no", "no"]),
        (labels.LabelBinarizer(sparse_output=True), KINDS),
    ],
    ids=str,
)
def test_an_encoder_of_labels_comes_back_and_tells_what_numbers_mean(encoder, values, tmp_path):
    found = write(tmp_path / "out", values, encoder).encoders["x"]
    expected = encoder.fit(values)
    numbers = found.transform(values)
    np.testing.assert_array_equal(dense(numbers), dense(expected.transform(values)))
    assert list(found.inverse_transform(numbers)) == values
    assert found.get_params() == encoder.get_params()


@pytest.mark.parametrize(
    "encoder",
    [
        labels.OneHotEncoder(),
        labels.OneHotEncoder(sparse_output=False, drop="first"),
        labels.OneHotEncoder(sparse_output=False, drop=["car"], dtype=np.float32),
        labels.OneHotEncoder(handle_unknown="ignore"),
        labels.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2),
        labels.OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=2),
    ],
    ids=str,
)
def test_a_one_hot_encoder_comes_back(encoder, tmp_path):
    found = write(tmp_path / "out", KINDS, encoder).encoders["x"]
    table = np.array(KINDS, object).reshape(-1, 1)
    expected = encoder.fit(table)
    np.testing.assert_array_equal(dense(found.transform(table)), dense(expected.transform(table)))
    assert (
        found.inverse_transform(found.transform(table)).tolist()
        == expected.inverse_transform(expected.transform(table)).tolist()
    )


def test_several_columns_with_rare_categories_come_back(tmp_path):
    rows = [["a", 1], ["a", 1], ["b", 2], ["a", 3], ["c", 1]]
    encoder = labels.OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist")
    found = write(tmp_path / "out", rows, encoder).encoders["x"]
    table = np.array(rows, object)
    np.testing.assert_array_equal(
        dense(found.transform(table)), dense(encoder.fit(table).transform(table))
    )


def test_encoders_are_a_mapping_that_makes_each_when_asked(tmp_path):
    encoders = write(tmp_path / "out", SENTENCES, text.CountVectorizer()).encoders
    assert list(encoders) == ["x"]
    assert "n" not in encoders
    assert repr(encoders) == "Encoders({'x': CountVectorizer})"
    assert encoders["x"] is encoders["x"]
    with pytest.raises(KeyError):
        encoders["n"]


def test_an_append_applies_the_stored_encoder(tmp_path):
    write(tmp_path / "out", SENTENCES, text.TfidfVectorizer())
    before = datum.load(tmp_path / "out").metadata
    added = [{"x": "red red unknown", "n": 9}, {"x": None, "n": 10}]
    for encoders in (None, {"x": text.TfidfVectorizer()}):
        datum.write(
            added, tmp_path / "out", append=True, encoders=encoders, shuffle=False, progress=False
        )
    ds = datum.load(tmp_path / "out")
    assert ds.metadata == before
    expected = text.TfidfVectorizer().fit(SENTENCES).transform(["red red unknown"]).toarray()[0]
    for at in (4, 6):
        np.testing.assert_array_equal(ds["train"][at]["x"].to_dense(), expected.astype(np.float32))
        assert ds["train"][at + 1]["x"] is None


def test_an_append_learns_no_new_labels(tmp_path):
    write(tmp_path / "out", KINDS, labels.LabelEncoder())
    with pytest.raises(SourceError, match="expected one of 3 classes, got 'boat'"):
        datum.write([{"x": "boat", "n": 1}], tmp_path / "out", append=True, progress=False)
    encoders = {"x": labels.LabelBinarizer()}
    with pytest.raises(SchemaError, match="expected a LabelEncoder, as in the dataset"):
        datum.write([{"x": "car", "n": 1}], tmp_path / "out", append=True, encoders=encoders)


def test_what_is_encoded_already_is_appended_as_it_is(tmp_path):
    ds = write(tmp_path / "out", KINDS, labels.LabelEncoder())
    write(tmp_path / "more", KINDS, labels.LabelEncoder())
    datum.write(datum.load(tmp_path / "more"), tmp_path / "out", append=True, progress=False)
    codes = [{"x": 2, "n": 5}]
    datum.write(codes, tmp_path / "out", append=True, encoders={"x": None}, progress=False)
    ds = datum.load(tmp_path / "out")
    assert sorted(int(row["x"]) for row in ds["train"]) == [0, 0, 1, 1, 1, 1, 2, 2, 2]


def test_functions_are_not_stored_but_may_be_given_again(tmp_path):
    encoder = text.CountVectorizer(tokenizer=words_of, token_pattern=None)
    ds = write(tmp_path / "out", SENTENCES, encoder)
    assert ds.metadata["x"]["unstored_parameters"] == ["tokenizer"]
    with pytest.raises(SchemaError, match="got objects as tokenizer of CountVectorizer") as raised:
        ds.encoders["x"]
    assert "encoders={'x': CountVectorizer(tokenizer=...)}" in str(raised.value)
    added = [{"x": "red, car", "n": 1}]
    with pytest.raises(SchemaError, match="to append, pass a CountVectorizer"):
        datum.write(added, tmp_path / "out", append=True, progress=False)
    datum.write(added, tmp_path / "out", append=True, encoders={"x": encoder}, progress=False)
    assert datum.load(tmp_path / "out")["train"][4]["x"].values.tolist() == [1]


@pytest.mark.parametrize(
    "found",
    [
        {"encoder": "CountVectorizer", "parameters": {}},
        {"encoder": "CountVectorizer", "parameters": {"colour": 1}, "vocabulary": {"a": 0}},
        {"encoder": "LabelEncoder", "parameters": {}, "classes": 3},
        {"encoder": "OneHotEncoder", "parameters": {}, "categories": [[]]},
    ],
)
def test_metadata_that_does_not_describe_an_encoder_is_refused(found):
    with pytest.raises(ManifestError, match=f"expected the description of a {found['encoder']}"):
        rebuild_encoder("x", found)


def test_an_encoder_of_another_class_is_never_made():
    with pytest.raises(SchemaError, match="expected one of CountVectorizer, .*, got Pipeline"):
        rebuild_encoder("x", {"encoder": "Pipeline"})


def test_without_scikit_learn_the_error_says_what_to_install(tmp_path):
    write(tmp_path / "out", KINDS, labels.LabelEncoder())
    code = (
        "import sys; sys.modules['sklearn'] = None; import datum\n"
        f"ds = datum.load({str(tmp_path / 'out')!r}); assert list(ds.encoders) == ['x']\n"
        "try:\n    ds.encoders['x']\n"
        "except datum.MissingDependencyError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "hint: pip install scikit-learn"
    assert issubclass(MissingDependencyError, ImportError)


def test_nothing_is_pickled(tmp_path):
    ds = write(tmp_path / "out", SENTENCES, text.TfidfVectorizer())
    stored = json.loads((tmp_path / "out" / "datum.json").read_text())
    assert stored["metadata"]["x"]["idf"] == ds.encoders["x"].idf_.tolist()
