"""Names and values that try to steer a terminal, or to forge a line: inert wherever they are shown.

Each command is run over datasets, files and folders whose every name is hostile, and each report,
error and repr of the library is looked at. What is ordinary, in any language, stays readable.
"""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import datum
from datum.cli.app import main
from datum.cli.running import DEBUG

# A title, a clear screen by an eight-bit control, a forged hint after each kind of line end, text
# that is turned around, and what ends a line for Python alone.
FORGED = "hint: rm -rf"
EVIL = f"é日本\x1b]0;t\x07\x9b2J\n{FORGED} ~\r{FORGED}\u2028{FORGED}\x85\u202egnp\u2066\x7f"
TURNING = set(map(chr, [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


def assert_inert(text: str) -> None:
    for line in text.split("\n"):
        assert not line.lstrip().startswith(FORGED), line
        for letter in line:
            is_odd = unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in TURNING
            assert not is_odd, f"U+{ord(letter):04X} in {line!r}"


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources and datasets with hostile names, in a folder of such a name."""
    root = tmp_path_factory.mktemp("world") / EVIL
    root.mkdir()
    photos = root / "photos"
    for name in (EVIL, "cat"):
        (photos / name).mkdir(parents=True)
        for at in range(3):
            pixels = np.full((4, 4, 3), at, np.uint8)
            Image.fromarray(pixels).save(photos / name / f"{EVIL}{at}.png")
    (photos / EVIL / f"{EVIL}.png").write_bytes(b"no image")
    with (root / f"{EVIL}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["x", EVIL], ["1", EVIL], ["2", "b"], [EVIL, "c"]])
    rows = [{"x": 1, EVIL: EVIL}, {"x": EVIL, EVIL: "b"}]
    (root / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (root / "odd").mkdir()
    (root / "odd" / f"{EVIL}.xyz").write_text("?")
    (root / f"{EVIL}.toml").write_text(f"[source]\nclass = {json.dumps(FORGED)}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        datum.write(photos, root / "ds", on_error="quarantine", progress=False)
        table = {EVIL: [EVIL, "b", "c", "d"], "x": [1, 2, 3, 4]}
        datum.write(table, root / "table", compression=None, shards=1, progress=False)
    (root / "bare").mkdir()
    (shard,) = (root / "table").glob("*.tfrecord")
    shutil.copy(shard, root / "bare" / f"{EVIL}.tfrecord")
    shutil.copytree(root / "table", root / "damaged")
    (shard,) = (root / "damaged").glob("*.tfrecord")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 0xFF
    shard.write_bytes(data)
    (root / "broken").mkdir()
    shutil.copy(shard, root / "broken" / f"{EVIL}.tfrecord")
    shutil.copytree(root / "ds", root / "lying")
    manifest = json.loads((root / "lying" / "datum.json").read_text())
    manifest["schema"][EVIL] = {"dtype": EVIL}
    manifest["checksum"] = None
    (root / "lying" / "datum.json").write_text(json.dumps(manifest))
    shutil.copytree(root / "ds", root / "torn")
    (root / "torn" / "datum.json").write_text(f'{{"version": 1, {json.dumps(EVIL)}: ')
    return root


SEEN = [
    "info {}/ds",
    "info {}/table",
    "info {}/bare",
    "info {}/damaged",
    "info {}/broken",
    "info {}/lying",
    "info {}/torn",
    "info {}/missing",
    "info {}/odd",
    "info {}/ds --spec tf",
    "info {}/table --spec numpy",
    "head {}/ds",
    "head {}/table",
    "head {}/bare",
    "head {}/damaged",
    "head {}/table --columns EVIL",
    "head {}/table --columns nope",
    "head {}/table --split EVIL",
    "stats {}/ds",
    "stats {}/table",
    "stats {}/bare",
    "stats {}/damaged",
    "verify {}/ds --deep",
    "verify {}/damaged",
    "verify {}/torn",
    "verify {}/bare",
    "repair {}/damaged OUT",
    "repair {}/bare OUT",
    "repair {}/missing OUT",
    "index {}/bare",
    "index {}/damaged --check",
    "reshard {}/ds OUT",
    "reshard {}/damaged OUT",
    "reshard {}/table OUT --where EVIL",
    "reshard {}/table OUT --splits EVIL=0.5",
    "export-to {}/ds OUT --format images",
    "export-to {}/table OUT",
    "export-to {}/damaged OUT",
    "write {}/photos OUT",
    "write {}/photos OUT --on-error quarantine",
    "write {}/photos OUT --dry-run",
    "write {}/EVIL.csv OUT",
    "write {}/EVIL.csv OUT --dry-run",
    "write {}/EVIL.csv OUT --on-error quarantine",
    "write {}/EVIL.csv OUT --schema EVIL=int64",
    "write {}/EVIL.csv OUT --schema x=EVIL",
    "write {}/rows.jsonl OUT",
    "write {}/odd OUT",
    "write {}/missing OUT",
    "write {}/table OUT",
    "write {}/photos {}/ds",
    "write {}/photos OUT --options {}/EVIL.toml",
    "write OUT --source EVIL={}/rows.jsonl",
    "bench {}/ds --frameworks numpy --seconds 0.01",
    "bench {}/damaged --frameworks numpy --seconds 0.01",
    "EVIL",
    "info --EVIL",
    "info {}/ds EVIL",
]
JSON = [
    "info {}/ds --json",
    "info {}/damaged --json",
    "head {}/table --json",
    "head {}/damaged --json",
    "stats {}/table --json",
    "verify {}/damaged --json",
    "repair {}/damaged OUT --json",
    "index {}/bare --json",
    "reshard {}/ds OUT --json",
    "export-to {}/table OUT --json",
    "write {}/photos OUT --json --on-error skip",
    "write {}/photos OUT --json --dry-run",
]


def run(command: str, world: Path, out: Path, *more: str) -> None:
    words = [
        word.replace("{}", str(world)).replace("OUT", str(out)).replace("EVIL", EVIL)
        for word in command.split(" ")
    ]
    DEBUG.set(False)
    with pytest.raises(SystemExit):
        main([*more, *words])


@pytest.mark.parametrize("command", SEEN)
@pytest.mark.parametrize("more", [(), ("--debug",)], ids=["plain", "debug"])
def test_no_command_shows_what_could_steer_a_terminal(world, tmp_path, capsys, command, more):
    run(command, world, tmp_path / EVIL, *more)
    found = capsys.readouterr()
    assert found.out or found.err
    assert_inert(found.out)
    assert_inert(found.err)
    assert not re.search(r"unexpected \w+Error", found.err), found.err


@pytest.mark.parametrize("command", JSON)
def test_json_is_inert_and_reads_back_as_it_was(world, tmp_path, capsys, command):
    run(command, world, tmp_path / EVIL)
    out, err = capsys.readouterr()
    assert_inert(out)
    assert_inert(err)
    values = [json.loads(line) for line in out.splitlines()]
    assert EVIL in "\n".join(texts_of(values))


def texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.items() for text in texts_of(list(item))]
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    return [value] if isinstance(value, str) else []


def collect(world: Path, out: Path) -> dict[str, str]:
    """What the library itself shows of such names: reports, reprs, warnings and errors."""
    shown: dict[str, str] = {}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        report = datum.write(world / "photos", out / "a", on_error="quarantine", progress=False)
        ds, damaged = datum.load(world / "ds"), datum.load(world / "damaged", on_error="skip")
        datum.load(world / "broken", on_error="skip")
        things: list[Any] = [
            report,
            datum.plan(world / "photos"),
            ds,
            ds["train"],
            ds.schema,
            datum.load(world / "table"),
            ds.verify(),
            damaged.verify(),
            datum.profile(world / "damaged"),
            datum.repair(world / "damaged", out / "b"),
            datum.reshard(world / "ds", out / "c"),
            datum.export_to(world / "table", out / "d"),
        ]
    for at, thing in enumerate(things):
        shown[f"str {at}"], shown[f"repr {at}"] = str(thing), repr(thing)
    shown |= {f"warning {at}": str(one.message) for at, one in enumerate(warned)}
    failing = {
        "damaged": lambda: [*datum.load(world / "damaged")["train"]],
        "torn": lambda: datum.load(world / "torn"),
        "lying": lambda: datum.load(world / "lying"),
        "missing": lambda: datum.load(world / EVIL),
        "cell": lambda: datum.write(world / f"{EVIL}.csv", out / "e", schema={"x": "int64"}),
        "row": lambda: datum.write([{EVIL: 1}, {EVIL: EVIL}], out / "f", progress=False),
        "image": lambda: datum.write(world / "photos", out / "g", progress=False),
        "target": lambda: datum.write([{"x": 1}], world / "ds", progress=False),
        "split": lambda: ds[EVIL],
        "feature": lambda: ds.schema.select([EVIL]),
        "splits": lambda: datum.write([{"x": 1}], out / "h", splits={EVIL: 1.0}),
        "option": lambda: datum.write([{"x": 1}], out / "i", on_error=EVIL),
        "column": lambda: ds.to_numpy("train", batch_size=1, columns=[EVIL]),
    }
    for name, call in failing.items():
        with pytest.raises((datum.DatumError, ValueError, KeyError)) as caught:
            call()
        shown[f"error {name}"] = str(caught.value)
    return shown


def test_the_library_shows_nothing_that_could_steer_a_terminal(world, tmp_path):
    shown = collect(world, tmp_path)
    assert any(name.startswith("warning") for name in shown)
    for text in shown.values():
        assert_inert(text)


def test_notebooks_show_names_as_text_and_not_as_markup(tmp_path):
    evil = f"<script>alert(1)</script>{EVIL}"
    datum.write({evil: [evil]}, tmp_path / "out", progress=False)
    ds = datum.load(tmp_path / "out")
    for shown in (ds._repr_html_(), ds["train"]._repr_html_()):
        assert "<script" not in shown
        assert_inert(html.unescape(shown))


def test_lines_of_the_quarantine_are_inert_and_read_back_as_they_were(world):
    text = (world / "ds" / "quarantine.jsonl").read_text()
    assert_inert(text)
    (line,) = map(json.loads, text.splitlines())
    assert EVIL in line["key"]


def test_ordinary_text_of_any_language_stays_readable(tmp_path, capsys):
    words = ["café", "日本語", "\U0001f469\u200d\U0001f680", "مرحبا", "naïve"]
    datum.write({"größe": words}, tmp_path / "données", progress=False)
    for command in ("head", "info", "stats"):
        run(f"{command} {{}}/données", tmp_path, tmp_path)
        assert "größe" in capsys.readouterr().out
    run("head {}/données", tmp_path, tmp_path)
    out = capsys.readouterr().out
    assert all(word in out for word in words)
    run("head {}/données --json", tmp_path, tmp_path)
    out = capsys.readouterr().out
    assert all(word in out for word in words)
    run("info {}/inconnu-é", tmp_path, tmp_path)
    assert "inconnu-é: expected" in capsys.readouterr().err
