"""Files that are made once and kept, until the code that makes them changes."""

import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType


def cached(name: str, cache: Path, make: Callable[[Path], None], *makers: ModuleType) -> Path:
    """The file or folder of that name, made now unless `cache` has it.

    Its name begins with a hash of the code of `makers`, so that a change makes new files.
    """
    code = "".join(map(inspect.getsource, makers)).encode()
    path = cache / f"{hashlib.sha256(code).hexdigest()[:12]}-{name}"
    if not path.exists():
        part = path.with_name(f"part-{path.name}")
        cache.mkdir(parents=True, exist_ok=True)
        make(part)
        part.rename(path)
    return path
