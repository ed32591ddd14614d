"""Damaged datasets repaired."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import LabelEncoder

import datum
from datum import Damage
from datum._rewrite.salvage import ExpectedFile, Loss, RepairReport, salvage_file, survey_path
from datum.format import Index, RecordFile, RecordWriter, encode
from tests.unit.images.samples import encoded, pixels
from tests.unit.rewrite.damaged import (
    KINDS,
    content,
    copy,
    cut,
    flip,
    numbers,
    payloads,
    row,
    shard_of,
    write_kinds,
    write_numbers,
)


def repair(source, out, **options):
    return datum.repair(source, out, progress=False, **options)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound") / "numbers"
    write_numbers(folder)
    return folder


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed") / "numbers"
    write_numbers(folder, count=9000, compression="gzip")
    return folder


@pytest.fixture
def broken(sound, tmp_path):
    """A copy, to be broken."""
    return copy(sound, tmp_path / "in")


def check(report, out, *, total=90):
    """Kept and lost add up, and what was saved is a sound dataset."""
    assert report.records + report.lost_records == total
    assert report.records == len(datum.load(out)["all"])
    assert datum.load(out).verify(deep=True).is_sound


# Damage to records and files.
def test_nothing_is_lost_of_what_is_sound(sound, tmp_path):
    report = repair(sound, tmp_path / "out")
    assert content(tmp_path / "out") == content(sound)
    assert (report.kept, report.lost, report.losses, report.notes) == (
        {"train": 90},
        {"train": 0},
        (),
        (),
    )
    assert report.is_whole
    check(report, tmp_path / "out")


def test_a_flipped_bit_costs_one_record_and_what_lies_there_is_not_touched(broken, tmp_path):
    flip(shard_of(broken, 1), 500)
    before = content(broken)
    report = repair(broken, tmp_path / "out")
    (loss,) = report.losses
    assert content(broken) == before
    assert (loss.split, loss.records, loss.damage.kind) == ("train", 1, "payload checksum")
    assert loss.damage.file == str(shard_of(broken, 1))
    assert loss.damage.offset < 500 < loss.damage.end
    assert loss.bytes == loss.damage.end - loss.damage.offset
    lost = 30 + loss.damage.record
    assert numbers(tmp_path / "out") == [number for number in range(90) if number != lost]
    check(report, tmp_path / "out")


@pytest.mark.parametrize("at", [0, 8, 12, 40, 1000])
def test_any_byte_may_be_damaged(broken, tmp_path, at):
    flip(shard_of(broken), at, 0xFF)
    report = repair(broken, tmp_path / "out")
    assert report.kept == {"train": 89}
    check(report, tmp_path / "out")


def test_several_places_are_counted_by_the_index(broken, tmp_path):
    shard = shard_of(broken)
    ends = np.cumsum([16 + len(payload) for payload in payloads(broken)[:30]]).tolist()
    data = bytearray(shard.read_bytes())
    data[ends[0] : ends[3]] = bytes(ends[3] - ends[0])
    data[ends[20] - 5] ^= 1
    shard.write_bytes(data)
    report = repair(broken, tmp_path / "out")
    assert [loss.records for loss in report.losses] == [3, 1]
    assert report.lost == {"train": 4}
    check(report, tmp_path / "out")


def test_several_places_are_not_counted_where_nothing_tells(broken, tmp_path):
    shard = shard_of(broken)
    ends = np.cumsum([16 + len(payload) for payload in payloads(broken)[:30]]).tolist()
    data = bytearray(shard.read_bytes())
    data[ends[0] : ends[3]] = bytes(ends[3] - ends[0])
    data[ends[20] - 5] ^= 1
    shard.write_bytes(data)
    Index.path_for(shard).write_bytes(b"no index")
    report = repair(broken, tmp_path / "out")
    assert [loss.records for loss in report.losses] == [None, 1]
    assert report.lost == {"train": 4}
    check(report, tmp_path / "out")


def test_a_torn_end_costs_what_was_behind_it(broken, tmp_path):
    cut(shard_of(broken, 2), 400)
    report = repair(broken, tmp_path / "out")
    (loss,) = report.losses
    assert loss.damage.kind == "torn payload"
    assert loss.records == report.lost["train"] > 1
    assert numbers(tmp_path / "out") == list(range(report.records))
    check(report, tmp_path / "out")


@pytest.mark.parametrize("records", [0, 7])
def test_a_file_that_was_cut_between_two_records_is_noticed(broken, tmp_path, records):
    shard = shard_of(broken, 2)
    cut(shard, sum(16 + len(payload) for payload in payloads(broken)[60 : 60 + records]))
    report = repair(broken, tmp_path / "out")
    (loss,) = report.losses
    assert (loss.damage.kind, loss.records, loss.damage.record) == (
        "missing end",
        30 - records,
        records,
    )
    check(report, tmp_path / "out")


def test_a_missing_shard_is_lost_with_as_many_records_as_the_manifest_says(broken, tmp_path):
    shard_of(broken, 1).unlink()
    report = repair(broken, tmp_path / "out")
    (loss,) = report.losses
    assert (loss.damage.kind, loss.records) == ("missing file", 30)
    assert loss.bytes > 0
    assert numbers(tmp_path / "out") == [*range(30), *range(60, 90)]
    check(report, tmp_path / "out")


def test_a_shard_of_other_bytes_is_lost(broken, tmp_path):
    shard_of(broken, 1).write_bytes(os.urandom(3000))
    report = repair(broken, tmp_path / "out")
    assert report.lost == {"train": 30}
    check(report, tmp_path / "out")


@pytest.mark.usefixtures("permissions_count")
def test_a_file_that_may_not_be_read_is_lost(broken, tmp_path):
    shard_of(broken, 1).chmod(0)
    report = repair(broken, tmp_path / "out")
    assert report.losses[0].damage.kind == "unreadable file"
    check(report, tmp_path / "out")


def test_index_files_do_not_matter(broken, tmp_path):
    for at, index in enumerate(sorted(broken.glob("index/*"))):
        index.unlink() if at else index.write_bytes(b"no index")
    report = repair(broken, tmp_path / "out")
    assert report.is_whole
    check(report, tmp_path / "out")


def test_a_split_that_is_lost_as_a_whole_is_named(tmp_path):
    sources = {"train": [{"x": 1}], "val": [{"x": 2}]}
    datum.write(sources, tmp_path / "in", progress=False)
    (tmp_path / "in" / "val-00000-of-00001.tfrecord").unlink()
    report = repair(tmp_path / "in", tmp_path / "out")
    assert (report.kept, report.lost) == ({"train": 1, "val": 0}, {"train": 0, "val": 1})
    assert len(datum.load(tmp_path / "out")["val"]) == 0


# Compressed shards.
@pytest.mark.parametrize("part", [0.1, 0.5, 0.999])
def test_what_comes_before_the_cut_of_a_stream_is_saved(packed, tmp_path, part):
    broken = copy(packed, tmp_path / "in")
    shard = shard_of(broken)
    cut(shard, int(shard.stat().st_size * part))
    report = repair(broken, tmp_path / "out")
    (loss,) = report.losses
    assert loss.damage.kind == "compressed stream"
    kept = 3000 - report.lost["train"]
    assert kept > 2900 * part - 100
    assert numbers(tmp_path / "out") == [*range(kept), *range(3000, 9000)]
    assert datum.load(tmp_path / "out").compression == "gzip"
    check(report, tmp_path / "out", total=9000)


def test_a_flipped_bit_of_a_stream_costs_what_comes_after_it(packed, tmp_path):
    broken = copy(packed, tmp_path / "in")
    flip(shard_of(broken, 2), shard_of(broken, 2).stat().st_size // 2)
    report = repair(broken, tmp_path / "out")
    assert 0 < report.lost["train"] <= 3000
    assert numbers(tmp_path / "out") == list(range(report.records))
    check(report, tmp_path / "out", total=9000)


# Records that are whole, but wrong.
def write_with_strangers(folder):
    """Two of five records are not what the schema says."""
    datum.write([{"x": 0}], folder, progress=False)
    shard = shard_of(folder)
    rows = [encode([{"x": value}]).to_bytes() for value in (1, 2.5, 3)]
    garbage = RecordWriter()
    garbage.write(b"\xff\xff\xff")
    garbage.close()
    shard.write_bytes(shard.read_bytes() + rows[0] + rows[1] + garbage.getvalue() + rows[2])


def test_records_that_are_not_what_the_schema_says_are_left_out(tmp_path):
    write_with_strangers(tmp_path / "in")
    report = repair(tmp_path / "in", tmp_path / "out")
    assert [(loss.damage.record, loss.damage.kind) for loss in report.losses] == [
        (2, "schema"),
        (3, "malformed"),
    ]
    assert report.losses[0].reason == "feature 'x': expected int64 values, got float values"
    assert numbers(tmp_path / "out") == [0, 1, 3]
    assert "4 records more than there should be" in report.notes[0]


def test_images_that_cannot_be_decoded_are_left_out_if_it_goes_deep(tmp_path):
    rows = [row(number) for number in range(12)]
    rows[5]["image"] = encoded(pixels(64, 64), "png")
    rows[7]["mask"] = encoded(pixels(64, 64, 1), "png")
    datum.write(rows, tmp_path / "in", schema=KINDS, shuffle=False, progress=False)
    shard = shard_of(tmp_path / "in")
    found = list(RecordFile(shard))
    for at, name in ((5, "image"), (7, "mask")):
        whole = rows[at][name]
        found[at] = found[at].replace(whole, whole[:200] + bytes(len(whole) - 200))
    with RecordWriter(shard) as writer:
        for payload in found:
            writer.write(payload)
    assert repair(tmp_path / "in", tmp_path / "shallow").is_whole
    report = repair(tmp_path / "in", tmp_path / "deep", deep=True)
    assert [(loss.damage.record, loss.damage.kind) for loss in report.losses] == [
        (5, "image"),
        (7, "image"),
    ]
    assert report.losses[0].reason.startswith("feature 'image': expected")
    assert payloads(tmp_path / "deep") == [p for at, p in enumerate(found) if at not in (5, 7)]
    check(report, tmp_path / "deep", total=12)


# Manifests.
def test_without_a_manifest_features_are_told_from_the_records(broken, tmp_path):
    (broken / "datum.json").unlink()
    flip(shard_of(broken), 500)
    report = repair(broken, tmp_path / "out")
    assert (report.kept, report.lost, report.lost_records) == ({"train": 89}, {"train": 1}, 1)
    assert not report.is_whole
    assert payloads(tmp_path / "out") == [
        p for at, p in enumerate(_all_payloads(broken)) if at != report.losses[0].damage.record
    ]
    assert datum.load(tmp_path / "out").schema == datum.Schema(
        {"text": datum.Feature("str"), "x": datum.Feature("int64")}
    )


def _all_payloads(folder):
    shards = sorted(folder.glob("*.tfrecord"))
    whole = []
    for shard in shards:
        with RecordFile(shard, recovery="skip", use_index=False) as file:
            found = {}
            for records in file.chunks():
                found |= dict(zip(records.numbers.tolist(), records, strict=True))
            whole += [found.get(at, b"") for at in range(30)]
    return whole


def test_a_missing_manifest_and_a_missing_shard_are_both_told(broken, tmp_path):
    (broken / "datum.json").unlink()
    missing = shard_of(broken, 1)
    missing.unlink()
    report = repair(broken, tmp_path / "out")
    assert report.kept == {"train": 60}
    assert report.lost == {"train": 30}  # as the index of the missing one says
    assert [loss.damage.kind for loss in report.losses] == ["missing file"]
    Index.path_for(missing).unlink()
    assert repair(broken, tmp_path / "more").lost == {"train": None}


def test_a_schema_can_be_given_where_the_manifest_is_lost(tmp_path):
    write_kinds(tmp_path / "in")
    found = payloads(tmp_path / "in")
    (tmp_path / "in" / "datum.json").unlink()
    report = repair(tmp_path / "in", tmp_path / "out", schema=KINDS)
    assert report.kept == {"train": 60}
    assert datum.load(tmp_path / "out").schema == KINDS
    assert payloads(tmp_path / "out") == found
    assert datum.load(tmp_path / "out").metadata["image"]["formats"] == {"jpeg": 60}


def test_a_manifest_that_was_changed_is_used_if_records_agree_with_it(broken, tmp_path):
    text = (broken / "datum.json").read_text()
    (broken / "datum.json").write_text(
        text.replace('"metadata": {}', '"metadata": {"x": {"a": 1}}')
    )
    report = repair(broken, tmp_path / "out")
    assert (report.kept, report.lost) == ({"train": 90}, {"train": 0})
    assert not report.is_whole
    assert report.forgotten[0].startswith("datum.json fails its checksum: schema")
    assert "was used as far as records agree with it" in report.notes[0]
    assert datum.load(tmp_path / "out").metadata == {"x": {"a": 1}}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('"text": {', '"txet": {', 1) + "and more",
        lambda text: text.replace('"int64"', '"float32"', 1),
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"splits"', '"slpits"'),
    ],
)
def test_a_manifest_that_cannot_be_believed_is_passed_by(broken, tmp_path, damage):
    path = broken / "datum.json"
    path.write_text(damage(path.read_text()))
    report = repair(broken, tmp_path / "out")
    assert report.kept == {"train": 90}
    assert "features were inferred from the records" in report.notes[0]
    assert sorted(datum.load(tmp_path / "out").schema) == ["text", "x"]


FLOATS = [{"x": number / 3, "label": "ab"[number % 2]} for number in range(60)]


def write_floats(folder, **options):
    given = {"floats": "float64", "encoders": {"label": LabelEncoder()}, "shuffle": False}
    datum.write(FLOATS, folder, **given, progress=False, **options)
    return payloads(folder), datum.load(folder)


def test_floats_of_a_sound_dataset_are_not_rounded(tmp_path):
    before, dataset = write_floats(tmp_path / "in")
    assert repair(tmp_path / "in", tmp_path / "out").is_whole
    assert payloads(tmp_path / "out") == before
    assert datum.load(tmp_path / "out").schema == dataset.schema


@pytest.mark.parametrize("content", ["", "no JSON", "\0" * 500])
def test_what_only_a_manifest_told_is_listed_once_it_is_lost(tmp_path, content):
    before, _ = write_floats(tmp_path / "in")
    (tmp_path / "in" / "datum.json").write_text(content)
    report = repair(tmp_path / "in", tmp_path / "out")
    assert (report.kept, report.lost, report.losses) == ({"train": 60}, {"train": 0}, ())
    assert not report.is_whole
    floats, labels, metadata = report.forgotten
    assert floats.startswith(
        "'x': kept as bytes, inferred from the records; whether it was an image"
    )
    assert "(such as float64)" in floats
    assert labels.startswith(
        "'label': kept as int64, inferred from the records; whether it was bool"
    )
    assert metadata == "class names, encoders and other metadata of features"
    assert "nothing was lost" not in str(report)
    assert all(f"lost: {line}" in str(report) for line in report.forgotten)
    assert "hint: pass the features you know: datum.repair(path, out, schema={...})" in str(report)
    assert report.to_json()["forgotten"] == list(report.forgotten)
    assert payloads(tmp_path / "out") == before


def test_a_manifest_that_is_gone_is_missed_where_indexes_tell_that_there_was_one(tmp_path):
    before, dataset = write_floats(tmp_path / "in")
    (tmp_path / "in" / "datum.json").unlink()
    report = repair(tmp_path / "in", tmp_path / "out")
    assert not report.is_whole
    assert report.forgotten[-1] == "class names, encoders and other metadata of features"
    report = repair(tmp_path / "in", tmp_path / "told", schema=dataset.schema)
    assert report.is_whole
    assert payloads(tmp_path / "told") == before


@pytest.mark.parametrize(
    ("damage", "features", "has_names"),
    [
        (lambda text: text.replace("{", "", 1), {"x": "float64", "label": "int64"}, True),
        (
            lambda text: text.replace('"float64"', '"float', 1),
            {"x": "bytes", "label": "int64"},
            True,
        ),
        (lambda text: text[: text.index('"splits"')], {"x": "float64", "label": "int64"}, False),
        (lambda text: text[: text.index('"label"') + 9], {"x": "float64", "label": "int64"}, False),
        (
            lambda text: text.replace('"metadata"', '"meta'),
            {"x": "float64", "label": "int64"},
            False,
        ),
        (
            lambda text: text.replace('"format"', '"f\0rmat'),
            {"x": "float64", "label": "int64"},
            True,
        ),
    ],
)
def test_what_is_left_of_a_manifest_is_used(tmp_path, damage, features, has_names):
    before, _ = write_floats(tmp_path / "in")
    path = tmp_path / "in" / "datum.json"
    path.write_text(damage(path.read_text()))
    report = repair(tmp_path / "in", tmp_path / "out")
    found = datum.load(tmp_path / "out")
    assert {name: feature.dtype for name, feature in found.schema.items()} == features
    assert ("class_names" in found.metadata.get("label", {})) == has_names
    assert payloads(tmp_path / "out") == before
    assert not report.is_whole
    assert "what is left of datum.json" in report.notes[0]
    is_lost = any(line.startswith("'x': kept as bytes") for line in report.forgotten)
    assert is_lost == (features["x"] == "bytes")


def test_a_sidecar_tells_what_a_lost_manifest_told(tmp_path):
    before, dataset = write_floats(tmp_path / "in", sidecars=["tfds"])
    (tmp_path / "in" / "datum.json").write_text("no JSON")
    report = repair(tmp_path / "in", tmp_path / "out")
    found = datum.load(tmp_path / "out")
    assert dict(found.schema) == dict(dataset.schema)
    assert found.metadata["label"]["class_names"] == ["a", "b"]
    assert payloads(tmp_path / "out") == before
    assert report.forgotten == (
        "class names, encoders and other metadata of features, except those of 'label'",
    )
    assert "features were inferred from the records and features.json" in report.notes[0]


def test_a_sidecar_that_records_contradict_is_passed_by(tmp_path):
    before, _ = write_floats(tmp_path / "in", sidecars=["tfds"])
    (tmp_path / "in" / "datum.json").write_text("no JSON")
    path = tmp_path / "in" / "features.json"
    path.write_text(path.read_text().replace('"float64"', '"float32"').replace('"bytes"', '"none"'))
    report = repair(tmp_path / "in", tmp_path / "out")
    assert report.kept == {"train": 60}
    assert payloads(tmp_path / "out") == before
    assert report.forgotten[0].startswith("'x': kept as bytes")
    assert datum.load(tmp_path / "out").metadata["label"]["class_names"] == ["a", "b"]


def test_a_manifest_of_a_newer_version_is_not_damage(broken, tmp_path):
    path = broken / "datum.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 99}))
    with pytest.raises(datum.ManifestError, match="a newer Datum wrote this"):
        repair(broken, tmp_path / "out")


def test_more_records_than_the_manifest_says_are_kept_and_noted(broken, tmp_path):
    shard = shard_of(broken, 2)
    extra = encode([{"x": 90, "text": "t90"}], datum.load(broken).schema).to_bytes()
    shard.write_bytes(shard.read_bytes() + extra)
    report = repair(broken, tmp_path / "out")
    assert report.kept == {"train": 91}
    assert report.lost == {"train": 0}
    assert report.notes == (f"{shard}: 1 record more than there should be, kept",)


# Files of others, and records of other kinds.
def test_a_bare_file_is_repaired(sound, tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(shard_of(sound).read_bytes())
    flip(path, 500)
    report = repair(path, tmp_path / "out")
    assert report.kept == {"train": 29}
    assert datum.load(tmp_path / "out").verify().is_sound


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_records_that_are_no_examples_are_saved_as_plain_files(tmp_path, compression):
    (tmp_path / "in").mkdir()
    for name in ("a.tfrecord", "b.tfrecord"):
        with RecordWriter(tmp_path / "in" / name, compression=compression) as writer:
            for number in range(20):
                writer.write(f"line {number} of {name}\n".encode() * 9)
    if compression is None:
        flip(tmp_path / "in" / "a.tfrecord", 100)
    else:
        path = tmp_path / "in" / "a.tfrecord"
        cut(path, path.stat().st_size - 30)
    report = repair(tmp_path / "in", tmp_path / "out")
    assert report.form == "files"
    assert report.kept == {
        "train": sum(len(list(RecordFile(p))) for p in (tmp_path / "out").iterdir())
    }
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.tfrecord", "b.tfrecord"]
    assert list(RecordFile(tmp_path / "out" / "b.tfrecord")) == list(
        RecordFile(tmp_path / "in" / "b.tfrecord")
    )
    assert RecordFile(tmp_path / "out" / "b.tfrecord").compression == compression
    with RecordFile(tmp_path / "in" / "a.tfrecord", recovery="skip") as file:
        assert list(RecordFile(tmp_path / "out" / "a.tfrecord")) == list(file)
    assert report.notes[-1].startswith("what is whole was written as plain TFRecord files")


def test_foreign_files_with_damage(shared_data, tmp_path):
    folder = shared_data / "foreign_tfrecords"
    name = "tensorflow__models__object_detection__test_data__pets_examples.record"
    path = tmp_path / "pets.record"
    path.write_bytes((folder / name).read_bytes())
    flip(path, 200_000)
    report = repair(path, tmp_path / "out")
    found = list(RecordFile(folder / name))
    lost = report.losses[0].damage.record
    assert payloads(tmp_path / "out") == [p for at, p in enumerate(found) if at != lost]
    assert report.records == 9


# Refusals.
def test_nothing_to_save_is_an_error(broken, tmp_path):
    for shard in broken.glob("*.tfrecord"):
        shard.write_bytes(os.urandom(500))
    with pytest.raises(
        datum.CorruptRecordError, match="got none that is whole in 3 files; the first"
    ):
        repair(broken, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_holds_no_records_raises_what_load_does(tmp_path):
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(datum.DatumError, match="expected a TFRecord file"):
        repair(tmp_path / "note.txt", tmp_path / "out")
    with pytest.raises(datum.ManifestError, match="expected"):
        repair(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(datum.ManifestError, match="expected a dataset"):
        repair(tmp_path / "empty", tmp_path / "out")


def test_the_source_is_never_written_to(broken, tmp_path):
    for out in (broken, tmp_path):
        with pytest.raises(datum.WriteError, match="expected a folder apart from what is repaired"):
            repair(broken, out, overwrite=True)


def test_a_target_that_is_there_is_replaced_only_if_asked(sound, broken, tmp_path):
    repair(sound, tmp_path / "out")
    flip(shard_of(broken), 500)
    with pytest.raises(datum.WriteError, match=r"hint: overwrite=True replaces it$"):
        repair(broken, tmp_path / "out")
    assert repair(broken, tmp_path / "out", overwrite=True).records == 89
    assert len(datum.load(tmp_path / "out")["train"]) == 89


def test_a_misspelt_option_names_the_nearest(sound, tmp_path):
    with pytest.raises(TypeError, match="did you mean `deep`"):
        repair(sound, tmp_path / "out", depe=True)


def test_a_link_that_goes_in_a_circle_is_told(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(datum.DatumError, match="loop"):
        datum.repair(tmp_path / "loop", tmp_path / "out", progress=False)


def loss(record=3, *, records=1, kind="payload checksum", reason=""):
    return Loss("train", Damage("in/a.tfrecord", 10, 52, record, kind), records, reason)


def report(*losses, lost=1, notes=()):
    return RepairReport(
        Path("in"), Path("out"), "dataset", {"train": 7}, {"train": lost}, losses, notes, 0.5
    )


def test_a_loss_tells_where_how_much_and_why():
    assert loss().bytes == 42
    assert str(loss()) == "in/a.tfrecord: record 3, bytes 10-52: payload checksum"
    assert (
        str(loss(records=5)) == "in/a.tfrecord: record 3, bytes 10-52: payload checksum (5 records)"
    )
    assert str(loss(records=None, reason="so it is")).endswith("payload checksum: so it is")
    assert loss(reason="why").to_json() == {
        "split": "train",
        "file": "in/a.tfrecord",
        "offset": 10,
        "bytes": 42,
        "record": 3,
        "records": 1,
        "kind": "payload checksum",
        "reason": "why",
    }


def test_a_summary_counts_and_lists():
    assert str(report(loss(), notes=("take care",))) == (
        "out: 7 records saved, 1 lost\n"
        "  train  7 saved, 1 lost\n"
        "  in/a.tfrecord: record 3, bytes 10-52: payload checksum\n"
        "  note: take care"
    )
    assert (
        repr(report(lost=0)) == "out: 7 records saved, nothing was lost\n  train  7 saved, 0 lost"
    )


def test_a_summary_says_where_nobody_knows_how_many_are_lost():
    text = str(report(loss(), lost=None))
    assert "7 records saved, damage in 1 place" in text
    assert "how many were lost is not known" in text


def test_a_summary_of_many_losses_is_cut():
    many = [loss(record=number) for number in range(25)]
    assert str(report(*many, lost=25)).splitlines()[-1] == "  and 5 places more"


def test_totals():
    assert report(loss()).records == 7
    assert report(loss()).lost_records == 1
    assert report(lost=None).lost_records is None
    assert report(lost=0).is_whole
    assert not report(loss(), lost=None).is_whole


def test_it_can_be_written_as_json():
    found = report(loss(), loss(kind="image")).to_json()
    assert json.loads(json.dumps(found)) == found
    assert found["kinds"] == {"image": 1, "payload checksum": 1}
    assert (found["kept"], found["lost"], found["form"]) == ({"train": 7}, {"train": 1}, "dataset")


SCHEMA = datum.Schema({"x": datum.Feature("int64")})


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(encode([{"x": n} for n in range(50)], SCHEMA).to_bytes())
    return tmp_path / "a.tfrecord"


def salvage(path, schema=SCHEMA, *, records=50, deep=False):
    seen = []
    expected = ExpectedFile("train", path, path.name, records, None)
    found = salvage_file(expected, schema, deep=deep, advance=lambda *given: seen.append(given))
    return found, seen


def kept(found):
    return [payload for records in found.runs() for payload in records]


def test_all_of_a_sound_file_is_kept(path):
    found, seen = salvage(path)
    assert len(found) == 50
    assert kept(found) == list(RecordFile(path))
    assert (found.losses, found.extra, found.compression) == ((), 0, None)
    assert sum(records for records, _ in seen) == 50


def test_places_are_those_of_the_records_that_are_kept(path):
    sizes = [16 + len(payload) for payload in RecordFile(path)]
    flip(path, sizes[0] + 14)
    found, _ = salvage(path)
    starts = np.cumsum([0, *sizes])
    assert found.places.offsets.tolist() == [0, *starts[2:-1].tolist()]
    assert found.places.ends.tolist() == [sizes[0], *starts[3:].tolist()]
    assert [(loss.damage.record, loss.records) for loss in found.losses] == [(1, 1)]


def test_the_kept_records_of_a_compressed_file_are_those_of_its_places(tmp_path):
    path = tmp_path / "a.gz"
    with RecordWriter(path, compression="gzip") as writer:
        writer.write_framed(encode([{"x": n} for n in range(50)], SCHEMA))
        writer.write(b"\xff\xff")
        writer.write_framed(encode([{"x": 50}], SCHEMA))
    found, _ = salvage(path, records=52)
    assert found.compression == "gzip"
    assert [loss.damage.kind for loss in found.losses] == ["malformed"]
    whole = list(RecordFile(path))
    assert kept(found) == [*whole[:50], whole[51]]


def test_a_file_that_is_not_there_is_a_loss_of_all_its_records(tmp_path):
    found, _ = salvage(tmp_path / "gone.tfrecord")
    assert [(loss.damage.kind, loss.records) for loss in found.losses] == [("missing file", 50)]
    assert len(found) == 0


def test_a_folder_in_place_of_a_file_is_a_loss(tmp_path):
    (tmp_path / "a.tfrecord").mkdir()
    found, _ = salvage(tmp_path / "a.tfrecord")
    assert found.losses[0].damage.kind == "unreadable file"
    assert found.losses[0].reason


def test_without_a_schema_records_may_be_anything(tmp_path):
    with RecordWriter(tmp_path / "a") as writer:
        for payload in (b"text", b"\xff", b""):
            writer.write(payload)
    found, _ = salvage(tmp_path / "a", schema=None, records=None)
    assert kept(found) == [b"text", b"\xff", b""]


def test_losses_are_in_the_order_of_the_file(path):
    data = path.read_bytes()
    stranger = encode([{"x": 0.5}]).to_bytes()
    path.write_bytes(data + stranger + data + stranger)
    flip(path, len(data) + len(stranger) + 14)
    found, _ = salvage(path, records=None)
    kinds = [(loss.damage.record, loss.damage.kind) for loss in found.losses]
    assert kinds == [(50, "schema"), (51, "payload checksum"), (101, "schema")]
    assert len(found) == 99


def test_a_run_of_strangers_is_told_one_by_one(tmp_path):
    (tmp_path / "a").write_bytes(encode([{"x": 0.5}] * 30).to_bytes())
    found, _ = salvage(tmp_path / "a", records=30)
    assert [loss.damage.record for loss in found.losses] == list(range(30))
    assert {loss.reason for loss in found.losses} == {
        "feature 'x': expected int64 values, got float values"
    }


def test_what_only_the_whole_value_tells_is_a_loss_of_its_record(tmp_path):
    schema = datum.Schema({"nested": datum.Feature("int64", (None, None))})
    rows = encode([{"nested": [[1], [2, 3]]}] * 4, schema)
    flat = datum.Schema({"nested": datum.Feature("int64", (None,))})
    lengths = {"nested": [1, 2, 3], "nested_lengths_1": [1, 7]}
    both = datum.Schema({**flat, "nested_lengths_1": datum.Feature("int64", (None,))})
    wrong = encode([lengths], both)
    path = tmp_path / "a"
    path.write_bytes(rows.to_bytes() + wrong.to_bytes() + rows.to_bytes())
    found, _ = salvage(path, schema=schema, records=9)
    assert [(loss.damage.record, loss.damage.kind) for loss in found.losses] == [(4, "schema")]
    assert len(found) == 8


def test_more_records_than_expected_are_counted(path):
    assert salvage(path, records=40)[0].extra == 10


@pytest.mark.parametrize("size", range(0, 60, 7))
def test_a_file_may_be_cut_anywhere(path, size):
    cut(path, size)
    found, _ = salvage(path)
    assert len(found) + sum(loss.records for loss in found.losses) == 50


@pytest.fixture
def folder(tmp_path):
    write_numbers(tmp_path / "in")
    return tmp_path / "in"


def test_a_manifest_tells_files_splits_counts_and_schema(folder):
    found = survey_path(folder)
    assert [(file.split, file.name, file.records) for file in found.files] == [
        ("train", f"train-0000{number}-of-00003.tfrecord", 30) for number in range(3)
    ]
    assert found.schema == datum.load(folder).schema
    assert found.is_certain
    assert found.splits == ["train"]
    assert survey_path(folder / "datum.json").files == found.files


def test_a_manifest_with_a_wrong_checksum_is_doubted(folder):
    path = folder / "datum.json"
    path.write_text(path.read_text().replace('"x"', '"y"', 1))
    found = survey_path(folder)
    assert not found.is_certain
    assert "y" in found.schema
    believed = survey_path(folder, trusts_damaged=False)
    assert believed.is_certain
    assert "x" in believed.schema
    assert [file.records for file in believed.files] == [30, 30, 30]  # as their indexes say


def test_a_manifest_that_cannot_be_read_leaves_the_files(folder):
    (folder / "datum.json").write_text("{")
    shard_of(folder, 1).unlink()
    found = survey_path(folder)
    assert [(file.name[:11], file.path.exists()) for file in found.files] == [
        ("train-00000", True),
        ("train-00002", True),
        ("train-00001", False),
    ]
    assert found.notes[0].startswith("datum.json is damaged")


def test_a_newer_manifest_is_left_to_whoever_can_read_it(folder):
    path = folder / "datum.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(datum.ManifestError, match="newer"):
        survey_path(folder)


def test_files_that_nobody_described_are_found_by_what_they_hold(folder):
    (folder / "datum.json").unlink()
    flip(shard_of(folder), 0)
    (folder / "notes.txt").write_text("not records")
    found = survey_path(folder)
    assert [file.name for file in found.files] == [shard_of(folder, n).name for n in range(3)]
    assert sorted(found.schema) == ["text", "x"]


def test_a_given_schema_wins(folder):
    schema = datum.Schema({"x": datum.Feature("int64")})
    assert survey_path(folder, schema=schema).schema == schema
    (folder / "datum.json").unlink()
    assert survey_path(folder, schema=schema).schema == schema


def test_records_that_are_no_examples_have_no_schema(tmp_path):
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\xff\xff")
    found = survey_path(tmp_path / "a.tfrecord")
    assert found.schema is None
    assert "expected a tf.train.Example" in found.notes[0]


def test_records_that_contradict_one_another_have_no_schema(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(
        encode([{"x": 1}]).to_bytes() + encode([{"x": "one"}]).to_bytes()
    )
    found = survey_path(tmp_path / "a.tfrecord")
    assert found.schema is None
    assert "expected one kind" in found.notes[0]


def test_a_description_of_others_that_cannot_be_used_leaves_the_files(folder):
    (folder / "datum.json").unlink()
    (folder / "dataset_info.json").write_text("{}")
    found = survey_path(folder)
    assert len(found.files) == 3
    assert sorted(found.schema) == ["text", "x"]
    assert found.notes
