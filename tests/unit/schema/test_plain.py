import array
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib

import numpy as np
import pytest

from datum import BytesColumn, Ragged, SchemaError, Sparse
from datum.schema import ImageBytes, plain_row, plain_value
from datum.schema.plain import is_picture, plain_times, sparse_from_scipy

EAST = dt.timezone(dt.timedelta(hours=2))


class Color(enum.Enum):
    RED = "red"
    NESTED = (1, dt.date(2020, 1, 2))


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Box:
    x: int
    color: Color = Color.RED


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            1,
            0.5,
            1j,
            "a",
            b"a",
            [1, [2.5]],
            (1, "a"),
            np.int8(1),
            np.datetime64(1, "s"),
        ),
        *(pathlib.Path("a.jpg"), ImageBytes(b"a"), np.zeros(3), np.array(["a"])),
    ],
    ids=repr,
)
def test_plain_values_are_left_alone(value):
    assert plain_value(value) is value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Color.RED, "red"),
        (Color.NESTED, (1, np.datetime64("2020-01-02"))),
        (Level.LOW, 1),
        ([Color.RED, "b"], ["red", "b"]),
        (bytearray(b"a"), b"a"),
        (memoryview(b"ab")[::-1], b"ba"),
        (dt.date(2020, 1, 2), np.datetime64("2020-01-02")),
        (dt.datetime(2020, 1, 2, 3, 4, 5, 6), np.datetime64("2020-01-02T03:04:05.000006")),
        (dt.datetime(2020, 1, 2, tzinfo=EAST), np.datetime64("2020-01-01T22:00:00.000000")),
        (dt.datetime(1, 1, 1, tzinfo=EAST), np.datetime64("0000-12-31T22:00:00.000000")),
        (dt.timedelta(days=1, microseconds=2), np.timedelta64(86_400_000_002, "us")),
        (dt.time(1, 2, 3, 4), np.timedelta64(3_723_000_004, "us")),
        (np.array([1, "a"], object), [1, "a"]),
        (np.array(Color.RED, object), "red"),
        (array.array("h", [1, 2]), np.array([1, 2], np.int16)),
        (BytesColumn.from_values(["a", "b"]), ["a", "b"]),
        (Ragged(np.array([1, 2], np.int8), np.array([0, 2])), [np.array([1, 2], np.int8)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_values_have_plain_ones_that_stand_for_them(value, plain):
    found = plain_value(value)
    assert type(found) is type(plain)
    assert np.array_equal(found, plain)
    assert getattr(found, "dtype", None) == getattr(plain, "dtype", None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (decimal.Decimal(1), "Decimal'>\nhint: schema="),
        ({2, 1}, "set'>\nhint: make it a sorted list"),
        ([{"a": 1}], "dict'>\nhint: a list of dicts may hold nothing else"),
        (object(), "object'>\nhint: make it one of these, or leave it out"),
        (np.ma.masked_array([1], [True]), "expected an array without a mask"),
        (dt.time(1, tzinfo=EAST), "expected a time of day without a zone"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_nothing_stands_for_is_refused_with_a_hint(value, problem):
    with pytest.raises(SchemaError, match=problem):
        plain_value(value)


def test_a_released_view_is_refused():
    view = memoryview(b"a")
    view.release()
    with pytest.raises(SchemaError, match="expected bytes, got"):
        plain_value(view)


def test_values_that_hold_themselves_are_refused():
    endless: list[object] = []
    endless.append(endless)
    holder = np.empty((), object)
    holder[()] = holder
    row: dict[str, object] = {}
    row["x"] = row
    for value in (endless, holder):
        with pytest.raises(SchemaError, match="without end"):
            plain_value(value)
    with pytest.raises(SchemaError, match="without end"):
        plain_row(row)


def test_whatever_makes_an_array_is_one():
    class Tensor:
        def detach(self):
            return self

        def cpu(self):
            return np.array([1.5], np.float32)

        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("on a device")

    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("no memory")

    assert plain_value(Tensor()).dtype == np.float32
    with pytest.raises(SchemaError, match=r"expected an array, got .*Broken'>: no memory"):
        plain_value(Broken())


def test_subclasses_of_arrays_are_made_plain(tmp_path):
    mapped = np.memmap(tmp_path / "a", np.uint8, "w+", shape=(2,))
    assert type(plain_value(mapped)) is np.ndarray


def test_times_of_pandas_keep_their_nanoseconds_and_missing_ones_are_absent():
    pandas = pytest.importorskip("pandas")
    stamp = pandas.Timestamp("2020-01-01 00:00:00.000000001", tz="UTC")
    assert plain_value(stamp) == np.datetime64("2020-01-01T00:00:00.000000001")
    assert plain_value(pandas.Timedelta(1, "ns")) == np.timedelta64(1, "ns")
    assert plain_value(pandas.NaT) is None
    assert plain_value(pandas.NA) is None


def test_rows_of_scipy_lose_their_first_dimension_and_duplicates_are_summed():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    row = plain_value(scipy_sparse.csr_array(np.array([[0, 5, 0, 7]])))
    assert isinstance(row, Sparse)
    assert row.dense_shape == (4,)
    assert row.to_dense().tolist() == [0, 5, 0, 7]
    assert plain_value(scipy_sparse.csr_array(np.eye(2))).dense_shape == (2, 2)
    twice = scipy_sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(1, 3))
    assert sparse_from_scipy(twice).values.tolist() == [3]
    assert twice.nnz == 2


def test_a_row_of_parts_is_flattened():
    row = {"id": 1, "box": Box(2), "meta": {"a": {"b": None}, "empty": {}}}
    assert plain_row(row) == {"id": 1, "box/x": 2, "box/color": "red", "meta/a/b": None}
    assert plain_row(Box(3)) == {"x": 3, "color": "red"}


@pytest.mark.parametrize(
    ("row", "feature", "problem"),
    [
        ({"a": {"b": 1}, "a/b": 2}, "a/b", "expected one value of this name, got two"),
        ({"a": {"b": {1}}}, "a/b", "expected numbers"),
        ({3: 1}, None, "expected names that are str, got 3"),
        ([("a", 1)], None, "expected a dict of values, got <class 'list'>"),
        (Box, None, "expected a dict of values, got <class 'type'>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_row_that_cannot_be_made_plain_names_its_feature(row, feature, problem):
    with pytest.raises(SchemaError, match=problem) as caught:
        plain_row(row)
    assert caught.value.feature == feature


def test_pictures_are_told_by_what_they_are():
    pillow = pytest.importorskip("PIL.Image")
    assert is_picture(pathlib.Path("a.png"))
    assert is_picture(pillow.new("RGB", (1, 1)))
    assert is_picture(ImageBytes(b""))
    assert not is_picture(b"")
    assert not is_picture("a.png")


@pytest.mark.parametrize("zones", [[None, None], [EAST, dt.UTC], [EAST, None]])
def test_many_times_are_what_each_is(zones):
    stamps = [dt.datetime(1, 1, 1, tzinfo=zones[0]), dt.datetime(2020, 1, 2, 3, tzinfo=zones[1])]
    found = plain_times(stamps)
    assert found.dtype == "datetime64[us]"
    assert found.tolist() == np.array(list(map(plain_value, stamps))).tolist()


def test_only_times_of_one_kind_make_one_array():
    assert plain_times([dt.date(2020, 1, 2)]).dtype == "datetime64[D]"
    for mixed in ([dt.datetime(2020, 1, 2), dt.date(2020, 1, 2)], [None], [], [1]):
        assert plain_times(mixed) is None


@pytest.mark.parametrize("days", [106_751_992, -106_751_992, 999_999_999])
def test_a_time_span_beyond_64_bits_of_microseconds_is_refused(days):
    for value in (dt.timedelta(days), [dt.timedelta(1), dt.timedelta(days)]):
        with pytest.raises(SchemaError, match=r"time span of at most .* got -?\d+ days"):
            plain_value(value)
    assert plain_value(dt.timedelta(106_751_991)) == np.timedelta64(106_751_991, "D")
