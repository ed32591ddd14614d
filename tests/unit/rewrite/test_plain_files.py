"""Records of any kind, written as plain TFRecord files."""

import pytest

import datum
from datum._rewrite.repair import write_files
from datum._rewrite.salvage import ExpectedFile, salvage_file
from datum.format import RecordFile, RecordWriter


def salvage(path, name):
    expected = ExpectedFile("train", path, name)
    return salvage_file(expected, None, deep=False, advance=lambda *_: None)


def make(path, *texts, compression=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    with RecordWriter(path, compression=compression) as writer:
        for text in texts:
            writer.write(text)
    return path


def test_files_keep_their_names_folders_and_compression(tmp_path):
    found = [
        salvage(make(tmp_path / "in/train/a", b"1", b"2"), "train/a"),
        salvage(make(tmp_path / "in/b.gz", b"3", compression="gzip"), "b.gz"),
        salvage(make(tmp_path / "in/empty"), "empty"),
        salvage(tmp_path / "in/gone", "gone"),
    ]
    write_files(found, tmp_path / "out", overwrite=False)
    files = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*"))
    assert files == ["b.gz", "train", "train/a"]
    assert (tmp_path / "out/train/a").read_bytes() == (tmp_path / "in/train/a").read_bytes()
    assert list(RecordFile(tmp_path / "out/b.gz")) == [b"3"]
    assert RecordFile(tmp_path / "out/b.gz").compression == "gzip"
    assert not list(tmp_path.glob(".*"))


def test_files_that_lay_elsewhere_are_told_apart(tmp_path):
    paths = [make(tmp_path / folder / "a.tfrecord", folder.encode()) for folder in ("x", "y")]
    found = [salvage(path, str(path)) for path in paths]
    found.append(salvage(paths[0], "../x/a.tfrecord"))
    write_files(found, tmp_path / "out", overwrite=False)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["1-a.tfrecord", "2-a.tfrecord", "a.tfrecord"]


def test_files_go_into_an_empty_folder_but_not_among_others(tmp_path):
    found = [salvage(make(tmp_path / "in/a", b"1"), "a")]
    (tmp_path / "out").mkdir()
    write_files(found, tmp_path / "out", overwrite=False)
    assert list(RecordFile(tmp_path / "out/a")) == [b"1"]
    with pytest.raises(datum.WriteError, match="expected an empty folder"):
        write_files(found, tmp_path / "out", overwrite=False)
