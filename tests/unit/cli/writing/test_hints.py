"""How to go on from a source that is not understood."""

import shlex
import subprocess

import datum
from datum.cli.arguments import read_toml
from datum.cli.shell import find_hint
from datum.cli.write_options import read_options
from tests.unit.images.samples import pixels, save

BOX = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>4</ymax></bndbox>"
XML = f"<annotation><object><name>cat</name>{BOX}</object></annotation>"


def test_records_are_for_reshard(tmp_path):
    (tmp_path / "train.tfrecord").write_bytes(b"")
    for path in (tmp_path, tmp_path / "train.tfrecord"):
        assert find_hint(str(path), "my out")[0].endswith(f"datum reshard {path} 'my out'")


def test_annotations_of_coco_are_not_taken_for_texts(tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_train.json").write_text(
        '{"licenses": [], "images": [], "annotations": [], "categories": []}'
    )
    assert "annotations of COCO can come as JSON lines" in find_hint(str(tmp_path), None)[0]


def test_boxes_in_folders_of_other_names_are_told_as_options_that_work(tmp_path):
    root = tmp_path / "pets"
    for name in ("a", "b"):
        save(root / "images" / f"{name}.jpg", pixels(8, 8), "JPEG")
        save(root / "annotations" / "masks" / f"{name}.png", pixels(8, 8, 1), "PNG")
        (root / "annotations" / "xmls").mkdir(exist_ok=True)
        (root / "annotations" / "xmls" / f"{name}.xml").write_text(XML)
    lines = find_hint(str(root), None)
    assert lines[-1] == "  and write with: datum write OUT --options source.toml"
    file = tmp_path / "source.toml"
    file.write_text("\n".join(lines[1:-1]))
    assert read_toml(file)["source"]["splits"]["train"]["image_dir"] == "images"
    plan = datum.plan(read_options(str(file))["source"])
    assert (plan.layout, plan.records) == ("Pascal VOC detection: 1 class", 2)


def test_images_without_classes_are_told_as_a_command_that_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png", "c.jpg"):
        save(tmp_path / "my photos" / name, pixels(4, 4), "PNG")
    (hint,) = find_hint("my photos", None)
    listing = hint.partition("table: ")[2].partition(";")  # up to the ; in the brackets
    command = listing[0] + ";" + listing[2].partition(";")[0]
    subprocess.run(["sh", "-c", command], check=True)
    assert datum.plan("images.csv").records == 2


def test_a_folder_within_or_a_file_is_named(tmp_path):
    save(tmp_path / "deep" / "cat" / "1.png", pixels(4, 4), "PNG")
    save(tmp_path / "deep" / "dog" / "1.png", pixels(4, 4), "PNG")
    (tmp_path / "b.json").write_text("{}")
    found = shlex.quote(str(tmp_path / "deep"))
    assert find_hint(str(tmp_path), None) == [f"name a folder within: datum write {found} OUT"]
    (tmp_path / "deep" / "cat" / "1.png").unlink()
    found = shlex.quote(str(tmp_path / "b.json"))
    assert find_hint(str(tmp_path), None)[0].endswith(f"its files: datum write {found} OUT")


def test_anything_else_can_come_as_json_lines(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    for place in (tmp_path, tmp_path / "a.wav", tmp_path / "nowhere"):
        assert find_hint(str(place), None)[0].endswith("your-program | datum write - OUT")
