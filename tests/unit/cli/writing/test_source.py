"""What `datum write` reads."""

import io

import pytest

import datum
from datum import SourceError
from datum.cli.write_options import LinesOfStdin, source_of


def lines(text):
    return LinesOfStdin(io.BytesIO(text if isinstance(text, bytes) else text.encode()))


def test_a_path_or_a_class_of_sources(tmp_path):
    assert source_of("a/b", where="o") == "a/b"
    (tmp_path / "a.txt").write_text("x;y\n1;2\n")
    table = {"class": "CsvTable", "path": str(tmp_path / "a.txt"), "delimiter": ";"}
    found = source_of(table, where="o")
    assert isinstance(found, datum.sources.CsvTable)
    assert list(found.parts()["train"].schema) == ["x", "y"]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (7, "o: expected a path, or a table with a `class` of datum.sources, got 7"),
        ({"path": "a"}, "expected a path, or a table with a `class`"),
        ({"class": "CsvTabel"}, "did you mean CsvTable"),
        ({"class": "Block"}, "expected a class of datum.sources, got 'Block'"),
        ({"class": "CsvTable", "file": "a"}, "CsvTable: expected its options, got"),
    ],
)
def test_what_is_no_source_is_told(found, message):
    with pytest.raises(ValueError, match=message):
        source_of(found, where="o")


def test_lines_are_records_and_others_are_rejected():
    source = lines('{"x": 1}\n\n[2]\n{"x": NaN}\nno\n{"x": 6}\n')
    assert source.head == [{"x": 1}, {"x": 6}]
    (block,) = source.parts()["train"].blocks()
    assert block.data == [{"x": 1}, {"x": 6}]
    assert block.numbers.tolist() == [0, 4]
    assert [(reject.record, reject.where) for reject in block.rejects] == [
        (1, "stdin, line 3"),
        (2, "stdin, line 4"),
        (3, "stdin, line 5"),
    ]
    assert block.rejects[1].reason == "expected JSON, got NaN, which is none"


def test_many_lines_come_in_blocks_and_none_is_lost():
    source = lines("".join(f'{{"x": {i}}}\n' for i in range(10_000)))
    assert len(source.head) == 1001
    blocks = list(source.parts()["train"].blocks())
    assert [len(block) for block in blocks] == [4096, 4096, 1808]
    assert [row["x"] for block in blocks for row in block.data] == list(range(10_000))


def test_large_lines_come_in_small_blocks():
    source = lines("".join(f'{{"x": "{"a" * 3_000_000}"}}\n' for _ in range(4)))
    assert [len(block) for block in source.parts()["train"].blocks()] == [3, 1]


@pytest.mark.parametrize("text", ["", "\n \n", b"\xff\n", "no json\n"])
def test_no_records_are_an_error(text):
    with pytest.raises(SourceError, match=r"stdin: expected [^,]*, got .*\nhint: an object on ea"):
        lines(text)


def test_lines_can_be_read_once(tmp_path):
    with pytest.raises(SourceError, match="read twice"):
        datum.write(
            lines('{"x": 1}\n'),
            tmp_path / "out",
            splits={"a": 0.5, "b": 0.5},
            stratify="x",
            progress=False,
        )
