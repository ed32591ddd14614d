import json

import pytest

from datum.errors import SourceError
from datum.sources import JsonText, Source


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def read(part):
    """All rows, keys and rejects of a part."""
    blocks = list(part.blocks())
    keys = None if blocks and blocks[0].keys is None else [k for b in blocks for k in b.keys]
    rows = [row for block in blocks for row in block.data]
    return rows, keys, [reject for block in blocks for reject in block.rejects]


PAPER = {
    "7": {"text": "good", "label": {"polarity": 1, "topic": "film"}},
    "8": {"text": "bad", "label": {"polarity": 0, "topic": "book"}},
}


def test_the_papers_layout_gives_texts_and_labels(tmp_path):
    write(tmp_path / "train.json", PAPER)
    write(tmp_path / "train_2.json", {"9": {"text": "so so", "label": {"polarity": 1}}})
    write(tmp_path / "val.json", {"1": {"text": "fine", "source": "web"}})
    source = JsonText(tmp_path)
    assert isinstance(source, Source)
    parts = source.parts()
    assert list(parts) == ["train", "val"]
    rows, keys, rejects = read(parts["train"])
    assert rows == [
        {"text": "good", "polarity": 1, "topic": "film"},
        {"text": "bad", "polarity": 0, "topic": "book"},
        {"text": "so so", "polarity": 1},
    ]
    assert keys == ["7", "8", "9"]
    assert rejects == []
    assert read(parts["val"])[0] == [{"text": "fine", "source": "web"}]


def test_a_label_that_is_no_object_is_a_feature(tmp_path):
    path = write(tmp_path / "train.json", {"1": {"text": "x", "label": 3}})
    assert read(JsonText(path).parts()["train"])[0] == [{"text": "x", "label": 3}]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (5, "expected an object with a text, got 5"),
        ({"label": {}}, "expected an object with a text"),
        ({"text": 5}, "expected an object with a text"),
        ({"text": "x", "label": {"text": 1}}, "expected labels of names of their own, got 'text'"),
    ],
)
def test_records_of_another_shape_are_rejected_by_their_ids(tmp_path, record, reason):
    path = write(tmp_path / "train.json", {"a": {"text": "x"}, "b": record, "c": {"text": "y"}})
    rows, keys, rejects = read(JsonText(path).parts()["train"])
    assert rows == [{"text": "x"}, {"text": "y"}]
    assert keys == ["a", "c"]
    assert [(reject.record, reject.key) for reject in rejects] == [(1, "b")]
    assert reason in rejects[0].reason


def test_lists_by_split_give_a_split_each(tmp_path):
    data = {"train": [["hi", "greet"], {"text": "yo", "n": 1}], "test": ["alone"], "none": []}
    parts = JsonText(write(tmp_path / "data.json", data)).parts()
    assert list(parts) == ["train", "test", "none"]
    rows, keys, _ = read(parts["train"])
    assert rows == [{"text": "hi", "label": "greet"}, {"text": "yo", "n": 1}]
    assert keys is None
    assert read(parts["test"])[0] == [{"text": "alone"}]
    assert read(parts["none"])[0] == []


def test_items_of_another_shape_are_rejected(tmp_path):
    data = {"train": [["a", "b", "c"], 5, [], [1, 2], None, ["ok", "x"]]}
    rows, _, rejects = read(JsonText(write(tmp_path / "data.json", data)).parts()["train"])
    assert rows == [{"text": "ok", "label": "x"}]
    assert [reject.record for reject in rejects] == [0, 1, 2, 3, 4]


def test_a_list_of_objects_is_a_split(tmp_path):
    rows = [{"text": "a", "n": {"m": 1}}, {"text": "b"}]
    parts = JsonText(write(tmp_path / "test.json", rows)).parts()
    assert list(parts) == ["test"]
    assert read(parts["test"])[0] == rows


def test_splits_can_be_chosen(tmp_path):
    for name in ("train", "trainlong", "extra"):
        write(tmp_path / f"{name}_1.json", {name: {"text": name}})
    parts = JsonText(tmp_path, splits=["extra", "train", "trainlong"]).parts()
    assert {name: read(part)[1] for name, part in parts.items()} == {
        "extra": ["extra"],
        "train": ["train"],
        "trainlong": ["trainlong"],
    }
    with pytest.raises(SourceError, match=r"expected a file val\*.json, got extra_1.json"):
        JsonText(tmp_path, splits=["val"]).parts()
    path = write(tmp_path / "lists.json", {"a": [], "b": []})
    assert list(JsonText(path, splits=["b"]).parts()) == ["b"]
    with pytest.raises(SourceError, match="expected a list 'c', got a, b"):
        JsonText(path, splits=["c"]).parts()


def test_a_folder_must_tell_its_splits(tmp_path):
    with pytest.raises(SourceError, match=r"expected a file train\*.json, got no file"):
        JsonText(tmp_path).parts()
    write(tmp_path / "reviews.json", PAPER)
    assert list(JsonText(tmp_path).parts()) == ["train"]
    write(tmp_path / "more.json", PAPER)
    with pytest.raises(SourceError, match=r"expected a file train\*.json, got more.json, reviews"):
        JsonText(tmp_path).parts()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": [1], "b": 2}',
        '{"a": [NaN]}',
        '{"a": [' + "[" * 100_000,
        '{"a": [], "a": []}',
        '{"a": []} x',
    ],
)
def test_what_is_no_json_is_an_error_with_its_line(tmp_path, text):
    path = write(tmp_path / "train.json", text)
    with pytest.raises(SourceError, match=r"train.json: line 1: expected JSON"):
        [read(part) for part in JsonText(path).parts().values()]


def test_nan_can_be_allowed(tmp_path):
    path = write(tmp_path / "a.json", '[{"x": NaN}]')
    (row,) = read(JsonText(path, allow_nan=True).parts()["train"])[0]
    assert row["x"] != row["x"]


def test_the_fingerprint_changes_with_the_file(tmp_path):
    path = write(tmp_path / "train.json", PAPER)
    first = JsonText(path).parts()["train"].fingerprint
    write(path, {"7": {"text": "another"}})
    assert JsonText(path).parts()["train"].fingerprint != first


def test_real_intents_are_read(shared_data):
    path = shared_data / "clinc_oos" / "data_full.json"
    expected = json.loads(path.read_text())
    parts = JsonText(path).parts()
    assert list(parts) == list(expected)
    for name, part in parts.items():
        rows, _, rejects = read(part)
        assert rejects == []
        assert [[row["text"], row["label"]] for row in rows] == expected[name]
