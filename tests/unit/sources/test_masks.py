"""Segmentation masks."""

import pickle

import numpy as np
import pytest

from datum import Feature
from datum.errors import SourceError
from datum.images import decode, prepare
from datum.sources import IndexedPart
from datum.sources.masks import MaskSplit, SegmentationMasks
from tests.unit.images.samples import palette, palette_image, pixels, save

MASK = Feature("uint8", (None, None, 1), encoding="image")
COLOURS = {(0, 0, 0): 0, (128, 0, 0): 1, (0, 128, 0): 2}


def make(root, *names, image_dir="JPEGImages", label_dir="SegmentationClass"):
    for name in names:
        save(root / image_dir / f"{name}.jpg", pixels(8, 6))
        save(root / label_dir / f"{name}.png", palette_image(pixels(8, 6, 1, most=20)))
    return root


def enlist(root, split, *lines, folder="."):
    path = root / folder / f"{split}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def read_all(part):
    return part.read(np.arange(len(part)))


def colour_mask(ids):
    return np.array(list(COLOURS), np.uint8)[ids]


def test_the_layout_of_the_paper_is_read(tmp_path):
    make(tmp_path, "a", "b", "c")
    enlist(tmp_path, "train", "b", "a")
    enlist(tmp_path, "val", "c")
    (tmp_path / "readme.txt").write_text("hello")
    parts = SegmentationMasks(tmp_path).parts()
    assert list(parts) == ["train", "val"]
    part = parts["train"]
    assert isinstance(part, IndexedPart)
    assert not part.is_slow_python
    assert list(part.schema) == ["image", "label", "filename"]
    assert part.schema["label"] == MASK
    assert read_all(part).data[0] == {
        "image": tmp_path / "JPEGImages/b.jpg",
        "label": tmp_path / "SegmentationClass/b.png",
        "filename": "b.jpg",
    }
    assert list(part.keys) == ["b", "a"]


def test_the_palette_is_kept_beside_the_ids(tmp_path):
    make(tmp_path, "a")
    part = SegmentationMasks(tmp_path).parts()["train"]
    colours = np.array(palette(), int).reshape(-1, 3).tolist()
    assert part.metadata == {"label": {"palette": colours}}
    save(tmp_path / "SegmentationClass/a.png", pixels(8, 6, 1))
    assert SegmentationMasks(tmp_path).parts()["train"].metadata == {}


def test_the_lists_of_voc_are_used_too(tmp_path):
    make(tmp_path, "a", "b")
    enlist(tmp_path, "train", "a", folder="ImageSets/Segmentation")
    enlist(tmp_path, "val", "b.jpg", folder="ImageSets/Segmentation")
    parts = SegmentationMasks(tmp_path).parts()
    assert read_all(parts["val"]).data[0]["label"].name == "b.png"


def test_without_lists_all_masks_are_one_split(tmp_path):
    make(tmp_path, "b", "a")
    save(tmp_path / "JPEGImages/extra.jpg", pixels(8, 6))
    part = SegmentationMasks(tmp_path).parts()["train"]
    assert list(part.keys) == ["a", "b"]
    assert part.skipped == ("extra.jpg",)


def test_every_option_of_a_split_is_used(tmp_path):
    make(tmp_path, "a", image_dir="photos", label_dir="masks")
    save(tmp_path / "photos/a.png", pixels(8, 6))
    save(tmp_path / "masks/a.tif", pixels(8, 6, 1), "TIFF")
    enlist(tmp_path, "all", "a", folder="lists")
    options = {"image_dir": "photos", "label_dir": "masks", "image_extension": ".png"}
    options["label_extension"] = ".tif"
    for extra in ({"set_dir": "lists"}, {"set_path": "lists/all.txt"}):
        given = {**options, **extra}
        for split in (given, MaskSplit(**given)):
            part = SegmentationMasks(tmp_path, splits={"all": split}).parts()["all"]
            row = read_all(part).data[0]
            assert (row["image"].name, row["label"].name) == ("a.png", "a.tif")
    with pytest.raises(SourceError, match="hint: did you mean 'label_dir'"):
        SegmentationMasks(tmp_path, splits={"all": {"label_dirs": "x"}}).parts()


