"""Values at the edges come back bit for bit, or are refused; nothing that could run is run."""

import json
import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datum
from datum import Feature, Schema
from datum.errors import SourceError
from datum.sources import CsvTable, JsonLines
from datum.sources import csv as csv_source
from tests.hostile.shards import run_measured
from tests.unit.write.datasets import read, values, write

KINDS = [list, iter, lambda rows: {"x": np.array([row["x"] for row in rows])}]
NAN_BITS = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]


def bits(array):
    array = np.asarray(array)
    return array.view(f"u{array.itemsize}").tolist()


@pytest.mark.parametrize("kind", KINDS, ids=["list", "iterator", "columns"])
@pytest.mark.parametrize(
    "given",
    [
        np.array(NAN_BITS, np.uint64).view(np.float64),
        np.array([np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308]),
        np.array([0x7FC00000, 0xFFC00001, 0x7F800001, 1, 0x80000000], np.uint32).view(np.float32),
        np.array([0x7E00, 0xFE01, 0x7C01, 1, 0x8000, 0x7C00], np.uint16).view(np.float16),
        np.array([-(2**63), 2**63 - 1, 0, -1]),
        np.array([0, 2**64 - 1, 2**63], np.uint64),
        np.array([-128, 127], np.int8),
        np.array([0, 255], np.uint8),
        np.array(["NaT", 0, 2**63 - 1, -(2**63) + 1], "M8[ns]"),
        np.array(["NaT", 0, 2**63 - 1], "m8[us]"),
        np.array([True, False]),
    ],
    ids=lambda given: str(given.dtype),
)
def test_edges_of_every_type_come_back_bit_for_bit(tmp_path, kind, given):
    rows = kind([{"x": value} for value in given])
    write(rows, tmp_path / "out", shuffle=False, floats="float64")
    found = np.array(values(tmp_path / "out"))
    assert found.dtype == given.dtype
    assert bits(found) == bits(given)


@pytest.mark.parametrize("kind", KINDS[:2], ids=["list", "iterator"])
@pytest.mark.parametrize(
    "given",
    [
        [0, -(2**63), 2**63 - 1],
        [0, 2**63, 2**64 - 1],
        [0.0, -0.0, float("inf"), 1e308, 5e-324],
        [1, 2.5],
        [2**53, 0.5],
        [True, 2],
        [None, 3, None],
        [[], [1], [1, 2]],
        [[], []],
        [[[]], [[1], []], []],
        ["", "a", "\0", "é" * 1000],
        [b"", b"\0", bytes(range(256))],
        [["", "a"], []],
        [1j, complex("nan"), complex(-0.0, -0.0)],
    ],
    ids=repr,
)
def test_plain_values_come_back_equal(tmp_path, kind, given):
    write(kind([{"x": value} for value in given]), tmp_path / "out", shuffle=False)
    for found, value in zip(read(tmp_path / "out"), given, strict=True):
        found = found.get("x")
        if value is None:
            assert found is None
        elif isinstance(value, list):
            assert [np.asarray(part).tolist() for part in found] == value
        else:
            assert repr(found.item() if hasattr(found, "item") else found) == repr(
                type(found.item())(value) if hasattr(found, "item") else value
            )


@pytest.mark.parametrize("kind", KINDS[:2], ids=["list", "iterator"])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (1, 2**64),
        (1, -(2**63) - 1),
        (-1, 2**63),
        (2**63, -1),
        (0.5, 2**53 + 1),
        (2**53 + 1, 0.5),
        (1, "1"),
        ("1", 1),
        ("a", b"a"),
        (1, [1]),
        ([1], [[1]]),
        ([1], ["a"]),
        (True, "True"),
        (np.datetime64(1, "s"), 1),
    ],
    ids=repr,
)
def test_values_that_cannot_be_held_together_are_refused(tmp_path, kind, good, bad):
    with pytest.raises(datum.SchemaError, match="'x'"):
        write(kind([{"x": good}, {"x": bad}]), tmp_path / "out")
    report = write(kind([{"x": good}, {"x": bad}]), tmp_path / "out", on_error="quarantine")
    assert report.records == 1


