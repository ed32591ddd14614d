"""`make torture`: attack Datum at random for some time, and count what happens.

The attacks of the table take turns. Round n of a run with seed s has the seed s + n, so a failure
is repeated by its own seed and the name of its attack. What was chosen is repeated exactly; where
processes race, the moment is up to the machine.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import math
import os
import pkgutil
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import datum
from datum import _load, _read, _rewrite, _write
from tests.torture import damage, readers, state, writers
from tests.torture.harness import Attack, Round, Violation, playing

MAX_KEPT = 3  # folders of failed rounds, of each attack
ATTACKS = (*writers.ATTACKS, *readers.ATTACKS, *damage.ATTACKS, *state.ATTACKS)


class Run:
    """The counts of a run, and what it keeps of its failures."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept
        self.tally: collections.Counter[str] = collections.Counter()
        self.outcomes: dict[str, collections.Counter[str]] = collections.defaultdict(
            collections.Counter
        )
        self.failures: collections.Counter[str] = collections.Counter()
        self.seeds: list[int] = []
        self.started = time.monotonic()

    def play(self, attack: Attack, seed: int, folder: Path) -> None:
        """Play one round, in a folder for this run."""
        self.seeds.append(seed)
        this = Round(folder / "round", folder / "cache", random.Random(seed), self.tally)
        this.folder.mkdir(parents=True)
        try:
            with playing(this):
                self.outcomes[attack.name][attack.run(this)] += 1
        except Exception as error:
            self.outcomes[attack.name]  # so that the table has it
            self._fail(attack, seed, this, error)
        finally:
            shutil.rmtree(this.folder, ignore_errors=True)

    def _fail(self, attack: Attack, seed: int, this: Round, error: Exception) -> None:
        self.failures[attack.name] += 1
        what = str(error) if isinstance(error, Violation) else traceback.format_exc()
        again = f"make torture SEED={seed} ONLY={attack.name} ROUNDS=1"
        lines = [
            f"{attack.name}: {what}",
            *(f"  {note}" for note in this.notes),
            f"  again: {again}",
        ]
        if self.failures[attack.name] <= MAX_KEPT:
            place = self.kept / f"{seed}-{attack.name}"
            (this.folder / "failure.txt").write_text("\n".join([*lines, ""]))
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(this.folder, place, symlinks=True)
            lines.append(f"  kept: {place}")
        print("\n".join(lines), file=sys.stderr, flush=True)

    def __str__(self) -> str:
        width = max(map(len, self.outcomes), default=6)
        lines = [f"{'attack':<{width}} {'rounds':>7} {'failures':>8}  outcomes"]
        for name, outcomes in self.outcomes.items():
            failures = self.failures[name]
            told = ", ".join(f"{count} {what}" for what, count in outcomes.most_common())
            lines.append(f"{name:<{width}} {outcomes.total() + failures:>7} {failures:>8}  {told}")
        seeds = f"{self.seeds[0]} to {self.seeds[-1]}" if self.seeds else "none"
        hours = (time.monotonic() - self.started) / 3600
        counts = "".join(f"{count:,} {what}\n" for what, count in sorted(self.tally.items()))
        failed = self.failures.total()
        rounds = f"{len(self.seeds):,} rounds in {hours:.2f} hours, seeds {seeds}, {failed} failed"
        return "\n".join([*lines, "", f"{counts}{rounds}"])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, help="how long; by default 60, or all the rounds")
    parser.add_argument("--rounds", type=int, help="stop after so many rounds")
    parser.add_argument("--seed", type=int, help="of the first round; by default a new one")
    parser.add_argument("--only", help="names of attacks, or how they begin, with commas")
    parser.add_argument("--kept", type=Path, default=Path("build/torture"), help="for failures")
    parser.add_argument("--list", action="store_true", help="what attacks there are")
    options = parser.parse_args(arguments)
    if options.list:
        width = max(len(attack.name) for attack in ATTACKS)
        print("\n".join(f"{attack.name:<{width}}  {attack.holds}" for attack in ATTACKS))
        return 0
    attacks = choose_attacks(options.only)
    if not attacks:
        parser.error(f"--only: expected an attack that --list lists, got {options.only!r}")
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    import_all(attacks)
    seconds = options.seconds or (60 if options.rounds is None else math.inf)
    run = Run(options.kept.resolve())
    run.kept.mkdir(parents=True, exist_ok=True)
    is_stopped = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="run-", dir=run.kept) as name:
        os.environ["DATUM_CACHE"] = f"{name}/datum-cache"
        number = 0
        try:
            while number != options.rounds:
                if number and time.monotonic() - run.started > seconds:
                    break
                run.play(attacks[number % len(attacks)], seed + number, Path(name))
                number += 1
        except KeyboardInterrupt:
            is_stopped = True
    print(run, flush=True)
    return 130 if is_stopped else int(bool(run.failures))


def choose_attacks(only: str | None) -> list[Attack]:
    if only is None:
        return list(ATTACKS)
    exact = [attack for attack in ATTACKS if attack.name in only.split(",")]
    return exact or [one for one in ATTACKS if one.name.startswith(tuple(only.split(",")))]


def import_all(attacks: list[Attack]) -> None:
    """Import what the processes need, so that each of them starts at once."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # a fork beside idle threads
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read by processes that import it
    modules = {name for attack in attacks for name in attack.needs}
    modules |= {"numpy.ma", "pandas", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet"}
    for package in (datum.format, datum.sources, _load, _read, _rewrite, _write):
        found = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        modules |= {module.name for module in found}
    for module in sorted(modules):
        importlib.import_module(module)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
