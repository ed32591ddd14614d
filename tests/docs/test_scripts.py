"""Every script in examples/ runs by itself and prints what it should.

Those that do not import TensorFlow run where there is none: with the frameworks that they import.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import datum
from tests import bare
from tests.docs.shell import ABORTED, environment

EXAMPLES = Path(__file__).parents[2] / "examples"
DATUM = Path(datum.__file__).parent
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
FRAMEWORKS = ("jax", "tensorflow", "torch")

# What a script must print, whatever the order of its records.
EXPECTED = {
    "mix_datasets.py": [
        "Nearest to 70 %: True",
        "equally often, but for one: True",
        "taken up again it is the same: True",
    ],
    "random_access.py": ["More than 90 %: True"],
    "read_foreign_records.py": ["'float32', (None,)", "street: sound: 50 records"],
    "read_with_tensorflow.py": ["[[], [0], [0, 1], [0, 1, 2]]", "[-1.  1.  2. -1.]"],
    "train_images.py": ["More than 95 %: True"],
    "train_jax_images.py": ["More than 95 %: True"],
    "train_jax_table.py": ["it learns the same: True", "More than 90 %: True"],
    "train_table.py": ["More than 90 %: True"],
    "train_text.py": ["encoding='sparse'", "More than 90 %: True"],
    "train_torch_ddp.py": ["Of all 359 together", "More than 95 %: True"],
    "train_torch_images.py": ["it learns exactly the same: True", "More than 95 %: True"],
    "train_torch_table.py": ["More than 93 %: True"],
    "write_class_folders.py": ["byte for byte: True"],
    "write_detection.py": ["bus: 0.50 0.20 0.95 0.80", "three.jpg, boxes: 0"],
    "write_labelled_images.py": ["cat3: (64, 96, 3), siamese, not weighed"],
    "write_masks.py": ["{0: 208, 1: 208, 2: 352}", "[[0, 0, 0], [128, 64, 128], [70, 130, 180]]"],
    "write_rows.py": ["998 records", "message-456: feature 'score': expected"],
    "write_tables.py": [
        "from_frame: 5 of 5 files are the same",
        "from_csv: 5 of 5 files are the same",
        "from_parquet: 5 of 5 files are the same",
        "from_categories: 0 of 5 files are the same",
    ],
    "write_text.py": ["about/kind  'str'", "die Übersetzung ist holprig"],
    "write_with_encoders.py": ["(9, 3) gets 4 of 4 right"],
}


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a short name, because the names of sockets in it are limited."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def frameworks_of(script: Path) -> list[str]:
    """The frameworks that a script imports."""
    text = script.read_text()
    return [
        name for name in FRAMEWORKS if re.search(rf"^ *(import|from) {name}\b", text, re.MULTILINE)
    ]


@pytest.fixture(scope="module")
def without_tensorflow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An environment for each other framework; and "", where there is none."""
    return {
        name: bare.fill(
            tmp_path_factory.mktemp("environment"), *filter(None, [name]), "scikit-learn", "pandas"
        )
        for name in ("", "jax", "torch")
    }


def run(
    script: Path, folder: Path, environments: dict[str, Path]
) -> subprocess.CompletedProcess[str]:
    place, temporary = folder / "work", str(folder / "temporary")
    name = "".join(frameworks_of(script))
    if name in environments:
        return bare.run(environments[name], script, cwd=place, TMPDIR=temporary)
    return subprocess.run(
        [sys.executable, script],
        cwd=place,
        env={**environment(), "TMPDIR": temporary},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def is_ours(line: str) -> bool:
    """Whether a line of stderr comes from Datum or the script, and not from a framework."""
    ours = ("Traceback", "writing: ", "warning: ", "error: ", "hint: ")
    return line.startswith(ours) or f"{EXAMPLES}/" in line or f"{DATUM}/" in line


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs_prints_and_leaves_nothing_behind(script, short_folder, without_tensorflow):
    (short_folder / "temporary").mkdir()
    (short_folder / "work").mkdir()
    ran = run(script, short_folder, without_tensorflow)
    if ran.returncode and ABORTED in ran.stderr:
        ran = run(script, short_folder, without_tensorflow)
    assert ran.returncode == 0, ran.stderr
    assert [line for line in ran.stderr.splitlines() if is_ours(line)] == []
    assert ran.stdout.strip()
    assert [part for part in EXPECTED.get(script.name, []) if part not in ran.stdout] == []
    assert list((short_folder / "work").iterdir()) == []
    assert list((short_folder / "temporary").iterdir()) == []


def test_examples_train_without_tensorflow(without_tensorflow, tmp_path):
    (tmp_path / "look.py").write_text(
        f"import importlib.util as u\nprint(*(name for name in {FRAMEWORKS} if u.find_spec(name)))"
    )
    for name, folder in without_tensorflow.items():
        assert bare.run(folder, tmp_path / "look.py", cwd=tmp_path).stdout.strip() == name
    trained = [script for script in SCRIPTS if script.name.startswith("train_")]
    found = [name for script in trained for name in frameworks_of(script)]
    assert {name: found.count(name) for name in FRAMEWORKS} == {
        "jax": 2,
        "tensorflow": 3,
        "torch": 3,
    }


def test_own_warnings_are_distinguished_from_log_lines_of_frameworks():
    assert is_ours(f"{EXAMPLES}/write_text.py:9: UserWarning: 3 records were left out")
    assert is_ours(f"{DATUM}/reader.py:9: RuntimeWarning: odd")
    assert is_ours("Traceback (most recent call last):")
    assert not is_ours("I0000 00:00:1794953504.264127 port.cc:153] oneDNN operations are on.")
    assert not is_ours("WARNING: All log messages before absl::InitializeLog() are written")


def test_every_expectation_belongs_to_a_script():
    assert {script.name for script in SCRIPTS} >= set(EXPECTED)
