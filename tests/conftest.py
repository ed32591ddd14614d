"""What every test can use: the shared real data, and how hard Hypothesis tries."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read once, when TensorFlow is imported
_CACHE = tempfile.TemporaryDirectory(prefix="datum-cache-")
for _size in ("COLUMNS", "LINES"):  # readline sets them, in the processes that xdist starts
    os.environ.pop(_size, None)
os.environ["DATUM_CACHE"] = _CACHE.name  # nothing is left in the user's own

_SLOW_MACHINES = [HealthCheck.too_slow, HealthCheck.data_too_large]

# The default is the same on every run; "thorough" looks further each time.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=100,
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
