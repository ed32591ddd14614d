"""simplejpeg alone: photos whose bytes are in memory, decoded by threads and dropped."""

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from simplejpeg import decode_jpeg


def decode_all(encoded: Sequence[bytes]) -> int:
    """Decodes every photo, on all cores; returns how many."""
    cores = os.cpu_count() or 1
    parts = [encoded[first::cores] for first in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        return sum(pool.map(_decode_part, parts))


def _decode_part(encoded: Sequence[bytes]) -> int:
    deque(map(decode_jpeg, encoded), maxlen=0)  # each is dropped when it is there
    return len(encoded)
