import numpy as np
import pytest

import datum
from datum import Feature, Schema, Sparse
from datum._read.record_checks import compare_statistics, summarize_columns
from datum.format import Parser, RecordFile, Statistics, encode


def summarize(rows, schema):
    schema = Schema(schema)
    (records,) = RecordFile(encode(rows, schema).to_bytes()).chunks()
    return summarize_columns(Parser(schema).parse(records), records, schema)


def differences(told, found):
    return list(compare_statistics(told.to_json(), found))


NUMBERS = {"x": Feature("int64"), "y": Feature("float32", optional=True)}
ROWS = [{"x": 1, "y": 0.5}, {"x": 5}, {"x": 3, "y": float("nan")}]


def test_equal_records_have_no_differences():
    assert differences(summarize(ROWS, NUMBERS), summarize(ROWS, NUMBERS)) == []


@pytest.mark.parametrize(
    ("rows", "feature", "text"),
    [
        ([*ROWS, {"x": 2}], None, "expected records of 3, as the manifest says, got 4"),
        ([{"x": 1, "y": 1}, *ROWS[1:]], "y", "expected least of numbers of 0.5"),
        ([*ROWS[:2], {"x": 3}], "y", "expected records in which it is present of 2"),
        ([*ROWS[:2], {"x": 3, "y": 0.5}], "y", "expected count of nan of numbers of 1"),
        ([{"x": 9, "y": 0.5}, *ROWS[1:]], "x", "expected greatest of numbers of 5"),
        ([{"x": 3, "y": 0.5}, *ROWS[1:]], "x", "expected count of 1 of 1"),
    ],
)
def test_what_differs_is_told_with_its_feature(rows, feature, text):
    found = differences(summarize(ROWS, NUMBERS), summarize(rows, NUMBERS))
    assert any(name == feature and problem.startswith(text) for name, problem in found)


def test_statistics_in_another_form_are_not_compared():
    assert list(compare_statistics({"x": {"min": 0}}, Statistics())) == []


def test_no_records_are_nothing():
    assert summarize_columns({}, RecordFile(b"").records([]), Schema({})).records == 0


def test_what_a_write_counted_is_what_is_found(tmp_path):
    """Of every kind of feature."""
    rng = np.random.default_rng(3)
    rows = []
    for n in range(60):
        row = {
            "int": n,
            "uint64": np.uint64(2**63 + n),
            "flag": n % 2 == 0,
            "float16": np.float16(n),
            "float64": n / 7,
            "complex": 1j * n,
            "when": np.datetime64("2020-01-01") + n,
            "bytes": bytes([n]),
            "words": ["a", "bc"][: n % 3],
            "ragged": list(range(n % 4)),
            "nested": [[1] * (n % 3), [2]],
            "raw": rng.integers(0, 255, (n % 3 + 1, 100), np.uint8),
            "vector": rng.random(200),
            "sparse": Sparse(np.array([[n % 5]]), np.array([1.5]), (5,)),
        }
        if n % 3:
            row |= {"seldom": n * 0.5, "label": "ab"[n % 2]}
        rows.append(row)
    for compression in (None, "gzip"):
        out = tmp_path / str(compression)
        datum.write(rows, out, shards=3, compression=compression, progress=False)
        dataset = datum.load(out)
        (told,) = dataset.statistics.values()
        assert set(told["features"]) == set(rows[1])
        for threads in (1, 4):
            assert dataset.verify(deep=True, threads=threads).problems == ()
