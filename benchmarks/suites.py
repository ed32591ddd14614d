"""All suites by name, in the order they run."""

from collections.abc import Callable

from benchmarks import checksum, growth, indexing, reading, writing
from benchmarks.suite import Setting, Suite

SUITES: dict[str, Callable[[Setting], Suite]] = {
    "tabular": reading.tabular,
    "wide": reading.wide,
    "tokens": reading.tokens,
    "images": reading.images,
    "write": writing.writing,
    "crc": checksum.checksum,
    "index": indexing.indexing,
    "growth": growth.growth,
}
