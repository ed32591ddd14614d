import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import _core
from datum.errors import SourceError
from datum.sources import csv_text
from datum.sources.csv_text import CsvFile, CsvSettings, OtherEncodingError

TEXT = 32  # what the core calls a column of text


def open_csv(tmp_path, content, **settings):
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return CsvFile(path, CsvSettings(**settings))


def rows_of(text: bytes, *, delimiter=",", columns=0, is_last=True, threads=1):
    """Header, rows, and the numbers of bad rows, as the core sees them."""
    memory = np.frombuffer(bytearray(text), np.uint8)
    found = _core.CsvText(memory, delimiter, columns, is_last, 2**20, [], [], threads)
    count = len(found.header) or columns
    found.look(range(count), ["empty"] * count)
    cells = []
    for column in range(count):
        _, slices, _ = found.take(column, TEXT)
        pairs = slices.reshape(-1, 2).tolist()
        cells.append([memory[at : at + length].tobytes().decode() for at, length in pairs])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return [name.decode() for name in found.header], rows, found.bad_rows, found.end


def python_rows(text: str):
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def is_closed(text: str) -> bool:
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        return "unexpected end" not in str(error)
    return True


@given(st.text(alphabet='ab1,,"\n\r"', min_size=1, max_size=60))
def test_rows_are_those_that_python_reads(text):
    expected = python_rows(text)
    header, rows, bad, end = rows_of(text.encode())
    if not expected or any(fault == "quote" for _, _, fault, _ in bad) or header != expected[0]:
        assert not expected or not is_closed(text)
        return
    assert rows == [row for row in expected[1:] if len(row) == len(header)]
    wrong = [n for n, row in enumerate(expected[1:]) if len(row) != len(header)]
    assert [record for record, _, _, _ in bad] == wrong
    assert [fields for _, _, _, fields in bad] == [len(expected[1 + n]) for n in wrong]
    assert end == len(text)


@given(st.text(alphabet='ab,,"\n\r"', min_size=1, max_size=60), st.integers(0, 60))
def test_rows_do_not_depend_on_where_the_text_is_cut(text, cut):
    content = text.encode()
    header, rows, bad, _ = rows_of(content)
    start, first, first_bad, end = rows_of(content[:cut], is_last=False)
    if not start:
        return
    assert start == header
    _, second, second_bad, _ = rows_of(content[end:], columns=len(header))
    assert first + second == rows
    assert len(first_bad) + len(second_bad) == len(bad)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("has_strays", [False, True])
def test_large_texts_are_read_alike_by_any_number_of_threads(line_end, has_strays):
    cells = ["x", "1", 'q"q', "a,b", "l\nm", "r\r\ns", "", "longer text " * 20, "é"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerow(["a", "b", "c"])
    for i in range(20_000):
        writer.writerow([cells[(i * k) % len(cells)] for k in (1, 5, 7)])
        if has_strays and i % 777 == 5:
            out.write(f'5" pipe,x"y,z{line_end}')  # quotes that quote nothing
        if i % 1000 == 7:
            out.write(f"bad row{line_end}")
    text = out.getvalue()
    expected = python_rows(text)
    found = [rows_of(text.encode(), threads=threads) for threads in (1, 3)]
    assert found[0] == found[1]
    _, rows, bad, _ = found[0]
    assert rows == [row for row in expected[1:] if len(row) == 3]
    wrong = [n for n, row in enumerate(expected[1:]) if len(row) != 3]
    assert [record for record, _, _, _ in bad] == wrong
    assert len(wrong) >= 20
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    memory = np.frombuffer(text.encode(), np.uint8).copy()
    assert _core.count_lines(memory, 0, len(memory)) == len(lines) - 1


def test_a_quote_that_is_never_closed_is_found_quickly_in_a_large_text():
    content = b'a,b\n5" pipe,"' + b"x,y\n" * 500_000
    header, rows, bad, end = rows_of(content, threads=2)
    assert header == ["a", "b"]
    assert rows == []
    assert bad == [(0, 4, "quote", 2)]
    assert end == len(content)


def test_columns_of_the_core_are_taken_once():
    memory = np.frombuffer(bytearray(b"a\n1\n"), np.uint8)
    found = _core.CsvText(memory, ",", 0, True, 100, [], [], 1)
    with pytest.raises(RuntimeError, match="taken once"):
        found.take(0, TEXT)
    found.look([0], ["empty"])
    found.take(0, TEXT)
    with pytest.raises(RuntimeError, match="taken once"):
        found.take(0, TEXT)
    with pytest.raises(IndexError):
        found.look([1], ["empty"])


def test_pieces_hold_all_rows_whatever_their_size(tmp_path):
    content = "a,b\n" + "".join(f'{i},"x\n{i}"\n' for i in range(100)) + "bad\n"
    for piece_bytes in (1, 10, 100, 10_000):
        file = open_csv(tmp_path, content)
        pieces = list(file.pieces(piece_bytes))
        assert sum(piece.records for piece in pieces) == 101
        assert file.header == ["a", "b"]
        (reject,) = (reject for piece in pieces for reject in piece.rejects)
        assert reject.where == f"{file.path}, line 202"
        assert reject.reason == "expected 2 cells, got 1"
        assert file.crc == _core.crc32c(content.encode())


def test_line_breaks_at_the_edges_of_quoted_cells_never_join_those_outside(tmp_path):
    content = 'a,b\r"\n""x",1\r2,"y\r""\n"\r\n3,4\r'
    (piece,) = open_csv(tmp_path, content).pieces(10_000)
    piece.rows.look([0, 1], ["empty", "empty"])  # takes the quotes away
    fields = [piece.rows.field(row, column) for row in range(3) for column in (0, 1)]
    assert fields == [b'\n"x', b"1", b"2", b'y\r"\n', b"3", b"4"]
    assert piece.lines_of([0, 1, 2]) == [2, 4, 7]
    assert piece.lines == 7


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\nx, y\tz\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("one\nx\ny\n", ","),
        ('"a;b",c\n"1;2",3\n', ","),
        ("a,b;c,d\n1,2;3,4\n", ","),
    ],
)
def test_the_delimiter_is_found(tmp_path, text, delimiter):
    file = open_csv(tmp_path, text)
    list(file.pieces(1000))
    assert file.delimiter == delimiter


