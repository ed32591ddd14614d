"""Objects of users that misbehave: they change, lie, raise, or never end."""

import array
import collections
import dataclasses
import itertools
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from PIL import Image

import datum
from tests.unit.write.datasets import read, values, write


@dataclasses.dataclass
class Plain:
    x: int


@dataclasses.dataclass(slots=True)
class Slotted:
    x: int


class Named(NamedTuple):
    x: list[int]
    y: int


class Lazy(collections.UserDict):
    """A mapping that is no dict."""


class Child(dict):
    pass


REUSED = {
    "dict": (lambda: {"x": 0}, lambda row, i: row.update(x=i)),
    "dict subclass": (lambda: Child(x=0), lambda row, i: row.update(x=i)),
    "mapping": (lambda: Lazy(x=0), lambda row, i: row.update(x=i)),
    "ordered dict": (lambda: collections.OrderedDict(x=0), lambda row, i: row.update(x=i)),
    "dataclass": (lambda: Plain(0), lambda row, i: setattr(row, "x", i)),
    "slots": (lambda: Slotted(0), lambda row, i: setattr(row, "x", i)),
    "named tuple": (lambda: Named([0], 0), lambda row, i: row.x.__setitem__(0, i)),
    "tuple": (lambda: ([0], 0), lambda row, i: row[0].__setitem__(0, i)),
    "keyed": (lambda: {"x": 0}, lambda row, i: row.update(x=i)),
    "list": (lambda: {"x": [0]}, lambda row, i: row["x"].__setitem__(0, i)),
    "list of lists": (lambda: {"x": [[0]]}, lambda row, i: row["x"][0].__setitem__(0, i)),
    "array": (lambda: {"x": np.zeros(1)}, lambda row, i: row["x"].fill(i)),
    "view": (lambda: {"x": np.zeros(9)[4:5]}, lambda row, i: row["x"].base.fill(i)),
    "array of no dimension": (lambda: {"x": np.zeros(())}, lambda row, i: row["x"].fill(i)),
    "array.array": (
        lambda: {"x": array.array("d", [0])},
        lambda row, i: row["x"].__setitem__(0, i),
    ),
    "memoryview": (
        lambda: {"x": memoryview(bytearray(1))},
        lambda row, i: row["x"].__setitem__(0, i),
    ),
    "bytearray": (lambda: {"x": bytearray(1)}, lambda row, i: row["x"].__setitem__(0, i)),
    "image": (
        lambda: {"x": Image.new("L", (1, 1))},
        lambda row, i: row["x"].putpixel((0, 0), i),
    ),
    "sparse": (
        lambda: {"x": scipy.sparse.csr_matrix([[7.0]])},
        lambda row, i: row["x"].data.__setitem__(0, i + 1),
    ),
}


def flat(value):
    if isinstance(value, datum.Sparse):
        return float(value.values[0]) - 1
    if isinstance(value, bytes):
        return value[0]
    return float(np.asarray(value.to_list() if hasattr(value, "to_list") else value).ravel()[0])


@pytest.mark.parametrize("kind", REUSED)
def test_values_are_those_at_the_time_of_the_yield(tmp_path, kind):
    make, change = REUSED[kind]

    def rows():
        row = make()
        for number in range(5):
            change(row, number)
            yield (f"key {number}", row) if kind == "keyed" else row

    write(rows(), tmp_path / "out", shuffle=False)
    assert [flat(value) for value in values(tmp_path / "out")] == [0, 1, 2, 3, 4]


def views(buffer):
    return buffer[:1]


def frames(buffer):
    return np.frombuffer(buffer, buffer.dtype)


def memory(buffer):
    return memoryview(buffer.view(np.uint8)).toreadonly()


def pixels(buffer):
    return Image.frombuffer("L", (2, 2), buffer.view(np.uint8)[:4], "raw", "L", 0, 1)


