"""CSV files."""

import gzip
import io

import numpy as np
import pytest

import datum.sources.csv as csv_source
from datum import Feature, Schema, _core
from datum.errors import SourceError
from datum.sources import CsvTable, IndexedPart, Source, StreamedPart, csv
from datum.sources.csv import CsvRequest, CsvScan
from datum.sources.csv_text import CsvFile, CsvSettings
from datum.sources.text_encoding import TextReader, check_encoding, other_encoding


def write(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def plain(column):
    return column.tolist() if isinstance(column, np.ndarray) else column.to_list()


def read(part):
    """All columns of a part as lists, and the rejects."""
    if isinstance(part, IndexedPart):
        blocks = [part.read(np.arange(len(part)))]
    else:
        blocks = list(part.blocks())
    found = {name: [] for name in part.schema}
    for block in blocks:
        for name, column in block.data.items():
            found[name] += plain(column)
    return found, [reject for block in blocks for reject in block.rejects]


@pytest.fixture
def streamed(monkeypatch):
    """As if every file were too large for memory."""
    monkeypatch.setattr(csv_source, "MAX_MEMORY_BYTES", 0)
    monkeypatch.setattr(csv_source, "PIECE_BYTES", 64)
    monkeypatch.setattr(csv, "PIECE_BYTES", 64)


def test_a_table_has_types_and_keeps_its_texts(tmp_path):
    path = write(tmp_path, 'id,price,zip,note\n1,2.5,01234,"a ""b"", c"\n2,3,99999,\n')
    source = CsvTable(path)
    assert isinstance(source, Source)
    part = source.parts()["train"]
    assert isinstance(part, IndexedPart)
    assert part.schema == Schema(
        {
            "id": Feature("int64"),
            "price": Feature("float64"),
            "zip": Feature("str"),
            "note": Feature("str", optional=True),
        }
    )
    columns, rejects = read(part)
    assert columns == {
        "id": [1, 2],
        "price": [2.5, 3.0],
        "zip": ["01234", "99999"],
        "note": ['a "b", c', None],
    }
    assert rejects == []


def test_rows_of_another_length_are_rejected_by_their_lines_and_others_go_on(tmp_path):
    path = write(tmp_path, 'a,b\n1,2\n3\n\n"4\n",5\n6,7,8\n9,10\n')
    part = CsvTable(path).parts()["train"]
    assert len(part) == 5
    columns, rejects = read(part)
    assert columns == {"a": ["1", "4\n", "9"], "b": [2, 5, 10]}
    assert [(reject.record, reject.where, reject.reason) for reject in rejects] == [
        (1, f"{path}, line 3", "expected 2 cells, got 1"),
        (3, f"{path}, line 7", "expected 2 cells, got 3"),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbfa,b\n1,x\n", {"a": [1], "b": ["x"]}),
        (b"a,b\r\n1,x\r\n", {"a": [1], "b": ["x"]}),
        (b"a,b\r1,x", {"a": [1], "b": ["x"]}),
        (b"a,b\n1,x", {"a": [1], "b": ["x"]}),
        (b"\na,b\n\n\n1,x\n\n", {"a": [1], "b": ["x"]}),
        ("a,b\n1,é\n".encode("utf-16"), {"a": [1], "b": ["é"]}),
        ("a,b\n1,é\n".encode("cp1252"), {"a": [1], "b": ["é"]}),
        ("a,b\n1,Vélez\n".encode("mac_roman"), {"a": [1], "b": ["Vélez"]}),
        (b"a,b\n1,caf\xe9 \x81\n", {"a": [1], "b": ["café \x81"]}),
        (b'"a","b"\n"1","x"\n', {"a": [1], "b": ["x"]}),
        (b'a,b\n1,5" pipe\n', {"a": [1], "b": ['5" pipe']}),
        (b'a,b\n1,"x"y\n', {"a": [1], "b": ["xy"]}),
    ],
)
def test_files_of_all_sorts_are_read(tmp_path, content, expected):
    assert read(CsvTable(write(tmp_path, content)).parts()["train"]) == (expected, [])


