import io

import numpy as np
import pytest
from PIL import Image

import datum
from datum import Feature, Schema, Sparse
from datum._read.tables import iterate_rows, single_row
from datum.errors import SourceError
from datum.format import encode, parse


def rows_of(rows, schema):
    batch = parse(encode(rows, schema), schema)
    found = list(iterate_rows(batch, schema, range(len(rows)), where="here"))
    for row, record in zip(rows, found, strict=True):
        alone = single_row(parse(encode([row], schema), schema), schema, 0, where="here")
        assert repr(alone) == repr(record)
        assert [type(value) for value in alone.values()] == [type(v) for v in record.values()]
    return found


@pytest.mark.parametrize(
    ("feature", "value", "kind"),
    [
        (Feature("int64"), 5, np.int64),
        (Feature("uint8"), 255, np.uint8),
        (Feature("bool"), True, np.bool_),
        (Feature("float32"), 0.5, np.float32),
        (Feature("float64"), 1e300, np.float64),
        (Feature("complex64"), 1 + 2j, np.complex64),
        (Feature("str"), "é", str),
        (Feature("bytes"), b"\xff", bytes),
        (Feature("datetime64[us]"), np.datetime64("2020-01-02T03:04:05", "us"), np.datetime64),
    ],
)
def test_a_scalar_comes_back_of_its_type(feature, value, kind):
    (row,) = rows_of([{"x": value}], Schema({"x": feature}))
    assert type(row["x"]) is kind
    assert row["x"] == value


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Feature("int16", (2, 2)), [[1, 2], [3, 4]]),
        (Feature("float32", (None,)), [1.5]),
        (Feature("float32", (None,)), []),
        (Feature("uint8", (None, 2)), [[1, 2], [3, 4], [5, 6]]),
        (Feature("uint8", (None, None), encoding="raw"), [[1, 2, 3]]),
        (Feature("float64", (2,)), [1e300, -0.0]),
    ],
)
def test_arrays_come_back_of_their_type_and_shape(feature, value):
    blank = [] if None in feature.shape and feature.encoding == "values" else value
    first, second = rows_of([{"x": value}, {"x": blank}], Schema({"x": feature}))
    assert isinstance(first["x"], np.ndarray)
    assert first["x"].dtype == feature.dtype
    assert first["x"].tolist() == value
    assert second["x"].tolist() == blank


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Feature("str", (2,)), ["a", "b"]),
        (Feature("bytes", (2, 1)), [[b"a"], [b"b"]]),
        (Feature("str", (None,)), ["a", "", "c"]),
        (Feature("str", (None, None)), [["a"], [], ["b", "c"]]),
    ],
)
def test_several_strings_are_lists(feature, value):
    (row,) = rows_of([{"x": value}], Schema({"x": feature}))
    assert row["x"] == value


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64", "bool"])
@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (3, 2)],
        [(20, 30), (30, 20)],  # integers of more than 256 values are stored in another way
        [(2, 3), (30, 20)],
        [(2, 3, 4), (3, 2, 4)],
        [(2, 3, 4), (1, 5, 2)],
        [(2, 1), (1, 0), (4, 4)],
        [(2,), (0,), (5,)],
    ],
)
def test_arrays_of_any_shapes_come_back_as_arrays(tmp_path, shapes, dtype):
    values = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) for shape in shapes]
    rows = [{"x": value} for value in values]
    datum.write(rows, tmp_path / "out", shuffle=False, floats="float64", progress=False)
    train = datum.load(tmp_path / "out")["train"]
    for found in (list(train), [train[i] for i in range(len(train))], train[:]):
        for row, value in zip(found, values, strict=True):
            assert isinstance(row["x"], np.ndarray)
            assert row["x"].dtype == value.dtype
            assert row["x"].shape == value.shape
            assert np.array_equal(row["x"], value)
    assert [value.shape for value in train.to_pandas()["x"]] == shapes