@pytest.mark.parametrize("wrap", [views, frames, memory, pixels])
def test_new_objects_around_old_memory_are_copied_too(tmp_path, wrap):
    def rows(buffer):
        for number in range(5):
            buffer[:] = number
            yield {"x": wrap(buffer)}

    dtype = np.uint8 if wrap in (memory, pixels) else np.float64
    write(rows(np.zeros(4, dtype)), tmp_path / "out", shuffle=False)
    assert [flat(value) for value in values(tmp_path / "out")] == [0, 1, 2, 3, 4]


def test_one_buffer_can_serve_for_several_features_and_blocks(tmp_path):
    def rows():
        buffer = np.zeros(2)
        inner = {"left": buffer, "right": [buffer, buffer]}
        for number in range(9000):
            buffer[:] = number
            yield {"inner": inner}

    write(rows, tmp_path / "out", shuffle=False)
    for number, row in enumerate(read(tmp_path / "out")):
        assert (row["inner/left"] == number).all()
        assert (row["inner/right"] == number).all()


def raises():
    yield from ({"x": number} for number in range(5000))
    raise RuntimeError("the line was cut")


def stops():
    yield {"x": 1}
    next(iter(()))


@pytest.mark.parametrize("on_error", ["raise", "skip", "quarantine"])
@pytest.mark.parametrize(("rows", "said"), [(raises, "record 5000.*cut"), (stops, "record 1")])
def test_a_generator_that_raises_ends_the_write_with_the_record(tmp_path, rows, said, on_error):
    for source in (rows, rows()):
        with pytest.raises(datum.SourceError, match=said) as caught:
            write(source, tmp_path / "out", on_error=on_error)
        assert caught.value.__cause__ is not None
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exit_within_a_generator_is_not_held_up(tmp_path, error):
    def rows():
        yield {"x": 1}
        raise error

    with pytest.raises(error):
        write(rows(), tmp_path / "out", on_error="quarantine")
    assert not list(tmp_path.iterdir())


