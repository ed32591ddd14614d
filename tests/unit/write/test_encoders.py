from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import LabelBinarizer, LabelEncoder, OneHotEncoder, StandardScaler

from datum._write import encoders as module
from datum._write.encoders import apply_encoders, fit_encoders, make_encoders
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError, SourceError
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
    with pytest.raises(SchemaError, match="expected encoders by the names of features"):
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
