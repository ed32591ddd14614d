"""Datasets resharded and filtered."""

import json

import numpy as np
import pytest

import datum
from datum._rewrite.repair import write_files
from datum._rewrite.reshard import check_free, filter_part
from datum._rewrite.salvage import ExpectedFile, salvage_file
from datum._write import shards
from datum._write.report import Progress
from datum.format import Parser, RecordFile, RecordWriter, encode
from tests.unit.rewrite.damaged import (
    KINDS,
    copy,
    flip,
    numbers,
    payloads,
    shard_of,
    write_kinds,
    write_numbers,
)
from tests.unit.write.datasets import digests

# An Example whose keys, b and a, are not in the order that Datum writes them in.
_ENTRY = b"\x0a\x0b\x0a\x01%b\x12\x06\x1a\x04\x0a\x02\xac\x02"
UNSORTED = b"\x0a\x1a" + _ENTRY % b"b" + _ENTRY % b"a"


def reshard(source, out, **options):
    return datum.reshard(source, out, progress=False, **options)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds") / "kinds"
    write_kinds(folder, shards=2)
    return folder


@pytest.fixture
def small(tmp_path):
    write_numbers(tmp_path / "small")
    return tmp_path / "small"


# Records as they are.
@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_records_are_copied_byte_for_byte_with_schema_metadata_and_statistics(
    kinds, tmp_path, compression
):
    report = reshard(kinds, tmp_path / "out", shards=3, compression=compression)
    old, new = datum.load(kinds), datum.load(tmp_path / "out")
    assert report.records == 60
    assert payloads(tmp_path / "out") == payloads(kinds)
    assert new.schema == old.schema
    assert new.metadata == old.metadata
    assert new.statistics == old.statistics
    assert new.compression == compression
    assert len(new.splits["train"].shards) == 3
    assert new.verify(deep=True).is_sound


def test_the_same_layout_makes_the_same_files(kinds, tmp_path):
    reshard(kinds, tmp_path / "out", shards=2)
    assert digests(tmp_path / "out") == digests(kinds)


@pytest.mark.parametrize("recount", [False, True])
def test_statistics_are_those_of_the_records_counted_or_taken_over(kinds, tmp_path, recount):
    reshard(kinds, tmp_path / "out", recount=recount)
    old, new = (datum.load(path).statistics["train"] for path in (kinds, tmp_path / "out"))
    if recount:  # sums of floats depend on how records are cut into blocks
        for part in (old, new):
            for feature in part["features"].values():
                for found in feature.values():
                    if isinstance(found, dict):
                        found.pop("sum", None), found.pop("mean", None)
    assert new == old


def test_statistics_that_are_wrong_are_mended_by_counting_anew(small, tmp_path):
    manifest = json.loads((small / "datum.json").read_text())
    right = manifest["statistics"]["train"]["features"]["x"]["numbers"]["max"]
    manifest["statistics"]["train"]["features"]["x"]["numbers"]["max"] = 5000
    (small / "datum.json").write_text(json.dumps(manifest | {"checksum": None}))
    reshard(small, tmp_path / "out", recount=True)
    made = datum.load(tmp_path / "out").statistics["train"]
    assert made["features"]["x"]["numbers"]["max"] == right == 89


def test_images_keep_their_bytes_when_columns_are_dropped(kinds, tmp_path):
    reshard(kinds, tmp_path / "out", shuffle=False, columns=["image", "x"])
    before, after = (
        [batch["image"].tolist() for batch in datum.load(path).to_numpy("train", decode=False)]
        for path in (kinds, tmp_path / "out")
    )
    assert after == before
    assert datum.load(tmp_path / "out").metadata["image"]["formats"] == {"jpeg": 60}


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_all_splits_are_kept_in_their_order(tmp_path, compression):
    rows = [{"x": number} for number in range(30)]
    sources = {"train": rows[:20], "val": rows[20:25], "test": rows[25:]}
    datum.write(sources, tmp_path / "in", shuffle=False, compression=compression, progress=False)
    report = reshard(tmp_path / "in", tmp_path / "out")
    assert {name: split.records for name, split in report.splits.items()} == {
        "train": 20,
        "val": 5,
        "test": 5,
    }
    assert numbers(tmp_path / "out", "val") == [20, 21, 22, 23, 24]
    assert datum.load(tmp_path / "out").compression == compression


