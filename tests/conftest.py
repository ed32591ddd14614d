"""What every test can use: the shared real data, how hard Hypothesis tries, a quick disk."""

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.permissions import permissions_enforced

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read once, when TensorFlow is imported
# The models of tests are so small that the threads of a framework mostly wait for each other, and
# they spin while they wait. The threads of Datum are its own: these leave them alone.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
    os.environ.setdefault(_threads, "1")
_CACHE = tempfile.mkdtemp(prefix="datum-cache-")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
for _size in ("COLUMNS", "LINES"):  # readline sets them, in the processes that xdist starts
    os.environ.pop(_size, None)
os.environ["DATUM_CACHE"] = _CACHE  # nothing is left in the user's own
os.umask(0o022)  # as usual, so that tests of what others may read are the same for everyone


def _check_descriptor(file: Any) -> None:
    """In the place of `os.fsync`, which waits for the disk: no test can see what a power cut takes.

    That it is called at the right places is tested where it fails. Programs that tests start wait.
    """
    os.fstat(file if isinstance(file, int) else file.fileno())


os.fsync = _check_descriptor


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Find the tests without looking for garbage: that makes a million objects, and none is any.

    Nor is any of them garbage later.
    """
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


_SLOW_MACHINES = [HealthCheck.too_slow, HealthCheck.data_too_large]

# The default is the same on every run; "thorough" looks further each time.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=_SLOW_MACHINES,
)
settings.register_profile(
    "thorough", deadline=None, max_examples=2000, suppress_health_check=_SLOW_MACHINES
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real files, or a skip where there is none."""
    base = Path(os.environ.get("DATUM_SHARED", _ROOT.parent / "shared"))
    if not (base / "data").is_dir():
        pytest.skip("no real data: set DATUM_SHARED to the folder that holds data/")
    return base / "data"


@pytest.fixture
def permissions_count() -> Iterator[None]:
    """Let the permissions of files stop a test that runs as root, too."""
    with permissions_enforced():
        yield
