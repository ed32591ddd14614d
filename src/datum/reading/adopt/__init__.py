"""Records that others wrote, as datasets."""

from datum.reading.adopt.detect import open_dataset
from datum.reading.adopt.save import save_manifest

__all__ = ["open_dataset", "save_manifest"]
