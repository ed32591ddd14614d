"""All suites by name, in the order they run."""

from collections.abc import Callable

from benchmarks import (
    access,
    checksum,
    growth,
    indexing,
    load_images,
    load_tf,
    native_first,
    native_images,
    native_tabular,
    reading,
    shuffling,
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
    "load_tabular": load_tf.load_tabular,
    "load_wide": load_tf.load_wide,
    "load_tokens": load_tf.load_tokens,
    "load_first": load_tf.load_first,
    "load_images": load_images.load_images,
    "load_crops": load_images.load_crops,
    "native_tabular": native_tabular.native_tabular,
    "torch_tabular": native_tabular.torch_tabular,
    "native_images": native_images.native_images,
    "native_tf": load_tf.native_tf,
    "native_first": native_first.native_first,
    "access": access.access,
    "shuffling": shuffling.shuffling,
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