def test_only_rows_that_differ_within_a_record_are_a_list(tmp_path):
    values = [[[1, 2], [3]], [[1, 2], [3, 4]], [[5]], [], [[]]]
    datum.write([{"x": value} for value in values], tmp_path / "out", shuffle=False, progress=False)
    uneven, even, single, *empty = (row["x"] for row in datum.load(tmp_path / "out")["train"])
    assert [item.tolist() for item in uneven] == values[0]
    assert (even.tolist(), single.tolist()) == (values[1], values[2])
    assert [value.shape for value in empty] == [(0, 0), (1, 0)]


def test_what_is_ragged_twice_is_a_list_of_arrays():
    schema = Schema({"x": Feature("int8", (None, None))})
    (row,) = rows_of([{"x": [[1, 2], [], [3]]}], schema)
    assert [item.tolist() for item in row["x"]] == [[1, 2], [], [3]]
    assert all(item.dtype == np.int8 for item in row["x"])


def test_what_is_absent_is_none():
    schema = Schema(
        {
            "x": Feature("int64", optional=True),
            "words": Feature("str", (None,), optional=True),
            "d": Feature("int64", default=7),
        }
    )
    first, second = rows_of([{}, {"x": 1, "words": ["a"], "d": 2}], schema)
    assert first == {"x": None, "words": None, "d": 7}
    assert second == {"x": 1, "words": ["a"], "d": 2}


def test_sparse_values_are_told_by_record():
    schema = Schema({"x": Feature("float32", (5,), encoding="sparse")})
    values = [([1, 3], [1.0, 2.0]), ([], []), ([0], [3.0])]
    rows = rows_of([{"x": value} for value in values], schema)
    for row, (places, items) in zip(rows, values, strict=True):
        assert isinstance(row["x"], Sparse)
        assert row["x"].dense_shape == (5,)
        assert row["x"].indices[:, 0].tolist() == places
        assert row["x"].values.tolist() == items


def test_records_without_features_are_empty():
    assert list(iterate_rows({}, Schema({}), range(2), where="here")) == [{}, {}]


def picture(array) -> bytes:
    data = io.BytesIO()
    Image.fromarray(array).save(data, "PNG")
    return data.getvalue()


IMAGE = Schema({"image": Feature("uint8", (None, None, 3), encoding="image", optional=True)})


def test_an_image_is_decoded():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    first, second = rows_of([{"image": picture(pixels)}, {}], IMAGE)
    assert first["image"].dtype == np.uint8
    assert np.array_equal(first["image"], pixels)
    assert first["image"].flags.writeable
    assert second["image"] is None


def test_an_image_that_cannot_be_decoded_names_its_record():
    with pytest.raises(SourceError, match="here, record 1, feature 'image': "):
        rows_of([{}, {"image": b"no image"}], IMAGE)
    batch = parse(encode([{"image": b"no image"}], IMAGE), IMAGE)
    with pytest.raises(SourceError, match="here, record 7, feature 'image': "):
        single_row(batch, IMAGE, 7, where="here")


def test_images_are_decoded_one_after_the_other():
    pixels = np.zeros((2, 4, 3), np.uint8)
    rows = [{"image": picture(pixels)}, {"image": b"no image"}]
    batch = parse(encode(rows, IMAGE), IMAGE)
    records = iterate_rows(batch, IMAGE, range(5, 7), where="split 'train[:10%]'")
    assert np.array_equal(next(records)["image"], pixels)
    with pytest.raises(SourceError, match=r"'train\[:10%\]', record 6, feature 'image'"):
        next(records)


def test_values_of_absent_records_stay_absent_among_many():
    schema = Schema(
        {
            "x": Feature("float32", (2,), optional=True),
            "s": Feature("int8", (3,), encoding="sparse", optional=True),
            "t": Feature("uint8", (None, None), encoding="raw", optional=True),
        }
    )
    rows = [
        {} if i % 3 else {"x": [i, i], "s": ([1], [i]), "t": np.full((i, 1), i, np.uint8)}
        for i in range(9)
    ]
    for i, row in enumerate(rows_of(rows, schema)):
        assert (row["x"] is None) == (row["t"] is None) == bool(i % 3)
        if not i % 3:
            assert row["x"].tolist() == [i, i]
            assert row["t"].shape == (i, 1)
            assert row["s"].values.tolist() == [i]
