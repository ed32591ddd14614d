"""From data to training in environments that have no TensorFlow.

Such an environment is a folder with links to some of the installed packages, and to nothing else:
those that were asked for and all that they need. Python starts with it instead of its own.
"""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import datum

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
START = """
import runpy, sys
folder, script, *arguments = sys.argv[1:]
sys.path.append(folder)
sys.path.insert(0, script.rpartition("/")[0])
sys.argv = [script, *arguments]
runpy.run_path(script, run_name="__main__")
"""


def needs_of(name: str) -> list[str]:
    """The packages that an installed one needs, but for those that only its extras do."""
    found = metadata.requires(name) or []
    return [re.match(r"[\w.-]+", need)[0] for need in found if "extra ==" not in need]


def all_needed(names: list[str]) -> dict[str, metadata.Distribution]:
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another platform
            continue
        waiting += needs_of(name)
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Makes an environment of Datum and some more packages."""

    def make(*names: str) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        for name, package in all_needed(["datum", *names]).items():
            if name == "datum":
                continue
            tops = {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}
            for top in tops:
                if not (folder / top).exists():
                    (folder / top).symlink_to(Path(str(package.locate_file(top))).resolve())
        (folder / "datum").symlink_to(Path(datum.__file__).parent)
        return folder

    return make


def run(folder: Path, script: Path, *arguments: object, cwd: Path) -> str:
    settings = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ran = subprocess.run(
        # -I and -S: no packages but those of the folder.
        [sys.executable, "-I", "-S", "-c", START, folder, script, *map(str, arguments)],
        cwd=cwd,
        env=settings,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def trained_alone(environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    return json.loads(run(environment(), HERE / "numpy_alone.py", folder / "rows", cwd=folder))


def test_the_whole_path_needs_no_framework(trained_alone):
    assert trained_alone["there"] == []
    assert trained_alone["accuracy"] > 0.95
    assert trained_alone["name"].startswith("n")
    assert all(isinstance(word, str) for words in trained_alone["words"] for word in words)


@pytest.mark.parametrize(
    ("method", "package"), [("to_tf", "tensorflow"), ("to_torch", "torch"), ("to_jax", "jax")]
)
def test_what_needs_a_framework_says_which_one(trained_alone, method, package):
    expected = f"needs the package `{package}`\nhint: pip install {package}"
    assert expected in trained_alone["told"][method]


def test_no_such_environment_has_tensorflow(environment, tmp_path):
    script = tmp_path / "look.py"
    script.write_text("import importlib.util as u; print(u.find_spec('tensorflow'))")
    folder = environment("jax", "torch", "scikit-learn", "pandas")
    assert run(folder, script, cwd=tmp_path).strip() == "None"


@pytest.mark.parametrize("name", ["train_jax_images.py", "train_jax_table.py"])
def test_jax_trains_without_tensorflow(environment, tmp_path, name):
    pytest.importorskip("jax")
    folder = environment("jax", "scikit-learn", "pandas")
    assert " %: True" in run(folder, EXAMPLES / name, cwd=tmp_path)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("train_torch_*.py")), ids=lambda s: s.name)
def test_torch_trains_without_tensorflow(environment, tmp_path, script):
    pytest.importorskip("torch")
    folder = environment("torch", "scikit-learn", "pandas")
    assert " %: True" in run(folder, script, cwd=tmp_path)


def test_mixing_needs_no_framework(environment, tmp_path):
    printed = run(environment(), EXAMPLES / "mix_datasets.py", cwd=tmp_path)
    assert "taken up again it is the same: True" in printed
