"""Writes that are struck at every step they take: run as a program, one JSON line for each strike.

A fault is put before the n-th operation on the file system, for every n until the write takes fewer
steps than that. After each the target must be as before or complete, and the same call again must
give the same bytes as a write that was left alone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

import datum

ERRORS = {"full": errno.ENOSPC, "denied": errno.EACCES, "files": errno.EMFILE, "io": errno.EIO}
_EVENTS = ("os.rename", "os.mkdir", "os.remove", "os.rmdir")


def columns():
    return {"x": np.arange(400), "text": np.array([f"record {i}" for i in range(400)])}


def rows():
    return [{"x": i, "y": i / 2, "text": f"record {i}"} for i in range(400)]


SOURCES = {"columns": columns, "rows": rows}


def write(out: Path, source: str, workers: int, *, overwrite: bool) -> None:
    datum.write(
        SOURCES[source](), out, shards=3, workers=workers, overwrite=overwrite, progress=False
    )


def lose_unsynced(folder: Path, synced: set[int]) -> None:
    """What a power cut may do: files keep their names and sizes, but not what was in memory alone.

    A file that was ever on the disk stays as it is, also where it has grown since: the journal of
    shards that are done may survive though nobody waited for it, and must not promise too much.
    """
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_ino not in synced:
            size = path.stat().st_size
            os.truncate(path, 0)
            os.truncate(path, size)


def strike(at: int, fault: str, was_struck: mmap.mmap, synced: int) -> None:
    """Make the n-th operation fail, or kill the process before it.

    The inodes of files that were put on the disk go to the descriptor `synced`.
    """
    left = [at]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            was_struck[0] = 1
            if fault in ("kill", "power cut"):
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(ERRORS[fault], os.strerror(ERRORS[fault]))

    def hook(event: str, args: tuple[object, ...]) -> None:
        is_write = event == "open" and isinstance(args[2], int) and args[2] & os.O_ACCMODE
        if event in _EVENTS or is_write:
            count()

    real_sync = os.fsync

    def sync(descriptor: int) -> None:
        count()
        real_sync(descriptor)
        os.write(synced, b"%d\n" % os.fstat(descriptor).st_ino)

    os.fsync = sync
    sys.addaudithook(hook)


def run_child(work) -> int:
    """Do some work in a process of its own; its exit code, negative if it was killed."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            work()
            code = 0
        except datum.WriteError as error:
            print(json.dumps({"error": str(error)}), file=sys.stderr, flush=True)
            is_clear = "nothing was published" in str(error) and "hint:" in str(error)
            code = 75 if is_clear or "could not be synced" in str(error) else 76
        except BaseException as error:
            print(json.dumps({"unexpected": repr(error)}), flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def digest(folder: Path) -> str:
    """Of all files of a folder, with their names."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path.relative_to(folder)}\n".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def main(
    folder: Path, source: str, fault: str, workers: int, *, step: int, overwrite: bool
) -> None:
    reference = folder / "reference"
    write(reference, source, workers, overwrite=False)
    expected = digest(reference)
    old = folder / "old"
    if overwrite:
        datum.write([{"old": 1}], old, progress=False)
    was_struck = mmap.mmap(-1, 1)  # shared with the children
    at = 1
    while True:
        out = folder / "struck" / "out"
        out.parent.mkdir()
        if overwrite:
            shutil.copytree(old, out)
        before = digest(out) if out.exists() else None

        def struck(at: int = at, out: Path = out) -> None:
            strike(at, fault, was_struck, log.fileno())
            write(out, source, workers, overwrite=overwrite)

        was_struck[0] = 0
        known = {path.stat().st_ino for path in out.parent.rglob("*")}
        with tempfile.TemporaryFile() as log:
            code = run_child(struck)
            log.seek(0)
            known.update(map(int, log.read().split()))
        if fault == "power cut":
            lose_unsynced(out.parent, known)
        after = digest(out) if out.exists() and any(out.iterdir()) else None
        is_complete = after == expected
        again = 0
        if not is_complete:
            again = run_child(lambda out=out: write(out, source, workers, overwrite=overwrite))
        result = {
            "at": at,
            "code": code,
            "target": "complete" if is_complete else "as before" if after == before else "partial",
            "again": again,
            "same bytes": digest(out) == expected,
            "left behind": [path.name for path in out.parent.iterdir() if path != out],
        }
        print(json.dumps(result), flush=True)
        shutil.rmtree(out.parent)
        if not was_struck[0]:
            return
        at += step


if __name__ == "__main__":
    options = json.loads(sys.argv[2])
    main(Path(sys.argv[1]), **options)
