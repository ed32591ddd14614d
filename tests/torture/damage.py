"""Attacks on files at rest: damaged copies of a dataset, loaded, verified, read and repaired."""

from __future__ import annotations

import collections
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import datum
from tests.torture import data
from tests.torture.harness import Attack, Round, Violation, files_of
from tests.torture.readers import COUNT, KINDS, Found, Reading, find_datasets, read

# How bytes are damaged: each takes the content of a file, and chance.


def _flip(content: bytearray, chance: Random) -> None:
    for _ in range(chance.choice((1, 1, 2, 16))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def _cut_end(content: bytearray, chance: Random) -> None:
    del content[chance.randrange(len(content)) :]


def _cut_middle(content: bytearray, chance: Random) -> None:
    at = chance.randrange(len(content))
    del content[at : at + chance.randint(1, 2000)]


def _zero(content: bytearray, chance: Random) -> None:
    at = chance.randrange(len(content))
    size = min(chance.choice((1, 16, 512, 4096)), len(content) - at)
    content[at : at + size] = bytes(size)


def _duplicate(content: bytearray, chance: Random) -> None:
    at, size = chance.randrange(len(content)), chance.choice((1, 16, 512, 4096))
    content[at:at] = content[at : at + size]


def _copy_over(content: bytearray, chance: Random) -> None:
    size = min(chance.choice((16, 512, 4096)), len(content) // 2 or 1)
    here, there = (chance.randrange(len(content) - size + 1) for _ in range(2))
    content[here : here + size] = content[there : there + size]


def _insert(content: bytearray, chance: Random) -> None:
    at = chance.choice((chance.randrange(len(content)), len(content)))
    content[at:at] = chance.choice((chance.randbytes(50), bytes(50)))


DAMAGES: dict[str, Callable[[bytearray, Random], None]] = {
    "flips": _flip,
    "cut ends": _cut_end,
    "cuts": _cut_middle,
    "runs of zeros": _zero,
    "duplicated blocks": _duplicate,
    "blocks copied over others": _copy_over,
    "insertions": _insert,
}


def look(folder: Path, on_error: str) -> Found:
    """In a process of its own: read a damaged dataset."""
    options = (("shuffle", False),)
    return read(folder, Reading("to_numpy", on_error, 32, options, 0))


def check_repair(folder: Path, out: Path) -> dict[str, Any]:
    """In a process of its own: repair a dataset, and read what was made of it."""
    report = datum.repair(folder, out, progress=False)
    if report.form != "dataset":
        return {"kept": report.records, "lost": report.lost_records, "records": None}
    repaired = datum.load(out)
    return {
        "kept": report.records,
        "lost": report.lost_records,
        "is_sound": repaired.verify().is_sound,
        "records": [data.record_of(row) for name in repaired.splits for row in repaired[name]],
    }


def verify(folder: Path) -> str:
    """In a process of its own: what a verification says."""
    return "sound" if datum.load(folder).verify().is_sound else "problems"


def damage(this: Round) -> str:
    kind = this.choose(kind=KINDS)
    one, _ = find_datasets(this, kind)
    folder = this.folder / "data"
    shutil.copytree(one, folder)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    shards = [path for path in files if path.name.startswith("train-")]
    for _ in range(this.random.choice((1, 1, 1, 3))):
        path = this.random.choice([*files, *shards])
        name = this.random.choice(list(DAMAGES))
        content = bytearray(path.read_bytes())
        if content:
            DAMAGES[name](content, this.random)
            path.write_bytes(content)
            this.tally[f"{name} in files at rest"] += 1
            this.note(damaged=f"{path.name}: {name}")
    if files_of(folder) == files_of(one):
        return "not changed"
    has_manifest = "files" not in kind
    whole = this.finish(look, one, "raise").records

    verified = this.start(verify, folder).wait()
    verified.check()
    if has_manifest and verified.value == "sound":
        raise Violation("verify calls a damaged dataset sound")
    end = this.start(look, folder, "raise").wait()
    end.check()
    check_records(whole, end.value, is_exact=has_manifest)
    skipping = this.start(look, folder, "skip").wait()
    skipping.check()
    check_records(whole, skipping.value, is_exact=has_manifest, skips=True)
    repaired = this.start(check_repair, folder, this.folder / "repaired").wait()
    repaired.check()
    if repaired.is_done:
        check_repaired(whole, repaired.value, is_exact=has_manifest)
    this.tally["damaged datasets repaired"] += repaired.is_done
    told = "verify reports it" if verified.value == "problems" else verified.error or "unnoticeable"
    return f"{told}; {'repaired' if repaired.is_done else repaired.error + ' of repair'}"


def check_records(
    whole: list[data.Record], found: Found, *, is_exact: bool, skips: bool = False
) -> None:
    mode = "skip" if skips else "raise"
    check_known(whole, found.records, is_exact=is_exact, who=f"on_error={mode!r}")
    if not is_exact or found.error:
        return
    if found.records != whole and not skips:
        raise Violation(f"on_error='raise': {len(found.records)} of {len(whole)}, and no error")
    if len(found.records) + found.skipped != len(whole):
        raise Violation(
            f"on_error='skip': {len(found.records)} records given and {found.skipped} reported as"
            f" skipped, of {len(whole)}"
        )


def check_known(
    whole: list[data.Record], records: list[data.Record], *, is_exact: bool, who: str
) -> None:
    """Violation if there are records that were never there; or, if exact, more than there were."""
    known, found = collections.Counter(whole), collections.Counter(records)
    if strange := found.keys() - known.keys():
        raise Violation(f"{who}: {len(strange)} records that were never there")
    if is_exact and (more := found - known):
        raise Violation(f"{who}: {more.total()} records more than once")


def check_repaired(whole: list[data.Record], found: dict[str, Any], *, is_exact: bool) -> None:
    records = found["records"]
    if records is None:
        return
    check_known(whole, records, is_exact=is_exact, who="repair")
    if not found["is_sound"]:
        raise Violation("what repair has written is not sound")
    if found["kept"] != len(records):
        raise Violation(f"repair says that it kept {found['kept']}, and kept {len(records)}")
    if is_exact and found["lost"] is not None and found["kept"] + found["lost"] != COUNT:
        raise Violation(f"repair: {found['kept']} kept + {found['lost']} lost, of {COUNT}")


ATTACKS = (
    Attack("damage", "verify reports it; nothing is invented; what repair says adds up", damage),
)
