"""`datum.measure`, as a user calls it."""

import json

import pytest

import datum
from datum.errors import CorruptRecordError, SplitError
from datum.format import frame

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