def test_a_nul_byte_costs_its_row(tmp_path):
    columns, rejects = read(CsvTable(write(tmp_path, b"a,b\n1,x\0y\n2,z\n")).parts()["train"])
    assert columns == {"a": [2], "b": ["z"]}
    assert [reject.reason for reject in rejects] == ["expected text, got a NUL byte"]


def test_a_damaged_byte_in_utf8_costs_its_row_and_no_other_text(tmp_path):
    content = "a,b\n1,é\n2,ü\n".encode() + b"3,\xff\n"
    part = CsvTable(write(tmp_path, content)).parts()["train"]
    columns, rejects = read(part)
    assert columns == {"a": [1, 2], "b": ["é", "ü"]}
    assert rejects[0].where.endswith("line 4")
    assert part.metadata == {}


def test_a_quote_that_is_not_closed_is_told(tmp_path):
    columns, rejects = read(CsvTable(write(tmp_path, 'a,b\n1,2\n3,"x\n5,6\n')).parts()["train"])
    assert columns == {"a": [1], "b": [2]}
    assert rejects[0].reason == "expected a closing quote, got the end of the file"
    assert rejects[0].where.endswith("line 3")


def test_a_header_alone_is_a_table_of_no_records(tmp_path):
    part = CsvTable(write(tmp_path, "a,b\n")).parts()["train"]
    assert len(part) == 0
    assert read(part) == ({}, [])


def test_several_files_are_one_table(tmp_path):
    write(tmp_path, "a,b\n1,x\n", "1.csv")
    write(tmp_path, 'b,a\n"y ""q""",2.5\n', "2.csv")
    write(tmp_path, "a,b\n3\n", "3.csv")
    part = CsvTable(str(tmp_path / "*.csv")).parts()["train"]
    columns, rejects = read(part)
    assert columns == {"a": [1.0, 2.5], "b": ["x", 'y "q"']}
    assert [reject.record for reject in rejects] == [2]
    assert part.read(np.array([1])).data["b"].to_list() == ['y "q"']


def test_a_file_may_be_in_two_splits(tmp_path):
    path = write(tmp_path, "x\n1\n")
    parts = CsvTable({"train": [path, path], "test": path}).parts()
    assert read(parts["train"])[0] == {"x": [1, 1]}
    assert read(parts["test"])[0] == {"x": [1]}


def test_splits_share_their_types(tmp_path):
    paths = {
        "train": write(tmp_path, "x\n1\n", "train.csv"),
        "test": write(tmp_path, "x\n0.5\n", "test.csv"),
    }
    parts = CsvTable(paths).parts()
    assert {name: part.schema["x"].dtype for name, part in parts.items()} == {
        "train": "float64",
        "test": "float64",
    }
    assert read(parts["train"])[0] == {"x": [1.0]}


def test_a_packed_table_is_unpacked(tmp_path):
    path = write(tmp_path, gzip.compress(b"a\n1\n"), "a.csv.gz")
    assert read(CsvTable(path).parts()["train"])[0] == {"a": [1]}


def test_a_key_names_the_records(tmp_path):
    path = write(tmp_path, "id,x\na,1\nbad\nb,2\n")
    part = CsvTable(path, key="id").parts()["train"]
    assert part.read(np.array([2, 0])).keys == ["b", "a"]
    assert list(part.schema) == ["id", "x"]
    part = CsvTable(path, key="id", columns=["x"]).parts()["train"]
    assert part.read(np.array([2])).keys == ["b"]
    assert list(part.schema) == ["x"]


def test_a_key_must_be_there_and_have_values(tmp_path):
    path = write(tmp_path, "id,x\na,1\n,2\n")
    with pytest.raises(SourceError, match=r"expected a column 'idd'\nhint: did you mean 'id'"):
        CsvTable(path, key="idd").parts()
    with pytest.raises(SourceError, match="record 1: expected a key in column 'id', got none"):
        CsvTable(path, key="id").parts()
    with pytest.raises(SourceError, match="expected keys in column 'id', got none"):
        CsvTable(write(tmp_path, "id,x\n,1\n"), key="id").parts()
    assert list(CsvTable(write(tmp_path, "id,x\n"), key="id").parts()["train"].keys) == []


