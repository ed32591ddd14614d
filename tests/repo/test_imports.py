"""What `import datum` brings."""

import subprocess
import sys

import pytest

# What takes long to load, so that `import datum` is quick: NumPy is most of its time.
OPTIONAL = ["jax", "ml_dtypes", "pandas", "pyarrow", "scipy", "tensorflow", "torch"]
OPTIONAL += ["PIL", "defusedxml", "rich", "simplejpeg", "typer"]


def run(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return finished.stdout.strip()


def test_importing_datum_loads_only_what_is_quick():
    code = f"import sys, datum; print([m for m in {OPTIONAL} if m in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize(
    "use",
    [
        "datum.format.encode([{'x': 1, 'y': 'a', 'z': [0.5]}])",
        "list(datum.format.RecordFile(datum.format.encode([{'x': 1}]).to_bytes()))",
        "datum.format.discover(datum.format.encode([{'x': 1}])).schema()",
    ],
)
def test_using_datum_loads_only_what_is_quick(use):
    code = f"import sys, datum; {use}; print([m for m in {OPTIONAL} if m in sys.modules])"
    assert run(code) == "[]"


def test_importing_datum_starts_no_thread_and_writes_nothing():
    assert run("import threading, datum; print(threading.active_count())") == "1"


def test_datum_needs_nothing_of_the_tests():
    code = "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None; import datum"
    assert run(code) == ""