def test_sums_beyond_sixty_four_bits_do_not_stop_a_write(tmp_path):
    for column in (
        np.array([-(2**63)] * 5),
        np.array([2**64 - 1] * 5, np.uint64),
        np.array(["2020-01-01"] * 10_000, "M8[ns]"),
        np.full(5, 1.7e308),
        np.array([np.inf, -np.inf, np.nan]),
        np.array([1e300 + 1e300j] * 3),
    ):
        out = tmp_path / "out"
        write({"x": column}, out, overwrite=True)
        assert datum.load(out).verify().is_sound
        write({"x": column}, out, append=True)
        assert len(read(out)) == 2 * len(column)


def test_columns_of_no_and_of_empty_values(tmp_path):
    for columns, count in (
        ({"x": np.zeros((5, 0))}, 5),
        ({"x": np.zeros((5, 0, 3), np.uint8)}, 5),
        ({"x": np.array(["", "", ""])}, 3),
        ({"x": np.zeros(1)}, 1),
    ):
        write(columns, tmp_path / "out", overwrite=True)
        found = read(tmp_path / "out")
        assert len(found) == count
        assert np.shape(found[0]["x"]) == columns["x"].shape[1:]


def test_a_given_schema_is_enforced_at_its_edges(tmp_path):
    schema = Schema({"x": Feature("int8")})
    for kind in KINDS:
        rows = [{"x": value} for value in (-129, -128, 127, 128)]
        report = write(kind(rows), tmp_path / "out", schema=schema, on_error="skip", overwrite=True)
        assert sorted(values(tmp_path / "out")) == [-128, 127]
        assert report.quarantined == {"train": 2}


# Nothing is unpickled.


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.pkl", "x.pickle", "x.pt", "x.joblib"])
def test_pickles_are_never_opened(tmp_path, name):
    path = tmp_path / name
    trap = np.array([Trap(tmp_path / "sprung"), 1], object)
    if name.endswith(".npy"):
        np.save(path, trap, allow_pickle=True)
    elif name.endswith(".npz"):
        np.savez(path, x=trap, y=np.arange(2))
    else:
        path.write_bytes(pickle.dumps(trap))
    for source in (path, str(path), [{"x": path}], {"train": path}):
        with pytest.raises((datum.SourceError, datum.SchemaError)):
            write(source, tmp_path / "out")
    write([{"x": path.read_bytes()}], tmp_path / "out")
    assert values(tmp_path / "out") == [path.read_bytes()]
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<i8', 'fortran_order': False, 'shape': (3,",
        b"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        b"{'descr': 7, 'fortran_order': False, 'shape': ()}",
        b"{'descr': [('a', '<i8'), ('a', '<i8')], 'fortran_order': 0, 'shape': (1,)}",
        b"[" * 200,
        b"\xff\x00",
        b"",
    ],
)
def test_arrays_of_numpy_with_a_damaged_header_are_refused_by_name(tmp_path, header):
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24))
    with pytest.raises(datum.SourceError, match=r"x\.npy: expected NumPy arrays"):
        write(path, tmp_path / "out")


def test_object_columns_are_looked_through_not_run(tmp_path):
    trap = Trap(tmp_path / "sprung")
    for column in (
        np.array([trap, trap], object),
        np.array([1, trap], object),
        [trap, trap],
        np.array([[trap], [trap]], object),
    ):
        with pytest.raises((datum.SchemaError, datum.SourceError)):
            write({"x": column}, tmp_path / "out", workers=2)
    assert not (tmp_path / "sprung").exists()


# Tables from strangers.


@pytest.mark.parametrize("value", [[1.0], "text", b"bytes", [["a"], ["b"]]])
@pytest.mark.parametrize("kind", ["file", "stream"])
def test_an_arrow_file_whose_offsets_lead_out_of_it_is_refused(tmp_path, value, kind):
    import pyarrow as pa

    path, count = tmp_path / "x.arrow", 5
    table = pa.table({"x": [value] * count})
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with make(str(path), table.schema) as writer:
        writer.write_table(table)
    data, step = bytearray(path.read_bytes()), len(value)
    offsets = np.arange(count + 1, dtype=np.int32) * step
    at = data.index(offsets.tobytes())
    data[at + 12 : at + 16] = (2**30).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(datum.SourceError, match="expected a Parquet or Arrow file"):
        write(path, tmp_path / "out")


