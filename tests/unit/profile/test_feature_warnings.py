import io

import numpy as np
import pytest
from PIL import Image

import datum


def warnings_of(path, columns, **options):
    datum.write(columns, path, progress=False, **options)
    return {
        (one.kind, one.feature): one
        for one in datum.profile(path).warnings
        if one.feature is not None
    }


def test_missing_values_are_warned_of_where_they_are_many(tmp_path):
    rows = [
        {"id": n} | ({"most": n} if n > 30 else {}) | ({"some": n} if n > 1 else {})
        for n in range(100)
    ]
    found = warnings_of(tmp_path / "out", rows)
    assert list(found) == [("missing", "most")]
    assert found["missing", "most"].figure == "31.0 %"


def test_nan_and_infinities_are_warned_of(tmp_path):
    values = np.arange(100.0)
    values[[3, 4]] = np.nan
    values[5] = np.inf
    found = warnings_of(tmp_path / "out", {"x": values})
    assert found["not-finite", "x"].text == "2 NaN and 1 infinite of 100 values"


def test_constant_features_are_warned_of(tmp_path):
    columns = {
        "id": np.arange(50),
        "number": np.full(50, 7),
        "text": ["same"] * 50,
        "image": np.zeros((50, 3, 3)),
    }
    found = warnings_of(tmp_path / "out", columns)
    assert set(found) == {("constant", "number"), ("constant", "text"), ("constant", "image")}
    assert found["constant", "text"].text == "every value is same"


def test_few_records_may_be_alike(tmp_path):
    assert warnings_of(tmp_path / "out", {"id": np.arange(19), "x": np.full(19, 7)}) == {}


def test_lists_of_one_value_but_several_lengths_are_not_constant(tmp_path):
    rows = [{"x": [1] * (n % 3), "id": n} for n in range(50)]
    assert warnings_of(tmp_path / "out", rows) == {}


def test_empty_texts_are_warned_of(tmp_path):
    texts = [f"text {n}" if n % 10 else "" for n in range(100)]
    found = warnings_of(tmp_path / "out", {"x": texts, "id": np.arange(100)})
    assert found["empty-text", "x"].figure == "10.0 %"


def png(width, height):
    file = io.BytesIO()
    Image.new("L", (width, height)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        ([(20, 20)] * 5, []),
        ([(20, 20)] * 5 + [(1, 20)], ["image-size"]),
        ([(200, 200)] * 5 + [(2500, 2000)], ["image-size"]),
        ([(2000, 2000)] * 5 + [(2500, 2000)], []),
        ([(20, 20)] * 5 + [(200, 200)], []),
    ],
)
def test_odd_sizes_of_images_are_warned_of(tmp_path, sizes, kinds):
    images = [png(*size) for size in sizes]
    rows = [{"image": data, "id": n} for n, data in enumerate(images)]
    schema = {"image": datum.Feature("bytes"), "id": datum.Feature("int64")}
    found = warnings_of(tmp_path / "out", rows, schema=schema)
    assert [kind for kind, _ in found] == kinds


def test_images_that_cannot_be_read_are_warned_of(tmp_path):
    rows = [{"image": png(9, 9), "id": 0}, {"image": b"none", "id": 1}]
    schema = {"image": datum.Feature("bytes"), "id": datum.Feature("int64")}
    found = warnings_of(tmp_path / "out", rows, schema=schema, shuffle=False)
    assert found["unreadable-images", "image"].figure == "1"
