"""What `import datum` costs and brings."""

import os
import subprocess
import sys

import pytest

OPTIONAL = ["jax", "ml_dtypes", "pandas", "pyarrow", "scipy", "tensorflow", "torch"]
MAX_IMPORT_S = 0.2  # what a user may expect of `import`
RUNS = 7  # the best of them: the others tell how busy the machine is


def run(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return finished.stdout.strip()


def test_importing_datum_loads_no_optional_package():
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
def test_using_datum_loads_no_optional_package(use):
    code = f"import sys, datum; {use}; print([m for m in {OPTIONAL} if m in sys.modules])"
    assert run(code) == "[]"


def test_importing_datum_starts_no_thread_and_writes_nothing():
    assert run("import threading, datum; print(threading.active_count())") == "1"


def test_importing_datum_is_quick():
    # Time on the processor: waiting for others on the machine does not count.
    code = "import time; t = time.process_time(); import datum; print(time.process_time() - t)"
    best = min(float(run(code)) for _ in range(RUNS))
    if best >= MAX_IMPORT_S and has_busy_processor():
        pytest.skip("the processor is shared by too many to tell")
    assert best < MAX_IMPORT_S


def has_busy_processor() -> bool:
    """Whether more wants to run than can: sharing a core slows down everything on it."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)


def test_datum_needs_nothing_of_the_tests():
    code = "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None; import datum"
    assert run(code) == ""
