"""Where a dataset that is made of another may be written."""

from __future__ import annotations

import os
from pathlib import Path

from datum.errors import WriteError
from datum.format.naming import MANIFEST_NAME
from datum.writing.staging import check_target

__all__ = ["check_free"]


def check_free(out: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """The folder that is to be written, links followed; WriteError if it is not free.

    It is looked at before anything is read, which may take long; `datum.write` looks again.
    """
    text = os.fspath(out)
    if not text or "\0" in text or "://" in text:
        raise WriteError(f"expected the path of a folder on this computer, got {text!r}")
    target = Path(os.path.realpath(os.path.expanduser(text)))  # noqa: PTH111
    try:
        check_target(target, overwrite=overwrite, append=False)
    except WriteError as error:
        if (target / MANIFEST_NAME).is_file():
            raise WriteError(error, hint="overwrite=True replaces it") from None
        raise
    except OSError as error:
        raise WriteError(
            f"expected a folder that can be written to: {error}", where=target
        ) from error
    return target