def test_a_key_that_is_missing_in_a_large_table_names_its_record(tmp_path, streamed):
    path = write(tmp_path, "id,x\n" + "a,1\n" * 50 + "bad\n" + ",2\n")
    part = CsvTable(path, key="id").parts()["train"]
    with pytest.raises(SourceError, match="record 51: expected a key in column 'id', got none"):
        list(part.blocks())


def test_words_for_no_value_can_be_chosen(tmp_path):
    path = write(tmp_path, "a,b\n-1,-1\n2,x\n,\n")
    columns, _ = read(CsvTable(path, null_values=["-1"]).parts()["train"])
    assert columns == {"a": [None, 2, None], "b": [None, "x", ""]}


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ",,"},
        {"delimiter": '"'},
        {"delimiter": "\u00b7"},
        {"encoding": "nonsense"},
        {"columns": "a"},
        {"null_values": "NA"},
        {"null_values": [-999]},
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options):
    with pytest.raises(SourceError, match="expected"):
        CsvTable(write(tmp_path, "a\n1\n"), **options)


CONTENT = "id,x,t\n" + "".join(
    f'{i},{i / 4 if i % 3 else ""},"text ""{i}"",\n{"é" * (i % 5)}"\n'
    + ("bad\n" if i % 40 == 7 else "")
    for i in range(200)
)


def test_large_tables_are_streamed_with_the_same_records(tmp_path, streamed):
    path = write(tmp_path, CONTENT)
    part = CsvTable(path, key="id").parts()["train"]
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    blocks = list(part.blocks())
    assert len(blocks) > 10
    numbers = np.concatenate([block.numbers for block in blocks])
    rejects = [reject for block in blocks for reject in block.rejects]
    everything = [*numbers.tolist(), *(reject.record for reject in rejects)]
    assert sorted(everything) == list(range(205))
    assert [key for block in blocks for key in block.keys] == [str(i) for i in range(200)]
    streamed_columns = read(part)
    csv_source.MAX_MEMORY_BYTES = 2**20  # undone by the fixture
    whole = CsvTable(path, key="id").parts()["train"]
    assert isinstance(whole, IndexedPart)
    assert read(whole) == streamed_columns
    assert whole.schema == part.schema
    assert whole.fingerprint == part.fingerprint


def test_large_tables_in_other_encodings_are_streamed(tmp_path, streamed):
    text = "a,b\n" + "".join(f"{i},café {i}\n" for i in range(100))
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        part = CsvTable(write(tmp_path, text.encode(encoding))).parts()["train"]
        columns, rejects = read(part)
        assert columns["b"] == [f"café {i}" for i in range(100)]
        assert rejects == []


def test_a_file_that_changes_while_it_is_streamed_is_told(tmp_path, streamed):
    path = write(tmp_path, "a,b\n" + "1,2\n" * 100)
    part = CsvTable(path).parts()["train"]
    write(tmp_path, "a,b\n" + "1,x\n" * 100)
    with pytest.raises(SourceError, match="the file has changed since it was scanned"):
        list(part.blocks())
    write(tmp_path, "a,b\n" + "1,3\n" * 100)
    with pytest.raises(SourceError, match="the file has changed since it was scanned"):
        list(part.blocks())


def test_a_field_without_end_names_its_row_in_bounded_memory(tmp_path, streamed, monkeypatch):
    monkeypatch.setattr("datum.sources.csv_text.MAX_ROW_BYTES", 10_000)
    path = write(tmp_path, b'a,b\n1,2\n3,"' + b"x" * 1_000_000)
    with pytest.raises(SourceError, match=r"line 3: expected at most 10000 bytes in a row"):
        CsvTable(path).parts()


def read_encoded(content, encoding=None, run_bytes=7):
    reader = TextReader("file", encoding)
    runs = list(reader.runs(io.BytesIO(content), run_bytes))
    assert [is_last for _, is_last in runs] == [False] * (len(runs) - 1) + [True]
    return b"".join(text.tobytes() for text, _ in runs).decode(), reader


