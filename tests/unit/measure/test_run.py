"""`datum.measure`, from the request to the figures."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import datum
from datum._inspect.measure import contenders, measurement, run
from datum._inspect.measure.contenders import MEASURED, STAGES, go_through, stage_contenders
from datum._inspect.measure.run import Asked, measure_records
from datum._inspect.measure.timing import choose_records, spread, take_sample
from datum._load.options import LoadOptions
from datum.errors import CorruptRecordError, SplitError
from datum.format import RecordFile, frame


def asked(dataset, **options):
    return Asked(
        name="given",
        dataset=dataset,
        split=dataset["train"],
        options=LoadOptions(batch_size=16, **options),
        seconds=0.01,
        workers=1,
        progress=None,
    )


def test_to_numpy_is_always_there_to_compare_with(numbers):
    found = measure_records(asked(numbers), [])
    assert [speed.name for speed in found.speeds] == ["to_numpy"]
    assert found.path == "given"


def test_a_loader_that_fails_keeps_nothing_from_being_measured(numbers, monkeypatch):
    def entries(framework, sample, settings):
        def fail():
            raise OSError("no processes\nhere")

        yield run.Entry("numpy", "broken", "", fail)
        yield from run_entries(framework, sample, settings)

    run_entries = run.loader_entries
    monkeypatch.setattr(run, "loader_entries", entries)
    broken, sound = measure_records(asked(numbers), ["numpy"]).speeds
    assert (broken.name, broken.problem) == ("broken", "no processes")
    assert sound.records_per_s > 0


def test_what_is_missing_is_listed(numbers, monkeypatch):
    versions = {"numpy": "2"}
    monkeypatch.setattr(run, "find_version", lambda name, is_needed: versions.get(name))
    found = measure_records(asked(numbers), None)
    assert found.missing == ("torch", "jax", "tf")


def test_records_are_chosen_by_how_long_they_take(numbers, monkeypatch):
    monkeypatch.setattr(run, "_probe", lambda few, options, long_s: long_s / 20)
    assert measure_records(asked(numbers), []).measured_records == 32


QUICK = {"seconds": 0.01, "frameworks": ["numpy"]}


def test_a_dataset_may_be_given_or_its_path(numbers):
    one = datum.measure(numbers, **QUICK)
    other = datum.measure(numbers.path, **QUICK)
    assert one.path == other.path == str(numbers.path)
    assert one.records == other.records == 96


def test_stages_and_loaders_are_told_with_shares_that_add_up(numbers):
    found = datum.measure(numbers, **QUICK)
    assert [stage.name for stage in found.stages] == ["read", "crc", "parse", "shuffle", "batch"]
    assert sum(stage.share for stage in found.stages) == pytest.approx(1.0)
    assert all(stage.us_per_record >= 0 for stage in found.stages)
    assert found.bottleneck.stage in {stage.name for stage in found.stages}
    assert found.speeds[0].records_per_s > 0
    json.dumps(found.to_json())


def test_images_and_a_function_are_stages(photos):
    found = datum.measure(photos, map=lambda record: record, shuffle=False, **QUICK)
    names = [stage.name for stage in found.stages]
    assert names == ["read", "crc", "parse", "decode", "callback", "batch"]
    assert "<lambda>" in found.options["map"]


def test_progress_goes_up_to_its_end(numbers):
    told = []
    datum.measure(numbers, progress=lambda done, total: told.append((done, total)), **QUICK)
    done = [one for one, _ in told]
    assert done == sorted(done)
    assert done[0] == 0
    assert all(one <= total for one, total in told)
    assert told[-1] == (told[-1][1] - 1, told[-1][1])  # when the last turn starts


def test_without_train_the_first_split_is_measured(tmp_path):
    datum.write({"x": range(9)}, tmp_path / "d", splits={"test": 1.0}, progress=False)
    assert datum.measure(tmp_path / "d", **QUICK).split == "test"


def test_a_part_of_a_split_may_be_asked_for(numbers):
    assert datum.measure(numbers, split="train[:10]", **QUICK).records == 10


def test_records_that_are_no_examples_are_read_and_checked(tmp_path):
    path = tmp_path / "texts.tfrecord"
    path.write_bytes(frame([b"just text", b"and more"] * 20).to_bytes())
    found = datum.measure(path, **QUICK)
    assert [stage.name for stage in found.stages] == ["read", "crc"]
    assert found.speeds == ()
    assert found.advice == ()
    assert "only read and checked" in found.notes[0]
    assert found.path == str(path)


def test_records_that_others_wrote_are_measured_like_all_others(tmp_path, numbers):
    shard = next(numbers.path.glob("train-00000*.tfrecord"))
    path = tmp_path / "foreign.tfrecord"
    path.write_bytes(shard.read_bytes())
    found = datum.measure(path, **QUICK)
    assert [stage.name for stage in found.stages][-1] == "batch"


def test_damage_is_an_error_that_names_it(tmp_path):
    datum.write({"x": range(50)}, tmp_path / "d", progress=False)
    (shard,) = (tmp_path / "d").glob("*.tfrecord")
    data = bytearray(shard.read_bytes())
    data[14] ^= 1
    shard.write_bytes(data)
    with pytest.raises(CorruptRecordError, match=f"{shard.name}: record 0 at byte 0"):
        datum.measure(tmp_path / "d", **QUICK)


def test_an_empty_split_cannot_be_measured(tmp_path):
    path = tmp_path / "empty.tfrecord"
    path.write_bytes(b"")
    with pytest.raises(SplitError, match="expected records to measure with, got none"):
        datum.measure(path, **QUICK)


def test_no_dataset_is_what_load_says_of_it(tmp_path):
    with pytest.raises(datum.ManifestError, match="no such folder or file"):
        datum.measure(tmp_path / "none", **QUICK)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seconds": 0}, ValueError, "expected `seconds` above 0, got 0"),
        ({"seconds": float("nan")}, ValueError, "expected `seconds` above 0"),
        ({"seconds": "2"}, TypeError, "expected `seconds` to be a number"),
        ({"workers": 0}, ValueError, "expected `workers` of 1 or more"),
        ({"batch_size": 0}, ValueError, "expected `batch_size` of 1 or more"),
        ({"threads": 0}, ValueError, "expected `threads` of 1 or more"),
        ({"columns": ["z"]}, ValueError, "expected `columns` to name features, got 'z'"),
        ({"frameworks": "tourch"}, ValueError, "did you mean 'torch'"),
        ({"split": "trian"}, SplitError, "did you mean 'train'"),
        ({"map": 3}, TypeError, "expected `map` to be a function"),
    ],
)
def test_wrong_options_are_refused(numbers, options, error, message):
    with pytest.raises(error, match=message):
        datum.measure(numbers, **(QUICK | options))


def test_errors_of_the_function_are_its_own(numbers):
    def fail(record):
        raise ZeroDivisionError("by the user")

    with pytest.raises(ZeroDivisionError, match="by the user"):
        datum.measure(numbers, map=fail, **QUICK)


@pytest.mark.parametrize(
    ("available", "record_s", "expected"),
    [
        (10**6, 1e-4, 1984),  # a fifth of a turn
        (10**6, 2e-3, 256),  # a few batches
        (10**6, 8e-3, 64),  # what there is time for
        (10**6, 1.0, 64),  # one batch at least
        (10**6, 0.0, 10**6),
        (10, 1e-3, 10),
    ],
)
def test_records_fill_a_part_of_a_turn_in_whole_batches(available, record_s, expected):
    found = choose_records(available=available, batch_size=64, record_s=record_s, turn_s=1.0)
    assert found == expected


@pytest.mark.parametrize(
    ("lengths", "wanted", "expected"),
    [
        ([100], 30, [(0, 30)]),
        ([100, 100], 30, [(0, 15), (1, 15)]),
        ([100] * 4, 4, [(0, 1), (1, 1), (2, 1), (3, 1)]),
        ([100] * 4, 2, [(0, 1), (1, 1)]),
        ([3, 3, 3], 100, [(0, 3), (1, 3), (2, 3)]),
        ([1] * 10, 6, [(0, 1), (1, 1), (3, 1), (5, 1), (6, 1), (8, 1)]),
        ([1, 50, 1, 50], 40, [(0, 1), (1, 19), (2, 1), (3, 19)]),
    ],
)
def test_records_come_from_all_over(lengths, wanted, expected):
    assert spread(lengths, wanted) == expected


@pytest.mark.parametrize("wanted", [1, 7, 60, 96, 1000])
def test_as_many_records_are_taken_as_are_wanted(numbers, wanted):
    sample = take_sample(numbers["train"], wanted)
    assert sample.records == min(wanted, 96)
    assert sum(len(piece.offsets) for piece in sample.pieces) == sample.records


def test_pieces_hold_the_bytes_of_the_records(numbers):
    sample = take_sample(numbers["train"], 30)
    for piece, part in zip(sample.pieces, sample.split.runs, strict=True):
        records = RecordFile(piece.path)
        found = RecordFile(memoryview(piece.read()))
        assert list(found) == records[part.start : part.stop]
    assert sample.bytes == sum(piece.end - piece.start for piece in sample.pieces)


def test_a_part_of_a_split_is_sampled_from_that_part(numbers):
    sample = take_sample(numbers["train[50:60]"], 10)
    found = sorted(int(record["x"]) for record in sample.split)
    assert found == sorted(int(record["x"]) for record in numbers["train[50:60]"])


def test_compressed_shards_are_measured_as_plain_files(squeezed):
    sample = take_sample(squeezed["train"], 20)
    assert sample.records == 20
    assert all(RecordFile(piece.path).compression is None for piece in sample.pieces)


def test_records_of_damaged_files_are_found_by_where_they_are(tmp_path):
    from datum._inspect.measure.timing import _lengths_at
    from datum.format import frame

    path = tmp_path / "two.tfrecord"
    path.write_bytes(frame([b"four", b"sixsix"]).to_bytes())
    assert _lengths_at(path, np.array([0, 20])).tolist() == [4, 6]


def test_a_file_that_lost_its_end_is_refused(tmp_path):
    datum.write({"x": range(10)}, tmp_path / "d", progress=False)
    sample = take_sample(datum.load(tmp_path / "d")["train"], 10)
    (piece,) = sample.pieces
    piece.path.write_bytes(piece.path.read_bytes()[:-5])
    with pytest.raises(CorruptRecordError, match="expected .* bytes, got"):
        piece.read()


def doubled(record):
    return {**record, "label": record["label"] * 2}


def names(sample, options):
    return [contender.name for contender in stage_contenders(sample, options)]


def test_both_orders_name_the_same_stages():
    assert sorted(MEASURED) == sorted(STAGES)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, ["read", "crc"]),
        (LoadOptions(shuffle=False), ["read", "crc", "parse", "batch"]),
        (LoadOptions(shuffle=True), ["read", "crc", "parse", "batch", "shuffle"]),
    ],
)
def test_stages_of_numbers(numbers, options, expected):
    assert names(take_sample(numbers["train"], 20), options) == expected


def test_images_and_functions_are_stages_of_their_own(photos):
    sample = take_sample(photos["train"], 8)
    assert names(sample, LoadOptions(shuffle=True, map=doubled)) == list(MEASURED)
    assert "decode" not in names(sample, LoadOptions(decode=False))
    assert "decode" not in names(sample, LoadOptions(columns=["label"]))


@pytest.mark.parametrize("passes", [1, 3])
def test_every_stage_goes_through_all_records_as_often_as_asked(photos, passes):
    sample = take_sample(photos["train"], 8)
    options = LoadOptions(batch_size=3, shuffle=True, map=doubled)
    for contender in stage_contenders(sample, options):
        assert len(list(contender.run(passes))) == passes * contender.batches, contender.name


def test_what_one_thread_makes_is_what_to_numpy_gives(numbers):
    options = LoadOptions(batch_size=10, shuffle=True, epochs=2)
    ours = list(go_through(numbers["train"], options))
    theirs = list(numbers.to_numpy("train", batch_size=10, shuffle=True, epochs=2))
    assert len(ours) == len(theirs) == 20
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() == other.keys()
        np.testing.assert_array_equal(one["x"], other["x"])
        assert one["name"].tolist() == other["name"].tolist()
        assert one["tags"].to_list() == other["tags"].to_list()


def test_the_last_stage_gives_what_the_function_made(photos):
    sample = take_sample(photos["train"], 8)
    options = LoadOptions(batch_size=8, map=doubled)
    *_, last = stage_contenders(sample, options)
    (batch,) = last.run(1)
    assert sorted(batch["label"].tolist()) == list(range(0, 16, 2))
    assert batch["image"].shape == (8, 320, 320, 3)


def test_processor_time_counts_unless_a_function_may_wait(photos):
    sample = take_sample(photos["train"], 8)
    plain = {contender.clock for contender in stage_contenders(sample, LoadOptions())}
    mapped = {contender.clock for contender in stage_contenders(sample, LoadOptions(map=doubled))}
    assert len(plain) == len(mapped) == 1
    assert plain != mapped


def test_damage_names_file_record_and_offset(tmp_path):
    datum.write({"x": range(20)}, tmp_path / "d", shuffle=False, progress=False)
    split = datum.load(tmp_path / "d")["train[5:15]"]
    sample = take_sample(split, 10)
    (piece,) = sample.pieces
    data = bytearray(piece.path.read_bytes())
    data[int(piece.offsets[2]) + 13] ^= 1
    piece.path.write_bytes(data)
    check = stage_contenders(sample, None)[1]
    with pytest.raises(CorruptRecordError, match="record 7 at byte .*payload checksum") as raised:
        list(check.run(1))
    assert raised.value.damage.record == 7
    assert raised.value.damage.offset == piece.offsets[2]


def test_all_that_comes_before_is_part_of_a_stage(numbers):
    """Options of later stages differ from those before in one thing."""
    from datum._inspect.measure.contenders import _pipelines

    options = LoadOptions(batch_size=7, shuffle="blocks", columns=["x"])
    (_, batch), (name, shuffled) = _pipelines(numbers["train"], options)
    assert name == "shuffle"
    assert replace(batch, shuffle="blocks") == shuffled


def test_this_machine_has_a_processor_and_python():
    found = measurement.find_machine({"torch": "9"})
    assert found.cpu
    assert found.cores >= 1
    assert list(found.versions) == ["Python", "torch"]


def test_without_a_file_on_the_processor_the_system_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement, "_CPU_FILE", tmp_path / "none")
    assert measurement.find_machine({}).cpu


def test_the_name_of_a_processor_has_no_runs_of_blanks(tmp_path, monkeypatch):
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nmodel name\t: Some   CPU  @ 2 GHz\n")
    monkeypatch.setattr(measurement, "_CPU_FILE", file)
    assert measurement.find_machine({}).cpu == "Some CPU @ 2 GHz"


def test_memory_may_be_unknown(monkeypatch):
    def refuse(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(measurement.os, "sysconf", refuse)
    assert measurement.find_machine({}).memory_bytes is None


def test_a_few_bytes_tell_nothing_of_a_disk(numbers):
    assert contenders.measure_disk(take_sample(numbers["train"], 96).pieces, seconds=1) is None


def large(tmp_path):
    datum.write({"x": [os.urandom(2**16)] * 40}, tmp_path / "d", progress=False)
    return take_sample(datum.load(tmp_path / "d")["train"], 40).pieces


def test_bytes_that_come_as_fast_as_from_memory_tell_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "_read_whole", lambda parts: 0.5)
    assert contenders.measure_disk(large(tmp_path), seconds=1) is None


def test_the_speed_is_that_of_the_first_read(tmp_path, monkeypatch):
    pieces = large(tmp_path)
    total = sum(piece.end - piece.start for piece in pieces)
    times = iter([2.0, 0.1] * contenders.ROUNDS)
    monkeypatch.setattr(contenders, "_read_whole", lambda parts: next(times))
    assert contenders.measure_disk(pieces, seconds=1) == total / 2.0


def test_only_compressed_files_are_inflated(numbers, squeezed):
    assert contenders.inflating_s(take_sample(numbers["train"], 10)) is None
    assert contenders.inflating_s(take_sample(squeezed["train"], 10)) > 0


def test_opening_is_told_for_one_shard(numbers):
    assert contenders.opening_s(numbers["train"], LoadOptions()) >= 0
