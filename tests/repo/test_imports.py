"""What `import datum` costs and brings."""

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
    # NumPy, most of it, tells how fast the processor is just now: 0.08 s where 0.2 s are meant.
    code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
    numpy_s, datum_s = (
        min(float(run(code.format(name))) for _ in range(RUNS)) for name in ("numpy", "datum")
    )
    assert datum_s < max(MAX_IMPORT_S, 2 * numpy_s)


def test_datum_needs_nothing_of_the_tests():
    code = "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None; import datum"
    assert run(code) == ""