TEXT = "naïve, 12 €, \U0001f600\n" * 3


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-32", "utf-32"),
    ],
)
@pytest.mark.parametrize("run_bytes", [1, 5, 1000])
def test_a_byte_order_mark_tells_the_encoding(encoding, found, run_bytes):
    if run_bytes < 4 and found != "utf-8":
        run_bytes = 4  # what it takes to see the mark
    text, reader = read_encoded(TEXT.encode(encoding), run_bytes=run_bytes)
    assert text == TEXT
    assert reader.encoding == found


def test_a_big_endian_mark_is_known_too():
    content = b"\xfe\xff" + TEXT.encode("utf-16-be")
    assert read_encoded(content)[0] == TEXT


def test_an_encoding_that_is_given_is_used():
    text, reader = read_encoded("é€".encode("cp1252"), "cp1252")
    assert text == "é€"
    assert reader.encoding == "cp1252"


def test_bytes_that_the_encoding_has_not_raise():
    with pytest.raises(UnicodeDecodeError):
        read_encoded(b"\x81", "cp1252")
    with pytest.raises(UnicodeDecodeError):
        read_encoded("é".encode("utf-16")[:-1])


def test_the_checksum_is_that_of_the_file():
    content = "é".encode("utf-16")
    assert read_encoded(content)[1].crc == _core.crc32c(content)


def test_runs_can_be_written_to():
    reader = TextReader("file", None)
    for text, _ in reader.runs(io.BytesIO(b"abc"), 2):
        assert text.flags.writeable


def test_the_usual_name_of_an_encoding_is_found():
    assert check_encoding("UTF8") == "utf-8"
    assert check_encoding("Windows-1252") == "cp1252"


@pytest.mark.parametrize("name", ["latin-99", "base64", "rot13", "", 5])
def test_an_encoding_that_is_none_is_refused(name):
    with pytest.raises(SourceError, match="expected an encoding that Python knows"):
        check_encoding(name)


def test_some_damage_makes_no_other_encoding():
    damaged = "é".encode() * 5 + b"\xff" + "ü".encode()
    assert other_encoding(np.frombuffer(damaged, np.uint8)) is None
    foreign = "café olé".encode("cp1252")
    assert other_encoding(np.frombuffer(foreign, np.uint8)) == "cp1252"


SETTINGS = CsvSettings(blank=("", "NA"))


def scan(tmp_path, *texts, max_bytes=10_000, key=None, columns="same", suffix=""):
    files = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.csv{suffix}"
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if suffix else content)
        files.append(CsvFile(path, SETTINGS))
    found = CsvScan(files, CsvRequest(key, columns, {}))
    found.run(max_bytes=max_bytes)
    return found, files


def values_of(found, files):
    pieces = [(file, piece) for file in files for piece in found.kept[file]]
    return {
        name: column.tolist() if isinstance(column, np.ndarray) else column.to_list()
        for name, column in found.take_block(pieces, 0).data.items()
    }


def type_of(tmp_path, *cells):
    found, _ = scan(tmp_path, "x,y\n" + "".join(f"{cell},0\n" for cell in cells))
    return found.schema.get("x")


@pytest.mark.parametrize("cells", [["1", "-2", "0"], ["9223372036854775807"], ["5", ""]])
def test_integers_as_python_writes_them_are_int64(tmp_path, cells):
    assert type_of(tmp_path, *cells).dtype == "int64"


@pytest.mark.parametrize(
    "cells",
    [["0.5"], ["1", "2.5"], ["1e5"], [".5", "5."], ["-0"], ["nan"], ["1", "NaN"], ["-inf", "1"]],
)
def test_numbers_with_a_point_or_an_exponent_are_float64(tmp_path, cells):
    assert type_of(tmp_path, *cells) == Feature("float64")


@pytest.mark.parametrize(
    "cells",
    [
        ["01"],
        ["+1"],
        ["1", "02"],
        ["9223372036854775808"],
        ["9007199254740993", "0.5"],  # as a float it would be another number
        ["1e999"],
        ["0x10"],
        ["1_000"],
        [" 1"],
        ["1", "x"],
        ["true", "1"],
        ["NA", "x"],
        ["NA", "NA"],
        ["00.5"],
        ["T"],
        ["-"],
        ["."],
        ["1e"],
        ['"a""b"'],
    ],
)
def test_what_a_number_would_change_is_text(tmp_path, cells):
    assert type_of(tmp_path, *cells) == Feature("str")