def test_a_line_may_hold_the_paths_of_image_and_mask(tmp_path):
    make(tmp_path, "a", image_dir="train", label_dir="trainannot")
    enlist(tmp_path, "train", "/train/a.jpg /trainannot/a.png")
    row = read_all(SegmentationMasks(tmp_path).parts()["train"]).data[0]
    assert row["label"] == tmp_path / "trainannot/a.png"
    assert row["filename"] == "train/a.jpg"


def test_paths_that_lead_out_are_rejected(tmp_path):
    make(tmp_path / "data", "a")
    make(tmp_path, "a", image_dir="x", label_dir="y")
    enlist(tmp_path / "data", "train", "../x/a.jpg ../y/a.png")
    (reject,) = read_all(SegmentationMasks(tmp_path / "data").parts()["train"]).rejects
    assert "no such file" in reject.reason


def test_colours_become_ids(tmp_path):
    make(tmp_path, "a", "b")
    ids = pixels(8, 6, 1, most=2)
    for name in ("a", "b"):
        save(tmp_path / f"SegmentationClass/{name}.png", colour_mask(ids))
    part = SegmentationMasks(tmp_path, colour_map=COLOURS).parts()["train"]
    assert part.is_slow_python
    for row in read_all(part).data:
        np.testing.assert_array_equal(row["label"], ids)
        np.testing.assert_array_equal(decode(prepare(row["label"], MASK).data, MASK)[..., 0], ids)


def test_colours_without_a_map_are_rejected_with_a_hint(tmp_path):
    make(tmp_path, "a")
    save(tmp_path / "SegmentationClass/a.png", pixels(8, 6))
    (reject,) = read_all(SegmentationMasks(tmp_path).parts()["train"]).rejects
    assert reject.where == str(tmp_path / "SegmentationClass/a.png")
    assert reject.reason == "expected class ids, grey or in a palette, got colours"
    assert "colour_map" in reject.hint


def test_a_colour_that_the_map_lacks_is_named(tmp_path):
    make(tmp_path, "a")
    save(tmp_path / "SegmentationClass/a.png", np.full((8, 6, 3), 9, np.uint8))
    part = SegmentationMasks(tmp_path, colour_map=COLOURS).parts()["train"]
    (reject,) = read_all(part).rejects
    assert "got (9, 9, 9) at row 0, column 0" in reject.reason


@pytest.mark.parametrize(
    ("colour_map", "message"),
    [
        ({(0, 0): 1}, "expected \\(red, green, blue\\), got \\(0, 0\\)"),
        ({(0, 0, 256): 1}, "expected \\(red, green, blue\\)"),
        ({"red": 1}, "expected \\(red, green, blue\\), got 'red'"),
        ({(0, 0, 0): -1}, "expected an id of 0 to 65535, got -1"),
        ({(0, 0, 0): "a"}, "expected an id of 0 to 65535, got 'a'"),
    ],
)
def test_a_wrong_colour_map_is_refused(tmp_path, colour_map, message):
    with pytest.raises(SourceError, match=message):
        SegmentationMasks(tmp_path, colour_map=colour_map)


def test_masks_of_16_bits_are_kept(tmp_path):
    make(tmp_path, "a")
    ids = pixels(8, 6, 1, dtype=np.uint16, most=65535)
    save(tmp_path / "SegmentationClass/a.png", ids)
    row = read_all(SegmentationMasks(tmp_path).parts()["train"]).data[0]
    prepared = prepare(row["label"], MASK)
    assert prepared.header.dtype == "uint16"
    wide = Feature("uint16", (None, None, 1), encoding="image")
    np.testing.assert_array_equal(decode(prepared.data, wide)[..., 0], ids)


def test_a_mask_of_another_size_is_rejected(tmp_path):
    make(tmp_path, "a")
    save(tmp_path / "SegmentationClass/a.png", pixels(6, 8, 1))
    (reject,) = read_all(SegmentationMasks(tmp_path).parts()["train"]).rejects
    assert reject.reason == "expected a mask of 6 x 8 pixels like the image, got 8 x 6"


