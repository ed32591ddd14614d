"""All suites by name, in the order they run."""

from collections.abc import Callable

from benchmarks import (
    checksum,
    growth,
    indexing,
    reading,
    write_images,
    write_rows,
    write_scale,
    write_tables,
    writing,
)
from benchmarks.suite import Setting, Suite

SUITES: dict[str, Callable[[Setting], Suite]] = {
    "tabular": reading.tabular,
    "wide": reading.wide,
    "tokens": reading.tokens,
    "images": reading.images,
    "write": writing.writing,
    "write_rows": write_rows.write_rows,
    "write_tables": write_tables.write_tables,
    "write_csv": write_tables.write_csv,
    "write_folder": write_images.write_folder,
    "write_copy": write_images.write_copy,
    "write_shrunk": write_images.write_shrunk,
    "write_scale": write_scale.write_scale,
    "crc": checksum.checksum,
    "index": indexing.indexing,
    "growth": growth.growth,
}
