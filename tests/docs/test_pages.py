"""Every code block of every page is run, compared or parsed."""

import contextlib
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import datum
from tests.docs.fences import PAGES, ROOT, Block, blocks, indented_code, name_of, runnable_lines
from tests.docs.running import run_page
from tests.docs.shell import (
    ABORTED,
    assert_alike,
    commands,
    environment,
    run_script,
    run_session,
)

# tests/contract/test_golden_bytes.py checks the `hex` blocks.
LANGUAGES = {"python", "sh", "console", "toml", "json", "yaml", "text", "hex"}


def parse_json(text: str) -> None:
    """Parse one document, or one per line."""
    try:
        json.loads(text)
    except json.JSONDecodeError:
        for line in text.splitlines():
            json.loads(line)


# This page also shows the imports of programs for the older library.
OLDER = ROOT / "docs/guides/paper.md"
PARSERS = {"toml": tomllib.loads, "json": parse_json, "yaml": yaml.safe_load}


# Keras warns about every tf.data.Dataset passed to `fit`.
@pytest.mark.filterwarnings("ignore:.shuffle=True. was passed:UserWarning")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for shown in run_page(page, work, environment(tmp_path / "bin")):
        assert_alike(shown.expected, shown.printed, f"{name_of(page)}:{shown.line}: {shown.what}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_program_shown_as_a_file_is_run(page):
    shown = blocks(page)
    for number, block in enumerate(shown):
        if block.title and block.language in ("python", "sh"):
            after = [one.text for one in shown[number:] if one.language in ("sh", "console")]
            assert any(block.title in text for text in after), f"{block.line}: {block.title}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_in_a_tested_language(page):
    assert [
        f"{block.line}: {block.language!r}"
        for block in blocks(page)
        if block.language not in LANGUAGES
    ] == []
    assert indented_code(page) == []


@pytest.mark.parametrize("page", sorted(set(PAGES) - {OLDER}), ids=name_of)
def test_examples_import_public_modules_only(page):
    text = "\n".join(block.text for block in blocks(page) if block.language == "python")
    imported = set(re.findall(r"^ *(?:>>> )?(?:from|import) datum\.([\w.]+)", text, re.MULTILINE))
    assert imported - set(datum.__all__) == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_data_can_be_parsed(page):
    for block in blocks(page):
        PARSERS.get(block.language, str)(block.text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_text_block_contains_no_python(page):
    before, found = "", []
    for block in blocks(page):
        is_output = block.follows and before in ("python", "sh")
        if block.language == "text" and not is_output:
            found += runnable_lines(block.text)
        before = block.language
    assert found == []


def test_the_tests_named_by_guarantees_exist():
    page = (ROOT / "docs/concepts/guarantees.md").read_text()
    named = set(re.findall(r"\btest_\w+\.py", page))
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(named) > 20
    assert named - there == set()


def test_the_readme_shows_python():
    assert "python" in {block.language for block in blocks(ROOT / "README.md")}


def page_of(folder: Path, text: str) -> Path:
    (folder / "page.md").write_text(text)
    return folder / "page.md"


def test_blocks_know_their_line_and_what_they_follow(tmp_path, monkeypatch):
    page = page_of(
        tmp_path, "a\n```python\nx = 1\n```\n\n```text\n1\n```\nb\n\n  ```sh\n  ls\n  ```\n"
    )
    assert blocks(page) == [
        Block("python", 2, "x = 1\n", False),
        Block("text", 6, "1\n", True),
        Block("sh", 11, "ls\n", False),
    ]


def test_indented_code_is_found(tmp_path):
    page = page_of(
        tmp_path, "a\n\n    import os\n\n- b\n\n    more of b\n\n```text\n\n    c\n```\n"
    )
    assert indented_code(page) == ["    import os"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('datum.load("x")  # a\nmore of it', ['datum.load("x")  # a']),
        ("model = f(\n    1,\n)", ["model = f(", "    1,", ")"]),
        ("import datum", ["import datum"]),
        ("photos/\n  cat/1.jpg\n\nx: 3 records", []),
        ("masked = crc modulo 2^32", []),
    ],
)
def test_python_in_a_sketch_is_found(text, expected):
    assert runnable_lines(text) == expected


def test_a_failing_script_is_reported_with_its_output(tmp_path):
    with pytest.raises(AssertionError, match="exit code 3 of\n(?s:.*)\nheard"):
        run_script("echo heard; (exit 3)\necho not so", tmp_path, environment())


def test_commands_that_change_the_machine_are_not_run(tmp_path):
    script = 'pip install ".[torch]"  # big\nmake demo SECONDS=3\nmake test\nls > found'
    run_script(script, tmp_path, environment())
    assert (tmp_path / "found").exists()


@pytest.mark.parametrize("line", ['pip install "datum[torhc]"', "make demmo", "make test demmo"])
def test_names_in_commands_that_are_not_run_must_exist(line, tmp_path):
    with pytest.raises(AssertionError, match="no such"):
        run_script(line, tmp_path, environment())


def test_a_session_is_compared_with_its_output(tmp_path):
    run_session(
        "$ echo a; echo b >&2\na\nb\n$ printf 'c 1.5 s d'\nc 20 s d\n", tmp_path, environment()
    )
    run_session("$ seq \\\n    5\n1\n...\n5\n", tmp_path, environment())
    with pytest.raises(AssertionError, match=re.escape("$ echo a")):
        run_session("$ echo a\nb\n", tmp_path, environment())


def test_a_session_shows_the_exit_code_of_a_failing_command(tmp_path):
    run_session("$ (exit 3)\n$ echo $?\n3\n$ echo a\na\n", tmp_path, environment())
    with pytest.raises(AssertionError, match="untold"):
        run_session("$ (exit 3)\n$ echo a\na\n", tmp_path, environment())
    with pytest.raises(AssertionError, match="ends with 3"):
        run_session("$ (exit 3)\n", tmp_path, environment())


def test_log_lines_of_frameworks_are_not_compared(tmp_path):
    logged = "I0000 00:00:1794953504.264127 12864 port.cc:153] oneDNN custom operations are on."
    dated = "2026-11-17 22:22:22.123456: W tensorflow/core/x.cc:1] a word"
    session = f"$ echo a; echo '{logged}' >&2; echo '{dated}' >&2; echo b\na\nb\n"
    run_session(session, tmp_path, environment())
    with pytest.raises(AssertionError, match="a word of our own"):
        run_session("$ echo a; echo a word of our own >&2\na\n", tmp_path, environment())


@pytest.mark.parametrize(("aborts", "is_fine"), [(1, True), (9, False)])
def test_a_process_group_that_aborts_at_its_end_is_run_again(tmp_path, aborts, is_fine):
    script = (
        "echo x >> tries; # python -m torch.distributed.run\n"
        f'if [ "$(wc -l < tries)" -le {aborts} ]; then echo "{ABORTED}"; exit 1; fi'
    )
    with contextlib.nullcontext() if is_fine else pytest.raises(AssertionError, match=ABORTED):
        run_script(script, tmp_path, environment())


def test_a_command_may_span_several_lines():
    assert list(commands("$ a \\\n  b\nout\n$ c\n")) == [("a \\\n  b", "out\n"), ("c", "")]


def test_datum_on_the_path_is_from_this_tree(tmp_path):
    env = environment(tmp_path / "bin")
    run_session("$ datum --version\ndatum ...\n", tmp_path, env)
    run_session("$ python -c 'print(1)'\n1\n", tmp_path, env)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a 0.1 s", "a   12.5 s"),
        ("in 3 ms, 1,200 records/s", "in 47 ms, 900 records/s"),
        ("12.1 MB/s", "3 GB/s"),
        ("12 k/s", "3/s"),
        ("a\n...\nc", "a\nb\nb\nc"),
    ],
)
def test_times_and_rates_are_alike(shown, printed):
    assert_alike(shown, printed, "a block")


@pytest.mark.parametrize(("shown", "printed"), [("3 shards", "4 shards"), ("a  b", "a b")])
def test_other_differences_are_not_alike(shown, printed):
    with pytest.raises(AssertionError):
        assert_alike(shown, printed, "a block")