def test_missing_and_damaged_files_are_rejected(tmp_path):
    make(tmp_path, "a", "b", "c", "d")
    enlist(tmp_path, "train", "a", "b", "c", "d", "e")
    (tmp_path / "JPEGImages/a.jpg").unlink()
    (tmp_path / "SegmentationClass/b.png").unlink()
    (tmp_path / "SegmentationClass/c.png").write_bytes(b"no image")
    block = read_all(SegmentationMasks(tmp_path).parts()["train"])
    assert block.numbers.tolist() == [3]
    reasons = {reject.key: reject.reason for reject in block.rejects}
    assert "JPEGImages" in reasons["a"]
    assert "SegmentationClass" in reasons["b"]
    assert "expected a JPEG, PNG" in reasons["c"]
    assert block.rejects[3].where == f"{tmp_path / 'train.txt'}, line 5"


def test_the_fingerprint_tells_changes(tmp_path):
    make(tmp_path, "a", "b")
    found = {SegmentationMasks(tmp_path).parts()["train"].fingerprint for _ in range(2)}
    assert len(found) == 1
    found.add(SegmentationMasks(tmp_path, colour_map=COLOURS).parts()["train"].fingerprint)
    save(tmp_path / "SegmentationClass/a.png", pixels(8, 6, 1))
    found.add(SegmentationMasks(tmp_path).parts()["train"].fingerprint)
    assert len(found) == 3


def test_a_part_can_be_sent_to_another_process(tmp_path):
    make(tmp_path, "a")
    part = pickle.loads(pickle.dumps(SegmentationMasks(tmp_path).parts()["train"]))
    assert len(read_all(part)) == 1


def test_real_masks_are_read(shared_data):
    options = {"image_dir": "images", "label_dir": "annotations/trimaps"}
    part = SegmentationMasks(shared_data / "pets", splits={"train": options}).parts()["train"]
    block = read_all(part)
    assert (len(block), len(block.rejects)) == (333, 0)
    for row in block.data[:20]:
        assert set(np.unique(decode(prepare(row["label"], MASK).data, MASK))) <= {1, 2, 3}


def test_real_masks_of_colours_are_read(shared_data):
    root = shared_data / "formats/camvid_dataset"
    blocks = {name: read_all(part) for name, part in SegmentationMasks(root).parts().items()}
    assert {name: len(block.rejects) for name, block in blocks.items()} == {
        "test": 2,
        "train": 1,
        "val": 1,
    }
    voc = shared_data / "formats/voc_dataset/voc_dataset1"
    part = SegmentationMasks(voc, colour_map={(0, 128, 0): 2}).parts()["train"]
    assert (read_all(part).data[0]["label"] == 2).all()


@pytest.mark.parametrize("prefix", ["/SegNet/CamVid/", "C:/data/CamVid/", "./", "/"])
def test_paths_of_another_machine_are_found_by_their_ends(tmp_path, prefix):
    for name in ("a", "b"):
        save(tmp_path / "train" / f"{name}.png", pixels(4, 6))
        save(tmp_path / "trainannot" / f"{name}.png", pixels(4, 6)[..., 0])
    lines = [f"{prefix}train/{name}.png {prefix}trainannot/{name}.png" for name in ("a", "b")]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    block = read_all(SegmentationMasks(tmp_path).parts()["train"])
    assert not block.rejects
    assert [row["filename"] for row in block.data] == ["train/a.png", "train/b.png"]
    assert [row["label"].parent.name for row in block.data] == ["trainannot", "trainannot"]


def test_the_only_file_of_a_name_is_found_in_any_folder(tmp_path):
    save(tmp_path / "photos" / "a.jpg", pixels(4, 6))
    save(tmp_path / "ids" / "a.png", pixels(4, 6)[..., 0])
    lines = ["/x/images/a.jpg /x/masks/a.png", "/x/images/b.jpg /x/masks/b.png"]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    block = read_all(SegmentationMasks(tmp_path).parts()["train"])
    assert [row["filename"] for row in block.data] == ["photos/a.jpg"]
    assert "line 2" in block.rejects[0].where
