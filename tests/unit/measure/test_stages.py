"""The stages that there are, and that they do what they are named after."""

from dataclasses import replace

import numpy as np
import pytest

import datum
from datum._inspect.measure.contenders import MEASURED, STAGES, go_through, stage_contenders
from datum._inspect.measure.timing import take_sample
from datum._load.options import LoadOptions
from datum.errors import CorruptRecordError


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