@pytest.mark.parametrize("cells", [["true", "false"], ["True", "False"], ["TRUE"]])
def test_truth_values_are_bool(tmp_path, cells):
    assert type_of(tmp_path, *cells) == Feature("bool")


def test_empty_cells_and_blanks_of_numbers_are_absent(tmp_path):
    found, files = scan(tmp_path, "i,f,b,s\n1,NA,true,NA\n,0.5,NA,\n")
    assert found.schema == Schema(
        {
            "i": Feature("int64", optional=True),
            "f": Feature("float64", optional=True),
            "b": Feature("bool", optional=True),
            "s": Feature("str", optional=True),
        }
    )
    assert values_of(found, files) == {
        "i": [1, None],
        "f": [None, 0.5],
        "b": [True, None],
        "s": ["NA", None],
    }


def test_types_are_told_over_all_files(tmp_path):
    found, files = scan(tmp_path, "a,b,c\n1,2,x\n", "c,a,b\n,3.5,02\n", "a,b,c\n4,5,z\n")
    assert {name: feature.dtype for name, feature in found.schema.items()} == {
        "a": "float64",
        "b": "str",
        "c": "str",
    }
    assert values_of(found, files) == {
        "a": [1.0, 3.5, 4.0],
        "b": ["2", "02", "5"],
        "c": ["x", None, "z"],
    }


def test_many_rows_change_their_type_together(tmp_path):
    text = "x,y\n" + "12345,0.5\n" * 100_000 + "last,7\n"
    found, files = scan(tmp_path, text, max_bytes=10**7)
    values = values_of(found, files)
    assert values["x"] == ["12345"] * 100_000 + ["last"]
    assert values["y"] == [0.5] * 100_000 + [7.0]


def test_a_column_without_a_value_is_left_out_and_told(tmp_path):
    found, _ = scan(tmp_path, "a,b\n1,\n2,\n")
    assert list(found.schema) == ["a"]
    assert found.metadata == {"b": {"left_out": "no record has a value"}}


def test_files_of_other_columns_are_refused(tmp_path):
    with pytest.raises(SourceError, match=r"(?s)0.csv: a, b\n.*1.csv: lacks b\nhint: columns='un"):
        scan(tmp_path, "a,b\n1,2\n", "a\n1\n")


def test_columns_are_taken_by_name_and_the_key_with_them(tmp_path):
    found, _ = scan(tmp_path, "a,b,c\n1,2,3\n", columns=["c", "b"], key="a")
    assert list(found.schema) == ["c", "b"]
    assert set(found.seen) == {"a", "b", "c"}
    with pytest.raises(
        SourceError, match=r"expected a column 'colour'\nhint: did you mean 'color'"
    ):
        scan(tmp_path, "color,b\n1,2\n", columns=["colour"])


def test_text_beyond_the_limit_is_not_kept(tmp_path):
    found, _ = scan(tmp_path, "a\n" + "1\n" * 1000, max_bytes=100)
    assert not found.is_kept
    assert found.schema == Schema({"a": Feature("int64")})


def test_a_packed_file_that_is_larger_than_it_seemed_is_not_kept(tmp_path):
    found, _ = scan(tmp_path, "a\n" + "1\n" * 100_000, max_bytes=10_000, suffix=".gz")
    assert not found.is_kept
    assert found.kept == {}


def test_the_encoding_is_told_of_columns_of_text(tmp_path):
    found, files = scan(tmp_path, "a,b\n1,café\n".encode("cp1252"))
    assert values_of(found, files) == {"a": [1], "b": ["café"]}
    assert found.metadata == {"b": {"encoding": "cp1252"}}


def test_the_fingerprint_changes_with_the_text(tmp_path):
    first, files = scan(tmp_path, "a\n1\n")
    before = first.fingerprint(files)
    again, files = scan(tmp_path, "a\n1\n")
    assert again.fingerprint(files) == before
    other, files = scan(tmp_path, "a\n2\n")
    assert other.fingerprint(files) != before
