import numpy as np
import pytest

from datum import Feature, Schema
from datum._read import record_checks as checking
from datum._read.record_checks import Findings, RecordChecks, cut_records, make_parser, slices_of
from datum.format import RecordFile, Records, encode, frame

LOOSE = Schema(
    {"x": Feature("int64", (None,), optional=True), "t": Feature("bytes", optional=True)}
)


def check(payloads, schema, **options):
    findings = Findings("train", "a")
    checks = RecordChecks(make_parser(Schema(schema)), findings, **options)
    checks.check(Records.of(payloads))
    found = [(one.kind, one.record, one.feature) for one in findings.problems]
    return found, checks, findings


def encoded(*rows):
    return list(RecordFile(encode(list(rows), LOOSE).to_bytes()))


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("slice_bytes", [1, 50, 10**6])
def test_every_record_that_does_not_fit_is_told(monkeypatch, threads, slice_bytes):
    monkeypatch.setattr(checking, "SLICE_BYTES", slice_bytes)
    payloads = encoded(*({"x": [n], "t": b"%d" % n} for n in range(40)))
    payloads[3:5] = encoded({"x": [1, 2], "t": b""}, {"t": b""})
    payloads[20:21] = encoded({"x": [1], "t": b"\xff"})
    payloads[39] = b"\xff\xff\xff"
    schema = {"x": Feature("int64"), "t": Feature("str")}
    found, checks, _ = check(payloads, schema, threads=threads)
    assert found == [
        ("schema", 3, "x"),
        ("schema", 4, "x"),
        ("schema", 20, "t"),
        ("malformed", 39, None),
    ]
    assert checks.unusable == 4


def test_texts_say_what_was_expected_without_the_place():
    payloads = encoded({"x": [1, 2]}, {"x": [1], "t": b"\xff"})
    _, _, findings = check(payloads, {"x": Feature("int64")})
    assert findings.problems[0].text == "expected 1 values, got 2"
    _, _, findings = check([b"\xff\xff"], {"x": Feature("int64")})
    assert findings.problems[0].text == checking._NO_EXAMPLE


def test_keys_that_do_not_fit_each_other_are_told_for_each_record():
    schema = {"x": Feature("float32", (5,), encoding="sparse")}
    stored = Schema({"x_index": Feature("int64", (None,)), "x_value": Feature("float32", (None,))})
    rows = [{"x_index": [n], "x_value": [0.5]} for n in (1, 9, 2, 7)]
    rows += [{"x_index": [1, 2], "x_value": [0.5]}, {"x_index": [0], "x_value": [1.0]}]
    payloads = list(RecordFile(encode(rows, stored).to_bytes()))
    found, checks, _ = check(payloads, schema)
    assert found == [("schema", 1, "x"), ("schema", 3, "x"), ("schema", 4, "x")]
    assert checks.unusable == 3


def test_defaults_do_not_hide_what_is_missing_from_statistics():
    schema = {"x": Feature("int64", optional=True, default=7)}
    found, checks, _ = check(encoded({"x": [1]}, {}), schema, summarizes=True)
    assert found == []
    assert checks.statistics.features["x"].missing == 1


def test_without_a_schema_records_are_not_looked_into():
    found, checks, _ = check([b"anything"], {}, summarizes=True)
    assert (found, checks.unusable, checks.statistics) == ([], 0, None)


def test_records_known_to_be_no_messages_are_told_and_passed_over():
    payloads = [*encoded({"x": [1]}), b"\xff", *encoded({"x": [3]})]
    found, checks, _ = check(payloads, {"x": Feature("int64")}, malformed=(1,))
    assert found == [("malformed", 1, None)]
    assert (checks.left_out, checks.unusable) == (1, 1)


def test_slices_have_few_bytes_or_one_record():
    records = Records.of([b"a" * 10, b"b" * 10, b"c" * 100, b"d", b"e"])
    parts = [list(part) for part in slices_of(records, 20)]
    assert parts == [[b"a" * 10, b"b" * 10], [b"c" * 100], [b"d", b"e"]]
    assert list(slices_of(Records.of([]), 20)) == []


def test_a_part_knows_where_it_is_from():
    file = RecordFile(frame([b"one", b"two", b"three"]).to_bytes())
    (records,) = file.chunks()
    part = cut_records(records, 1, 3)
    assert list(part) == [b"two", b"three"]
    assert part.locate(0) == records.locate(1)
    assert cut_records(records, 0, 3) is records
    assert np.array_equal(part.numbers, [1, 2])