def test_a_tsv_file_is_delimited_by_tabs(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a, b\nx, y\n")
    file = CsvFile(path, CsvSettings())
    list(file.pieces(1000))
    assert file.header == ["a, b"]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,a,a", ["a", "a_2", "a_3"]),
        ("a,a,a_2", ["a", "a_3", "a_2"]),
        (",,x", ["column_1", "column_2", "x"]),
        ("column_2,,", ["column_2", "column_2_2", "column_3"]),
    ],
)
def test_every_column_gets_a_name_of_its_own(tmp_path, header, names):
    file = open_csv(tmp_path, f"{header}\n1,2,3\n")
    list(file.pieces(1000))
    assert file.header == names


def test_many_columns_of_one_name_are_numbered_in_no_time(tmp_path):
    file = open_csv(tmp_path, "x," * 50_000 + "x\n")
    list(file.pieces(2**20))
    assert len(set(file.header)) == 50_001
    assert file.header[-1] == "x_50001"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"\r\n"])
def test_an_empty_file_is_an_error(tmp_path, content):
    with pytest.raises(SourceError, match=r"a.csv: expected a header and rows, got an empty file"):
        list(open_csv(tmp_path, content).pieces(100))


def test_a_header_with_a_nul_byte_hints_at_utf16(tmp_path):
    content = "a,b\n1,2\n".encode("utf-16-le")
    with pytest.raises(SourceError, match="hint: if this is UTF-16, pass encoding='utf-16-le'"):
        list(open_csv(tmp_path, content).pieces(100))
    file = open_csv(tmp_path, content, encoding="utf-16-le")
    assert [piece.records for piece in file.pieces(100)] == [1]


def test_an_encoding_is_found_by_reading_again(tmp_path):
    file = open_csv(tmp_path, b"a\ncaf\xe9\n\x81\n")
    for encoding in ("cp1252", "latin-1"):
        with pytest.raises(OtherEncodingError):
            list(file.pieces(100))
        assert file.encoding == encoding
    assert sum(piece.records for piece in file.pieces(100)) == 2


def test_an_encoding_that_is_given_is_not_doubted(tmp_path):
    file = open_csv(tmp_path, b"a,b\n1,\xe9\n2,x\n", encoding="utf-8")
    (piece,) = file.pieces(100)
    assert piece.rows.rows == 1
    assert piece.rejects[0].reason == "expected text in utf-8, got other bytes"
    file = open_csv(tmp_path, b"a\n\x81\n", encoding="cp1252")
    with pytest.raises(SourceError, match="expected text in cp1252"):
        list(file.pieces(100))


def test_a_row_beyond_the_limit_names_its_line_and_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "MAX_ROW_BYTES", 1000)
    file = open_csv(tmp_path, b"a,b\n1,2\n" + b"x" * 100_000)
    with pytest.raises(SourceError, match=r"line 3: expected at most 1000 bytes in a row"):
        list(file.pieces(200))
    (piece,) = open_csv(tmp_path, b"a,b\n1,2\n3," + b"x" * 2000 + b"\n5,6\n").pieces(10_000)
    assert piece.rows.rows == 2
    assert [reject.where[-6:] for reject in piece.rejects] == ["line 3"]


def test_a_header_of_millions_of_columns_is_refused(tmp_path):
    file = open_csv(tmp_path, b"," * (2**20 + 1) + b"\n")
    with pytest.raises(SourceError, match="line 1: expected a header"):
        list(file.pieces(2**22))


def test_a_row_of_millions_of_cells_is_counted_not_kept(tmp_path):
    file = open_csv(tmp_path, b"a,b\n" + b"," * 3_000_000 + b"\n1,2\n", delimiter=",")
    (piece,) = file.pieces(2**22)
    assert piece.rows.rows == 1
    assert piece.rejects[0].reason == "expected 2 cells, got 3000001"