def test_sequences_and_classes_are_kept(tmp_path):
    schema = datum.Schema(
        {
            "label": datum.Feature("int64"),
            "steps": datum.Feature("float32", (None, 2), sequence=True),
        }
    )
    rows = [{"label": at % 3, "steps": [[at, 1.0]] * (at % 4)} for at in range(12)]
    datum.write(rows, tmp_path / "in", schema=schema, shuffle=False, progress=False)
    reshard(tmp_path / "in", tmp_path / "out", where=lambda record: len(record["steps"]) > 1)
    assert payloads(tmp_path / "out") == [
        payload for at, payload in enumerate(payloads(tmp_path / "in")) if at % 4 > 1
    ]
    assert datum.load(tmp_path / "out").schema == schema


def test_class_names_of_folders_are_kept(tmp_path):
    from tests.unit.write.datasets import picture

    for number in range(12):
        name = ("cat", "dog", "owl")[number % 3]
        picture(tmp_path / "photos" / name / f"{number}.png", number)
    datum.write(tmp_path / "photos", tmp_path / "in", progress=False)
    reshard(tmp_path / "in", tmp_path / "out", where=lambda record: record["label"] == 1)
    made = datum.load(tmp_path / "out")
    assert made.metadata["label"]["class_names"] == ["cat", "dog", "owl"]
    assert made.metadata["image"]["formats"] == {"png": 4}
    assert made.schema == datum.load(tmp_path / "in").schema


# Layout.
def test_shards_by_size_by_number_and_by_split(small, tmp_path):
    size = datum.load(small).splits["train"].bytes
    reshard(small, tmp_path / "a", shard_bytes=max(1024, size // 4))
    reshard(small, tmp_path / "b", shards=7)
    reshard(small, tmp_path / "c", splits={"a": "train[:50%]", "b": "train[50%:]"}, shards={"a": 4})
    counts = [
        {name: len(split.shards) for name, split in datum.load(tmp_path / out).splits.items()}
        for out in "abc"
    ]
    assert counts[0]["train"] == -(-size // max(1024, size // 4))
    assert counts[1:] == [{"train": 7}, {"a": 4, "b": 1}]


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_shuffling_is_a_function_of_the_seed_alone(tmp_path, compression):
    write_numbers(tmp_path / "in", compression=compression)
    orders = []
    for out, seed, workers in (("a", 1, 1), ("b", 1, 3), ("c", 2, 2)):
        reshard(tmp_path / "in", tmp_path / out, shuffle=True, seed=seed, workers=workers)
        orders.append(numbers(tmp_path / out))
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == list(range(90))
    assert orders[0] != list(range(90))
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


def test_the_order_does_not_depend_on_how_the_source_is_compressed(tmp_path):
    write_numbers(tmp_path / "plain")
    write_numbers(tmp_path / "packed", compression="gzip")
    options = {
        "where": lambda record: record["x"] % 3 != 1,
        "splits": {"train": 0.7, "val": 0.3},
        "shuffle": True,
        "compression": None,
    }
    reshard(tmp_path / "plain", tmp_path / "a", **options)
    reshard(tmp_path / "packed", tmp_path / "b", **options)
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


# Splits.
def test_fractions_divide_all_records_as_write_does(small, tmp_path):
    fractions = {"train": 0.8, "val": 0.2}
    reshard(small, tmp_path / "out", splits=fractions)
    rows = [{"x": number, "text": f"t{number}"} for number in range(90)]
    options = {"shuffle": False, "progress": False}
    datum.write(rows, tmp_path / "reference", splits=fractions, **options)
    for split in fractions:
        assert numbers(tmp_path / "out", split) == numbers(tmp_path / "reference", split)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_fractions_can_be_stratified(tmp_path, compression):
    rows = [
        {"x": number, "kind": "rare" if number % 10 == 0 else "common"} for number in range(200)
    ]
    datum.write(
        rows, tmp_path / "in", compression=compression, splits={"a": 0.5, "b": 0.5}, progress=False
    )
    splits = {"train": 0.75, "val": 0.25}
    reshard(tmp_path / "in", tmp_path / "out", splits=splits, stratify="kind")
    made = datum.load(tmp_path / "out")
    assert [sum(r["kind"] == "rare" for r in made[split]) for split in splits] == [15, 5]
    assert len(made["all"]) == 200


def test_instructions_say_which_records_each_split_gets(small, tmp_path):
    splits = {"train": "train[10:]", "val": "train[:5]+train[-5:]", "all_of_it": "all"}
    reshard(small, tmp_path / "out", splits=splits)
    assert numbers(tmp_path / "out") == list(range(10, 90))
    assert numbers(tmp_path / "out", "val") == [0, 1, 2, 3, 4, 85, 86, 87, 88, 89]
    assert numbers(tmp_path / "out", "all_of_it") == list(range(90))


def test_a_split_can_be_given_in_place_of_a_dataset(small, tmp_path):
    reshard(datum.load(small)["train[:10]"], tmp_path / "a")
    reshard(datum.load(small)["train[:10]"], tmp_path / "b", splits={"x": 0.5, "y": 0.5})
    assert numbers(tmp_path / "a") == list(range(10))
    assert len(datum.load(tmp_path / "b")["all"]) == 10
    with pytest.raises(datum.SplitError, match=r"expected fractions .* where one split is given"):
        reshard(datum.load(small)["train"], tmp_path / "c", splits={"x": "train"})


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"a": 0.5, "b": "train"}, "expected `splits` as a dict of fractions, or of instructions"),
        ({}, "expected `splits` as a dict"),
        ([("a", 1)], "expected `splits` as a dict"),
        ({"a": True}, "expected `splits` as a dict"),
        ({"a": "trian"}, "did you mean 'train'"),
        ({"a": 0.5, "b": 0.7}, "expected"),
        ({"a/b": "train"}, "expected letters"),
    ],
)
def test_splits_that_cannot_be_meant_are_refused(small, tmp_path, splits, message):
    with pytest.raises(datum.SplitError, match=message):
        reshard(small, tmp_path / "out", splits=splits)
    assert not (tmp_path / "out").exists()


