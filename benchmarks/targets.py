"""Where writers write: a new folder for every run, all of them gone in the end."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp


class Targets:
    """Hands out empty folders on the disk of the cache; they go when the program ends.

    What earlier runs wrote stays until then, or until `clear`: to remove a folder of images takes
    longer than to copy it, and would count as part of the next run.
    """

    def __init__(self, cache: Path) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        self._home = TemporaryDirectory(prefix="written-", dir=cache)

    def new(self) -> Path:
        """A folder that is there and empty."""
        return Path(mkdtemp(dir=self._home.name))

    def clear(self) -> None:
        """Removes all folders, and leaves nothing for the disk to do."""
        for folder in Path(self._home.name).iterdir():
            shutil.rmtree(folder)
        os.sync()


def shard_paths(folder: Path) -> list[Path]:
    """The TFRecord files that a writer left there, by whatever name, in order."""
    return sorted(path for path in folder.rglob("*.tfrecord*") if path.is_file())
