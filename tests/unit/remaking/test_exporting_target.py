"""Where exported files are made, and how they appear."""

import pytest

from datum import WriteError
from datum.remaking.exporting_target import open_target


def export(out, *names, format="jsonl", overwrite=False, text="new"):
    with open_target(out, format, list(names), overwrite=overwrite) as folder:
        for name in names:
            if format == "images":
                (folder / name).mkdir()
                (folder / name / "a.png").write_text(text)
            else:
                (folder / f"{name}.{format}").write_text(text)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_in_a_new_folder_and_nothing_else_does(tmp_path):
    export(tmp_path / "deep" / "out", "train", "val")
    assert names_in(tmp_path / "deep") == ["out"]
    assert names_in(tmp_path / "deep" / "out") == ["train.jsonl", "val.jsonl"]


def test_files_of_other_names_stay(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.md").write_text("mine")
    export(out, "train")
    export(out, "train", format="parquet")
    assert names_in(out) == ["notes.md", "train.jsonl", "train.parquet"]


def test_nothing_is_replaced_unasked(tmp_path):
    out = tmp_path / "out"
    export(out, "train")
    with pytest.raises(WriteError, match=r"train.jsonl: expected nothing.*\nhint: overwrite=True"):
        export(out, "train", text="newer")
    assert (out / "train.jsonl").read_text() == "new"
    export(out, "train", overwrite=True, text="newer")
    assert (out / "train.jsonl").read_text() == "newer"


def test_folders_are_replaced_as_a_whole(tmp_path):
    out = tmp_path / "out"
    export(out, "train", format="images")
    (out / "train" / "old.png").write_text("old")
    with pytest.raises(WriteError, match="expected nothing of that name"):
        export(out, "train", format="images")
    export(out, "train", format="images", overwrite=True)
    assert names_in(out / "train") == ["a.png"]


def test_a_dataset_is_never_written_into(tmp_path):
    (tmp_path / "datum.json").write_text("{}")
    with pytest.raises(WriteError, match="got a dataset of Datum"):
        export(tmp_path, "train", overwrite=True)


def test_a_file_is_one_split(tmp_path):
    export(tmp_path / "x.jsonl", "train")
    assert (tmp_path / "x.jsonl").read_text() == "new"
    with pytest.raises(WriteError, match="expected nothing of that name"):
        export(tmp_path / "x.jsonl", "train")
    with pytest.raises(WriteError, match=r"for 2 splits.*\nhint: give split='train'"):
        export(tmp_path / "y.jsonl", "train", "val")
    with pytest.raises(WriteError, match="expected a folder, got a file"):
        export(tmp_path / "x.jsonl", "train", format="parquet")
    (tmp_path / "z.jsonl").mkdir()
    with pytest.raises(WriteError, match="expected a file, got a folder"):
        export(tmp_path / "z.jsonl", "train", overwrite=True)


def test_an_error_leaves_nothing(tmp_path):
    with pytest.raises(WriteError, match="nothing was exported"):
        export(tmp_path / "out", "no/such/folder")
    assert names_in(tmp_path) == []


def test_what_was_made_meanwhile_stays(tmp_path):
    out = tmp_path / "out"
    with (
        pytest.raises(WriteError, match="train_label: expected nothing of that name"),
        open_target(out, "images", ["train"], overwrite=False) as folder,
    ):
        (folder / "train_label").mkdir(), (out / "train_label" / "mine").mkdir(parents=True)
    assert names_in(out / "train_label") == ["mine"]
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["val.csv", "val.jsonl.gz", "val.jsonl"])
def test_a_folder_is_not_named_like_another_kind_of_file(tmp_path, name):
    wanted = "expected a folder for parquet, got the name of another kind of file"
    with (
        pytest.raises(WriteError, match=wanted),
        open_target(tmp_path / name, "parquet", ["val"], overwrite=False),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