# Features and records left out.
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_features_can_be_left_out(tmp_path, compression):
    write_kinds(tmp_path / "in", compression=compression)
    dropped = ["mask", "nested", "sparse"]
    kept = [name for name in KINDS if name not in dropped]
    reshard(tmp_path / "in", tmp_path / "a", columns=kept)
    reshard(tmp_path / "in", tmp_path / "b", drop=dropped)
    old, new = datum.load(tmp_path / "in"), datum.load(tmp_path / "a")
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert new.schema == old.schema.select(kept)
    assert set(new.metadata) == {"image", "score"}
    assert set(new.statistics["train"]["features"]) == set(kept)
    for mine, theirs in zip(new["train"], old["train"], strict=True):
        for name in kept:
            np.testing.assert_equal(mine[name], theirs[name])
    # What is left lies there as if nothing else had ever been.
    rows = [{name: one.get(name) for name in kept} for one in _rows(60)]
    datum.write(rows, tmp_path / "c", schema=new.schema, shuffle=False, progress=False)
    assert payloads(tmp_path / "a") == payloads(tmp_path / "c")


def _rows(count):
    from tests.unit.rewrite.damaged import row

    return [row(number) for number in range(count)]


def test_naming_all_features_copies_records_as_they_are(kinds, tmp_path):
    reshard(kinds, tmp_path / "out", columns=reversed(list(KINDS)), shards=2)
    assert digests(tmp_path / "out") == digests(kinds)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": ["nmae"]}, datum.SchemaError, "did you mean 'name'"),
        ({"drop": ["xx"]}, datum.SchemaError, "did you mean 'x'"),
        ({"columns": "x"}, TypeError, "expected names of features"),
        ({"columns": []}, ValueError, "expected a feature to keep, got none"),
        ({"drop": list(KINDS)}, ValueError, "expected a feature to keep, got none"),
        ({"columns": ["x"], "drop": ["name"]}, ValueError, "expected `columns` or `drop`"),
        ({"where": "x > 3"}, TypeError, "expected `where` to be a function"),
        ({"whree": None}, TypeError, "did you mean `where`"),
        ({"compression": "gzp"}, ValueError, "did you mean 'gzip'"),
        ({"stratify": "x"}, datum.SplitError, "expected fractions"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(kinds, tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        reshard(kinds, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_records_can_be_chosen_by_any_of_their_values(kinds, tmp_path):
    reshard(
        kinds,
        tmp_path / "out",
        where=lambda r: r["flag"] and r["score"] is not None and r["image"].shape[0] == 5,
        drop=["flag", "score", "image"],
    )
    assert numbers(tmp_path / "out") == [n for n in range(60) if n % 2 == 0 and n % 3 == 1]


def test_statistics_are_those_of_the_records_that_are_left(small, tmp_path):
    reshard(small, tmp_path / "out", where=lambda record: 20 <= record["x"] < 30)
    found = datum.load(tmp_path / "out").statistics["train"]
    assert found["records"] == 10
    assert (found["features"]["x"]["numbers"]["min"], found["features"]["x"]["numbers"]["max"]) == (
        20,
        29,
    )


# Records of others.
def test_files_of_others_become_a_dataset_without_a_byte_of_a_record_changed(tmp_path):
    (tmp_path / "in").mkdir()
    for name, kind in (("train-0.tfrecord", None), ("val-0.tfrecord.gz", "gzip")):
        with RecordWriter(tmp_path / "in" / name, compression=kind) as writer:
            for _ in range(5):
                writer.write(UNSORTED)
    reshard(tmp_path / "in", tmp_path / "out")
    made = datum.load(tmp_path / "out")
    assert payloads(tmp_path / "out") == payloads(tmp_path / "out", "val") == [UNSORTED] * 5
    assert made["train"][0] == {"a": 300, "b": 300}
    assert made.compression is None
    assert made.verify().is_sound


def test_foreign_files_are_copied_as_they_are(shared_data, tmp_path):
    folder = shared_data / "foreign_tfrecords"
    for at, name in enumerate(
        (
            "tensorflow__models__object_detection__test_data__pets_examples.record",
            "pytorch__data___fakedata__tfrecord__sequence_example.tfrecord",
            "tensorflow__tfx__data__Split-train__data_tfrecord-00000-of-00001.gz",
        )
    ):
        out = tmp_path / str(at)
        reshard(folder / name, out, compression=None)
        (split,) = datum.load(out)
        assert payloads(out, split) == list(RecordFile(folder / name))
        assert datum.load(out).verify().is_sound


def test_files_loaded_around_their_damage_are_converted_without_it(tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    (tmp_path / "in" / "datum.json").unlink()
    flip(shard_of(tmp_path / "in"), 20)
    with pytest.warns(UserWarning, match="left out"):
        dataset = datum.load(tmp_path / "in", on_error="skip")
    reshard(dataset, tmp_path / "out", shuffle=True)
    assert sorted(numbers(tmp_path / "out")) == list(range(1, 90))


# Publishing.
def test_an_interrupted_call_is_continued(small, tmp_path, monkeypatch):
    reshard(small, tmp_path / "reference", shards=5, shuffle=True)
    finish, done = shards._finish, []

    def fail(job, writer, staging):
        if len(done) == 2:
            writer.abandon()
            raise OSError(5, "the disk went away")
        finish(job, writer, staging)
        done.append(job)

    with monkeypatch.context() as patched:
        patched.setattr(shards, "_finish", fail)
        patched.setattr(shards, "_PENDING_SHARDS", 1)  # one after the other
        with pytest.raises(datum.WriteError, match="went away"):
            reshard(small, tmp_path / "out", shards=5, shuffle=True, workers=1)
    assert not (tmp_path / "out").exists()
    assert reshard(small, tmp_path / "out", shards=5, shuffle=True).resumed_shards == 2
    assert digests(tmp_path / "out") == digests(tmp_path / "reference")


def test_a_dataset_may_take_the_place_of_the_one_it_is_made_of(small, tmp_path):
    with pytest.raises(datum.WriteError, match=r"exists\nhint: overwrite=True replaces it$"):
        reshard(small, small)
    reshard(small, small, shards=2, where=lambda record: record["x"] < 10, overwrite=True)
    assert numbers(small) == list(range(10))
    assert len(list(small.glob("*.tfrecord"))) == 2


def test_a_target_that_is_not_free_is_refused_before_anything_is_read(small, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    asked = []
    with pytest.raises(datum.WriteError, match=r"not empty: notes\.txt"):
        reshard(small, tmp_path / "out", where=asked.append)
    assert not asked


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_damage_is_told_with_the_call_that_saves_the_rest(tmp_path, compression):
    write_numbers(tmp_path / "in", compression=compression)
    flip(shard_of(tmp_path / "in", 1), 100)
    with pytest.raises(datum.DatumError, match=r"train-00001-of-00003[^\n]*\nhint: datum\.repair"):
        reshard(tmp_path / "in", tmp_path / "out")
    shard_of(tmp_path / "in", 1).unlink()
    with pytest.raises(datum.DatumError, match=r"got no such file\nhint: datum\.repair"):
        reshard(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_where_that_keeps_nothing_is_an_error(small, tmp_path):
    with pytest.raises(datum.SourceError, match="`where`: expected a record to be kept, got none"):
        reshard(small, tmp_path / "out", where=lambda record: False)
    gzip = copy(small, tmp_path / "copy")
    reshard(gzip, tmp_path / "gzip", compression="gzip")
    with pytest.raises(datum.SourceError, match="`where`: expected a record to be kept, got none"):
        reshard(tmp_path / "gzip", tmp_path / "out", where=lambda record: False)


# What `datum.write` makes of datasets.
def test_write_takes_datasets_and_splits_and_copies_their_records(kinds, tmp_path):
    dataset = datum.load(kinds)
    datum.write(dataset, tmp_path / "a", shuffle=False, shards=2, progress=False)
    assert digests(tmp_path / "a") == digests(kinds)
    datum.write(dataset["train[:10]"], tmp_path / "b", shuffle=False, progress=False)
    assert payloads(tmp_path / "b") == payloads(kinds)[:10]
    made = datum.load(tmp_path / "b")
    assert made.schema == dataset.schema
    assert made.metadata["image"]["formats"] == {"jpeg": 10}


def test_write_joins_splits_of_several_datasets(small, tmp_path):
    wider = [{"x": 0.5, "text": "half", "more": 1}]
    datum.write(wider, tmp_path / "wider", progress=False)
    sources = {"train": datum.load(small)["train"], "val": datum.load(tmp_path / "wider")["train"]}
    datum.write(sources, tmp_path / "out", shuffle=False, progress=False)
    made = datum.load(tmp_path / "out")
    assert made.schema["x"].dtype == "float32"
    assert made["train"][7] == {"x": 7.0, "text": "t7", "more": None}
    assert made["val"][0] == {"x": 0.5, "text": "half", "more": 1}
    assert made.verify().is_sound


def test_write_joins_stored_records_with_rows(kinds, tmp_path):
    from tests.unit.write.datasets import picture

    reshard(kinds, tmp_path / "few", columns=["x", "image", "mask", "name"])
    more = [{"x": 1, "image": picture(tmp_path / "a.png", 1), "name": "a"}]
    sources = {"train": datum.load(tmp_path / "few")["train"], "val": more}
    datum.write(sources, tmp_path / "out", shuffle=False, progress=False)
    made = datum.load(tmp_path / "out")
    assert made.schema["image"].encoding == "image"
    for mine, theirs in zip(made["train"], datum.load(kinds)["train"], strict=True):
        np.testing.assert_equal(mine["image"], theirs["image"])
        assert mine["x"] == theirs["x"]


def test_write_appends_records_that_are_stored(small, tmp_path):
    reshard(small, tmp_path / "out", where=lambda record: record["x"] < 5)
    split = datum.load(small)["train[80:]"]
    datum.write(split, tmp_path / "out", append=True, shuffle=False, progress=False)
    assert numbers(tmp_path / "out") == [0, 1, 2, 3, 4, *range(80, 90)]
    assert datum.load(tmp_path / "out").verify().is_sound


def test_write_changes_images_of_stored_records_where_asked(kinds, tmp_path):
    datum.write(datum.load(kinds), tmp_path / "out", max_side=4, shuffle=False, progress=False)
    made = datum.load(tmp_path / "out")
    assert {record["image"].shape[:2] for record in made["train"]} <= {(3, 4), (4, 4), (4, 3)}
    assert [int(record["x"]) for record in made["train"]] == list(range(60))
    assert made["train"][0]["sparse"] is None or not len(made["train"][0]["sparse"].values)


def test_write_encodes_features_of_stored_records(small, tmp_path):
    from sklearn.preprocessing import LabelEncoder

    datum.write(
        datum.load(small),
        tmp_path / "out",
        encoders={"text": LabelEncoder()},
        shuffle=False,
        progress=False,
    )
    texts = sorted(f"t{number}" for number in range(90))
    found = [int(record["text"]) for record in datum.load(tmp_path / "out")["train"]]
    assert found == [texts.index(f"t{number}") for number in range(90)]


def test_write_refuses_a_schema_that_lacks_a_feature_of_stored_records(small, tmp_path):
    with pytest.raises(datum.SchemaError, match="feature 'text': not in the schema"):
        datum.write(
            datum.load(small),
            tmp_path / "out",
            schema=datum.Schema({"x": datum.Feature("int64")}),
            progress=False,
        )


def test_write_stores_records_anew_under_another_schema(small, tmp_path):
    features = {"x": datum.Feature("float64")}
    datum.write(datum.load(small), tmp_path / "out", schema=features, shuffle=False, progress=False)
    rows = [{"x": float(number), "text": f"t{number}"} for number in range(90)]
    datum.write(rows, tmp_path / "reference", schema=features, shuffle=False, progress=False)
    assert payloads(tmp_path / "out") == payloads(tmp_path / "reference")
    assert digests(tmp_path / "out") == digests(tmp_path / "reference")


def test_write_puts_damaged_stored_records_aside(tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    flip(shard_of(tmp_path / "in"), 20)
    report = datum.write(
        datum.load(tmp_path / "in"), tmp_path / "out", on_error="quarantine", progress=False
    )
    assert report.quarantined == {"train": 1}
    line = json.loads(report.quarantine.read_text())
    assert line["record"] == 0
    assert line["where"].endswith("train-00000-of-00001.tfrecord (record 0 at byte 0)")
    assert datum.load(tmp_path / "out").statistics["train"]["records"] == 89


def test_write_puts_stored_records_aside_that_are_not_what_their_schema_says(tmp_path):
    write_numbers(tmp_path / "in", shards=1, count=3)
    other = encode([{"x": 1.5, "text": "float"}])
    path = tmp_path / "more.tfrecord"
    path.write_bytes(shard_of(tmp_path / "in").read_bytes() + other.to_bytes())
    dataset = datum.load(path, schema=datum.load(tmp_path / "in").schema)
    with pytest.raises(
        datum.SourceError, match=r"record 3 at byte \d+\): record 3: feature 'x': expected int64"
    ):
        datum.write(dataset, tmp_path / "out", progress=False)
    report = datum.write(dataset, tmp_path / "out", on_error="skip", shuffle=False, progress=False)
    assert report.quarantined == {"train": 1}
    assert numbers(tmp_path / "out") == [0, 1, 2]


def test_floats_stay_what_they_are_unless_they_are_to_be_rounded(tmp_path):
    columns = {"x": np.array([0.1, 0.2]), "t": np.array([1.5, 1e300])}
    datum.write(columns, tmp_path / "in", floats="float64", shuffle=False, progress=False)
    reshard(tmp_path / "in", tmp_path / "same")
    assert payloads(tmp_path / "same") == payloads(tmp_path / "in")
    report = reshard(tmp_path / "in", tmp_path / "rounded", floats="float32")
    assert report.floats.rounded == ("x",)
    assert report.floats.kept == {"t": ("train", 1, 1e300)}
    found = datum.load(tmp_path / "rounded")
    assert dict(found.schema) == {"x": datum.Feature("float32"), "t": datum.Feature("float64")}
    assert [row["x"] for row in found["train"]] == np.float32([0.1, 0.2]).tolist()
    assert found.verify(deep=True).is_sound


@pytest.fixture(scope="module", params=[None, "gzip"])
def part(request, tmp_path_factory):
    """The records of a plain dataset, and of one that is compressed."""
    folder = tmp_path_factory.mktemp("kinds") / "kinds"
    write_kinds(folder, compression=request.param)
    return datum.load(folder)["train"]


def choose(split, where):
    (found,) = split.parts().values()
    made = filter_part(found, where, "train", Progress())
    if hasattr(made, "blocks"):
        return [block for block in made.blocks() if len(block)]
    return [made.read(np.arange(len(made)))] if len(made) else []


def test_a_record_is_what_the_split_gives(part):
    seen = []
    choose(part, lambda record: seen.append(dict(record)))
    assert len(seen) == len(part)
    for mine, theirs in zip(seen, part, strict=True):
        np.testing.assert_equal(
            {name: value for name, value in mine.items() if name != "sparse"},
            {name: value for name, value in theirs.items() if name != "sparse"},
        )


def test_a_record_is_a_mapping_of_all_features(part):
    names = []
    choose(part, lambda record: names.append((list(record), len(record), record.get("no", 7))))
    assert names[0] == (list(KINDS), len(KINDS), 7)


def test_the_records_that_are_left_are_counted_from_0_on(part):
    blocks = choose(part, lambda record: record["x"] % 7 == 0)
    assert np.concatenate([block.numbers for block in blocks]).tolist() == list(range(9))


def test_only_what_is_asked_for_is_parsed(part, monkeypatch):
    made = []
    real = Parser.__init__

    def note(self, schema):
        made.append(list(schema))
        real(self, schema)

    monkeypatch.setattr(Parser, "__init__", note)
    choose(part, lambda record: record["x"] > 3 and record["flag"])
    assert made == [["x"], ["flag"]]


def test_images_are_decoded_when_they_are_asked_for_and_no_others(part, monkeypatch):
    decoded = []
    real = datum.images.decode
    monkeypatch.setattr(datum.images, "decode", lambda *given: decoded.append(1) or real(*given))
    blocks = choose(part, lambda record: record["x"] < 5 and record["image"].ndim == 3)
    assert sum(map(len, blocks)) == len(decoded) == 5


def test_an_unknown_feature_is_told_with_the_nearest(part):
    with pytest.raises(datum.SchemaError, match=r"got 'nmae'\nhint: did you mean 'name'"):
        choose(part, lambda record: record["nmae"])


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (lambda record: 1 / (int(record["x"]) - 5), "record 5: .* got ZeroDivisionError"),
        (lambda record: record["pixels"] > 3, "record 0: .* got ValueError: The truth value"),
        (lambda record: {}["other"], "record 0: .* got KeyError: 'other'"),
    ],
)
def test_an_error_of_the_function_names_the_record(part, where, message):
    with pytest.raises(datum.DatumError, match=f"where: split 'train', {message}") as caught:
        choose(part, where)
    assert caught.value.__cause__ is not None


def test_a_repr_shows_the_values(tmp_path):
    write_numbers(tmp_path / "in", count=3)
    shown = []
    choose(datum.load(tmp_path / "in")["train"], lambda record: shown.append(repr(record)))
    assert shown[1] == "LazyRecord({'x': np.int64(1), 'text': 't1'})"


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


def test_a_folder_that_is_not_there_or_empty_is_free(tmp_path):
    assert check_free(tmp_path / "new", overwrite=False) == (tmp_path / "new").resolve()
    (tmp_path / "empty").mkdir()
    check_free(tmp_path / "empty", overwrite=False)


def test_links_and_the_home_of_the_user_are_followed(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert check_free(tmp_path / "link", overwrite=False) == (tmp_path / "there").resolve()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_free("~/new", overwrite=False) == (tmp_path / "new").resolve()


def test_a_dataset_is_free_only_to_be_replaced(tmp_path):
    write_numbers(tmp_path / "in", count=3)
    with pytest.raises(datum.WriteError, match=r"exists\nhint: overwrite=True replaces it$"):
        check_free(tmp_path / "in", overwrite=False)
    check_free(tmp_path / "in", overwrite=True)


@pytest.mark.parametrize("out", ["", "a\0b", "s3://bucket/x"])
def test_what_is_no_path_of_a_folder_is_refused(out):
    with pytest.raises(datum.WriteError, match="expected the path of a folder on this computer"):
        check_free(out, overwrite=False)


def test_files_and_folders_of_others_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(datum.WriteError, match="expected a folder, got a file"):
        check_free(tmp_path / "file", overwrite=True)
    with pytest.raises(datum.WriteError, match="the target folder is not empty"):
        check_free(tmp_path, overwrite=True)
