"""`datum.reader` and `datum.problem`."""

import pytest

from datum import problem
from datum.dataset import Dataset
from datum.errors import CorruptRecordError, ManifestError
from datum.problem import types
from datum.reader import load, verify
from datum.schema import Feature
from tests.unit.read.written import NUMBERED, write_numbered


def test_a_dataset_is_loaded_from_its_folder_or_its_manifest(tmp_path):
    written = write_numbered(
        tmp_path,
        metadata={"x": {"class_names": ["a"]}},
        statistics={"train": {"x": {"min": 0}}},
    )
    for path in (tmp_path, str(tmp_path), tmp_path / "datum.json"):
        dataset = load(path)
        assert isinstance(dataset, Dataset)
        assert dataset.path == tmp_path
        assert dataset.schema == NUMBERED
        assert dataset.splits == written.splits
        assert dataset.metadata == {"x": {"class_names": ["a"]}}
        assert dataset.statistics == {"train": {"x": {"min": 0}}}
        assert dataset.compression is None
        assert dataset["train"][0]["x"] == 0


def test_a_dataset_may_be_loaded_by_a_relative_path(tmp_path, monkeypatch):
    write_numbered(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in (".", "datum.json"):
        assert load(path)["val"][0]["x"] == 10


def test_shards_that_lost_their_manifest_are_plain_files(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    dataset = load(tmp_path)
    assert {name: split.records for name, split in dataset.splits.items()} == {
        "train": 10,
        "val": 3,
    }
    assert "tfrecord files" in repr(dataset)


def test_a_schema_says_what_to_read_of_plain_files(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    dataset = load(tmp_path, schema={"x": Feature("int32")})
    assert dataset["train"][3]["x"].dtype == "int32"


def test_a_list_of_files_is_read(tmp_path):
    write_numbered(tmp_path)
    files = sorted(tmp_path.glob("val*.tfrecord"))
    assert len(load(files)["val"]) == 3


def test_a_folder_with_nothing_to_read_is_told(tmp_path):
    with pytest.raises(ManifestError, match="hint"):
        load(tmp_path)


def test_damaged_files_open_with_what_is_sound_and_a_warning(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    path = tmp_path / "train-00002-of-00003.tfrecord"
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data[:-5])
    with pytest.raises(CorruptRecordError):
        load(tmp_path)
    with pytest.warns(UserWarning, match="damage in 2 places, left out") as caught:
        dataset = load(tmp_path, on_error="skip")
    assert caught[0].filename == __file__
    assert "record 1, bytes 52-104: payload checksum" in str(caught[0].message)
    assert [one.kind for one in dataset.damage] == ["payload checksum", "torn payload"]
    expected = [0, 1, 2, 3, 4, 6, 7, 8]
    assert len(dataset["train"]) == 8
    assert [int(row["x"]) for row in dataset["train"]] == expected
    assert [int(dataset["train"][n]["x"]) for n in range(8)] == expected
    for on_error in ("raise", "skip"):
        batches = dataset.to_numpy("train", batch_size=3, on_error=on_error)
        assert [int(x) for batch in batches for x in batch["x"]] == expected
    assert not dataset.verify().is_sound


def test_much_damage_is_told_in_short(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    for path in tmp_path.glob("train*.tfrecord"):
        data = bytearray(path.read_bytes())
        data[12::52] = b"?" * len(data[12::52])
        path.write_bytes(data)
    with pytest.warns(UserWarning, match="damage in 10 places") as caught:
        load(tmp_path, on_error="skip")
    assert "\n  and 5 places more\nhint: datum.repair" in str(caught[0].message)


def test_sound_files_open_without_a_warning(tmp_path):
    write_numbered(tmp_path)
    assert load(tmp_path, on_error="skip").damage == ()
    (tmp_path / "datum.json").unlink()
    assert load(tmp_path, on_error="skip").damage == ()


def test_another_on_error_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected `on_error` to be 'raise' or 'skip'"):
        load(tmp_path, on_error="ignore")


def test_damaged_files_get_no_manifest(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    path = tmp_path / "val-00000-of-00001.tfrecord"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(UserWarning, match="damage"):
        dataset = load(tmp_path, on_error="skip")
    with pytest.raises(CorruptRecordError):
        dataset.save_manifest()
    assert not (tmp_path / "datum.json").exists()


def test_what_cannot_be_loaded_can_be_verified(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").write_text("{}")
    with pytest.raises(ManifestError):
        load(tmp_path)
    report = verify(tmp_path)
    assert [problem.kind for problem in report.problems] == ["manifest"]
    assert report.records == 13


def test_the_four_problems_are_the_texts_of_the_older_library():
    assert problem.PROBLEMS == ("image_clf", "image_det", "image_seg", "text_clf")
    assert problem.IMAGE_CLF == "image_clf"
    assert problem.IMAGE_DET == "image_det"
    assert problem.IMAGE_SEG == "image_seg"
    assert problem.TEXT_CLF == "text_clf"


def test_the_problems_are_also_reached_through_types():
    assert {name.upper(): getattr(types, name.upper()) for name in problem.PROBLEMS} == {
        name.upper(): name for name in problem.PROBLEMS
    }
    assert problem.types.IMAGE_SEG is problem.IMAGE_SEG
