"""How `datum write` shows a plan and what became of it."""

from pathlib import Path

import datum
from datum import WriteReport
from datum._write.report import SplitReport
from datum.cli.write_report import report_to_json, show_plan, show_report, tell_plan


def test_what_was_found_is_two_lines_and_warnings(capsys):
    rows = [{f"f{i}": i for i in range(9)}, {"f0": "x"}]
    tell_plan(datum.plan(rows))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("found: rows from Python; train 2 records, about ")
    assert lines[1].startswith(
        "features: f0=int64, f1=int64, f2=int64, f3=int64, f4=int64, f5=int64"
    )
    assert lines[1].endswith("and 3 more")
    assert lines[2].startswith("warning: 1 of 2 records looked at cannot be written")
    assert "--on-error" not in lines[1]


def test_text_of_strangers_cannot_steer_the_terminal(capsys):
    plan = datum.plan([{"a\x1b[2J[bold]": 1}])
    tell_plan(plan)
    show_plan(plan, None)
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert "\x1b[2J" not in text
        assert "a\\x1b[2J[bold]" in text


def test_what_is_unknown_is_a_question_mark(capsys):
    def endless():
        while True:
            yield {"x": 1}

    show_plan(datum.plan(endless), "out")
    out = capsys.readouterr().out
    assert ["train", "?", "?", "?"] in [line.split() for line in out.splitlines()]
    assert "int64 *" in out
    assert "* as 1,000 records have it; the others may widen it" in out


def test_a_narrow_terminal_shows_the_end_of_where_splits_come_from(capsys, monkeypatch, tmp_path):
    path = tmp_path / f"{'long' * 20}.csv"
    path.write_text("x\n1\n")
    plan = datum.plan(path)
    for columns, shown in ((4000, str(path)), (60, "longlong.csv"), (30, None)):
        monkeypatch.setenv("COLUMNS", str(columns))
        show_plan(plan, None)
        line = capsys.readouterr().out.splitlines()[3]
        assert len(line.rstrip()) <= columns
        assert line.rstrip().endswith(shown or "1")
        assert ("..." in line) == (columns == 60)


def test_the_size_of_each_shard_is_shown_where_there_are_several(capsys):
    show_plan(datum.plan({"x": [1, 2]}, shards=2), None)
    assert capsys.readouterr().out.splitlines()[2].split() == [
        "split",
        "records",
        "size",
        "shards",
        "each",
        "from",
    ]


def test_a_report_is_shown_and_told(capsys):
    split = SplitReport(3, 100, 1, 2)
    report = WriteReport(Path("a b"), {"train": split}, 1.5, 0, Path("a b/quarantine.jsonl"))
    show_report(report, "'a b'")
    said = capsys.readouterr()
    assert said.out == f"{report}\n"
    assert said.err.splitlines() == [
        "warning: 2 records could not be written; the reasons are in a b/quarantine.jsonl",
        "next: datum info 'a b'",
    ]
    assert report_to_json(report) == {
        "path": "a b",
        "records": 3,
        "bytes": 100,
        "shards": 1,
        "seconds": 1.5,
        "splits": {"train": {"records": 3, "bytes": 100, "shards": 1, "rejected": 2}},
        "resumed_shards": 0,
        "quarantine": "a b/quarantine.jsonl",
        "skipped": [],
        "notes": [],
        "rounded": [],
        "kept_float64": {},
        "warnings": [],
    }