CSV_FILES = {
    "bom": (b"\xef\xbb\xbfx,y\n1,2\n", [("1", "2")]),
    "utf-16": ("\ufeffx,y\n1,é\n".encode("utf-16-le"), [("1", "é")]),
    "latin": (b"x,y\n1,caf\xe9\n", [("1", "café")]),
    "carriage returns": (b"x,y\r\n1,2\r\n3,4", [("1", "2"), ("3", "4")]),
    "old mac": (b"x,y\r1,2\r3,4\r", [("1", "2"), ("3", "4")]),
    "quoted line ends": (b'x,y\n"a\nb","c""d"\n', [("a\nb", 'c"d')]),
    "formulas": (b"x,y\n=cmd|' /C calc'!A0,@SUM(1)\n", [("=cmd|' /C calc'!A0", "@SUM(1)")]),
    "leading zeros": (b"x,y\n007,1\n010,2\n", [("007", "1"), ("010", "2")]),
    "blank lines": (b"x,y\n\n1,2\n\n\n3,4\n\n", [("1", "2"), ("3", "4")]),
}


@pytest.mark.parametrize("kind", CSV_FILES)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_tables_of_every_make_give_the_cells_they_hold(tmp_path, monkeypatch, kind, is_streamed):
    if is_streamed:
        monkeypatch.setattr(csv_source, "MAX_MEMORY_BYTES", 1)
    content, expected = CSV_FILES[kind]
    (tmp_path / "t.csv").write_bytes(content)
    write(tmp_path / "t.csv", tmp_path / "out", shuffle=False)
    assert [(str(row["x"]), str(row["y"])) for row in read(tmp_path / "out")] == expected


@pytest.mark.parametrize("line", [b"1,2,3", b"1", b"1,\0", b"1,\xff\xfe"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_bad_lines_are_named_by_file_and_line(tmp_path, monkeypatch, line, is_streamed):
    if is_streamed:
        monkeypatch.setattr(csv_source, "MAX_MEMORY_BYTES", 1)
    (tmp_path / "t.csv").write_bytes("x,y\n1,é\n".encode() + line + b"\n3,4\n")
    source = CsvTable(tmp_path / "t.csv", encoding="utf-8")
    with pytest.raises(datum.SourceError, match=r"t\.csv, line 3"):
        write(source, tmp_path / "out")
    report = write(source, tmp_path / "out", on_error="quarantine")
    assert (report.records, report.quarantined) == (2, {"train": 1})


def test_a_cell_without_end_takes_no_more_memory_than_a_piece(tmp_path):
    """An open quote before 400 MB: told, in memory that does not grow with the file."""
    body = (
        "import datum\n"
        "path, out = args\n"
        "with open(path, 'wb') as file:\n"
        "    file.write(b'x,y\\n1,2\\n3,\"')\n"
        "    for _ in range(400):\n"
        "        file.write(b'a' * 2**20)\n"
        "try:\n"
        "    datum.write(path, out, on_error='quarantine', progress=False)\n"
        "except datum.DatumError as error:\n"
        "    return str(error)\n"
    )
    told, growth = run_measured(body, tmp_path / "t.csv", tmp_path / "out")
    assert told is None or "t.csv" in told
    assert growth < 350 * 2**20


JSON_LINES = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep object": '{"x": ' * 100_000,
    "twice": '{"x": 1, "x": 2}',
    "nan": '{"x": NaN}',
    "beyond": '{"x": 1e999}',
    "large": '{"x": 1000000000000000000000000000000}',
    "digits": '{"x": ' + "9" * 5000 + "}",
    "surrogate": '{"x": "\\ud800"}',
    "text": "hello",
    "null": "null",
    "cut": '{"x": 1',
    "two": '{"x": 1} {"x": 2}',
}


@pytest.mark.parametrize("kind", JSON_LINES)
def test_bad_json_lines_are_rejected_by_line(tmp_path, kind):
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1}\n' + JSON_LINES[kind] + '\n{"x": 2}\n')
    report = write(path, tmp_path / "out", on_error="quarantine")
    assert sorted(values(tmp_path / "out")) == [1, 2]
    assert report.quarantined == {"train": 1}
    told = json.loads((tmp_path / "out" / "quarantine.jsonl").read_text())
    assert told["record"] == 1
    with pytest.raises((datum.SourceError, datum.SchemaError), match="record 1"):
        write(JsonLines(path), tmp_path / "none")


def test_a_parquet_file_with_a_name_that_is_not_text_is_told(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"xé": [1, 2]}), path, store_schema=False)
    content = path.read_bytes()
    assert "xé".encode() in content
    path.write_bytes(content.replace("xé".encode(), b"x\xc3\x28"))
    with pytest.raises(SourceError, match=r"a\.parquet: expected a Parquet or Arrow file"):
        datum.write(path, tmp_path / "out", progress=False)