def test_an_endless_generator_ends_at_its_first_bad_record(tmp_path):
    def rows():
        for number in itertools.count():
            yield {"x": object() if number == 20_000 else number}

    with pytest.raises(datum.SchemaError, match="record 20000"):
        write(rows(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def hold_itself():
    found = []
    found.append(found)
    return {"x": found}


def deep():
    found = []
    for _ in range(100_000):
        found = [found]
    return {"x": found}


def cyclic():
    found = {}
    found["x"] = found
    return found


GARBAGE = [
    5,
    None,
    "text",
    b"bytes",
    [1, 2],
    {"x": object()},
    {"x": lambda: 1},
    {"x": {1, 2}},
    {"x": open},
    {"x": Ellipsis},
    {"x": (number for number in range(3))},
    {"x": [1, "a"]},
    {"x": [1, None]},
    {"x": [[1], 2]},
    {"x": np.array([object()])},
    {"x": np.ma.array([1, 2], mask=[True, False])},
    {"x": 2**64},
    {"x": "\ud800"},
    {1: 2},
    {None: 1},
    {"\ud800": 1},
    {("a", "b"): 1},
    {"x": {"y": 1}, "x/y": 2},
    hold_itself(),
    deep(),
    cyclic(),
]


@pytest.mark.parametrize("kind", [list, iter])
def test_garbage_among_rows_is_rejected_one_by_one(tmp_path, kind):
    good = [{"x": number} for number in range(len(GARBAGE))]
    mixed = [*itertools.chain.from_iterable(zip(good, GARBAGE, strict=True)), {"x": -1}]
    out = tmp_path / "out"
    report = write(kind(mixed), out, on_error="quarantine")
    assert sorted(values(out)) == [-1, *range(len(GARBAGE))]
    told = [json.loads(line) for line in (out / "quarantine.jsonl").read_text().splitlines()]
    assert [one["record"] for one in told] == list(range(1, 2 * len(GARBAGE), 2))
    assert all(one["reason"] for one in told)
    assert report.quarantined == {"train": len(GARBAGE)}


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_garbage_is_an_error_that_names_the_record(tmp_path, number):
    for kind in (list, iter):
        with pytest.raises((datum.SourceError, datum.SchemaError), match="record 1"):
            write(kind([{"x": 1}, GARBAGE[number]]), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@dataclasses.dataclass
class Lying:
    """A dataset whose length is not how many records it has."""

    length: int
    real: int = 5

    def __len__(self):
        return self.length

    def __getitem__(self, number):
        if number >= self.real:
            raise IndexError(number)
        return {"x": number}


def test_a_length_that_is_too_great_is_told(tmp_path):
    with pytest.raises(datum.SourceError, match="record 5.*IndexError"):
        write(Lying(7), tmp_path / "out", workers=1)
    report = write(Lying(7), tmp_path / "out", workers=1, on_error="quarantine")
    assert report.records == 5
    assert report.quarantined == {"train": 2}


@pytest.mark.parametrize("length", [-1, 2**63])
def test_a_length_that_is_none_is_told(tmp_path, length):
    with pytest.raises(datum.SourceError, match="__len__|length|ValueError|OverflowError"):
        write(Lying(length), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_generator_may_write_another_dataset(tmp_path):
    def rows():
        write([{"y": 2}], tmp_path / "other")
        yield {"x": 1}

    write(rows(), tmp_path / "out")
    assert values(tmp_path / "out") == [1]
    assert values(tmp_path / "other", "y") == [2]


def test_a_generator_cannot_write_its_own_target(tmp_path):
    def rows():
        write([{"y": 2}], tmp_path / "out")
        yield {"x": 1}

    with pytest.raises(datum.SourceError, match="another process is writing"):
        write(rows(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_dataset_can_be_made_anew_from_itself(tmp_path):
    out = tmp_path / "out"
    write([{"x": number} for number in range(9000)], out)
    doubled = ({"x": 2 * row["x"]} for row in datum.load(out)["train"])
    write(doubled, out, overwrite=True)
    assert sorted(values(out)) == list(range(0, 18_000, 2))


def test_a_text_of_many_megabytes_is_stored_whole_and_not_in_the_manifest(tmp_path):
    out = tmp_path / "out"
    long = "é" * 20_000_000
    write([{"x": long}, {"x": "short"}], out)
    assert sorted(values(out), key=len) == ["short", long]
    assert (out / "datum.json").stat().st_size < 10_000


def test_thousands_of_features_are_kept_apart(tmp_path):
    rows = [{f"f{name}": number * name for name in range(2000)} for number in range(5)]
    write(rows, tmp_path / "out", shuffle=False)
    assert read(tmp_path / "out") == rows


NAMES = ["", " ", "a/b", "é", "e\u0301", "a\nb", "a\0b", "x" * 10_000, "__class__", "datum.json"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_text_are_kept(tmp_path, name):
    write([{name: [[1], [2, 3]]}, {name: [[4]]}], tmp_path / "out", shuffle=False)
    found = [[part.tolist() for part in row[name]] for row in read(tmp_path / "out")]
    assert found == [[[1], [2, 3]], [[4]]]
    assert datum.load(tmp_path / "out").verify().is_sound


@pytest.mark.parametrize(
    "row",
    [
        {"x": [[1], [2, 3]], "x_lengths_1": 1},
        {"x": scipy.sparse.csr_matrix([[1]]), "x_index": 1},
        {"x": scipy.sparse.csr_matrix([[1]]), "x_value": 1},
    ],
)
def test_names_that_generated_keys_have_are_refused(tmp_path, row):
    for source in ([row], iter([row]), [row, {**row, "more": 1}]):
        with pytest.raises(datum.SchemaError, match="'x'.*'x_"):
            write(source, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_nothing_is_unpickled_called_or_read_that_a_row_only_mentions(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

        def __call__(self):
            (tmp_path / "sprung").mkdir()

    for value in (Trap(), Trap, [Trap()], np.array([Trap()], object)):
        with pytest.raises((datum.SchemaError, datum.SourceError)):
            write([{"x": value}], tmp_path / "out", workers=2)
    with pytest.raises(datum.SourceError, match="no such file"):
        write([{"x": Path("/nonexistent/image.png")}], tmp_path / "out")
    write([{"x": "/etc/hostname"}], tmp_path / "out")
    assert values(tmp_path / "out") == ["/etc/hostname"]
    assert not (tmp_path / "sprung").exists()
