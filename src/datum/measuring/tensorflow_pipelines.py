"""What TensorFlow reads the records with: `to_tf`, and the pipeline that people write by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from datum._optional import require
from datum.frameworks.tensorflow.batching import batch_records, unbatch
from datum.frameworks.tensorflow.dataset import make_dataset
from datum.frameworks.tensorflow.options import TfOptions
from datum.frameworks.tensorflow.parse import GraphParser
from datum.loading import LoadOptions
from datum.loading.decoding import find_decoders
from datum.measuring.sample import Sample
from datum.schema import Feature

__all__ = ["make_by_hand", "make_to_tf"]

tf: Any = require("tensorflow", purpose="measuring TensorFlow")

SHUFFLED_RECORDS = 8192  # a buffer as guides have it
INTERLEAVED_FILES = 4
_COMPRESSION = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}


def make_to_tf(
    sample: Sample, options: LoadOptions, engine: Any, metadata: Mapping[str, Mapping[str, Any]]
) -> Any:
    """What `to_tf` gives of the sample."""
    asked = TfOptions(
        batch_size=options.batch_size,
        shuffle=_shuffle(options),
        seed=options.seed,
        columns=options.columns,
        engine=engine,
        decode=options.decode,
    )
    return _with_threads(make_dataset(sample.split, asked, metadata=metadata), options)


def _shuffle(options: LoadOptions) -> bool | int:
    return True if isinstance(options.shuffle, str) else options.shuffle


def make_by_hand(sample: Sample, options: LoadOptions) -> Any:
    """The same records by files interleaved, a shuffle buffer, and `parse_example` of batches.

    Images are decoded one by one, many at a time.
    """
    schema = options.selected(sample.split.schema)
    records = _read(sample)
    if options.shuffle:
        records = records.shuffle(min(SHUFFLED_RECORDS, sample.records), seed=options.seed)
    size = options.batch_size
    parser = GraphParser(schema, is_trusted=sample.split.shards.writer == "datum")
    batches = records.batch(size).map(parser.parse, num_parallel_calls=tf.data.AUTOTUNE)
    images = find_decoders(schema, options).images
    if images:
        decoded = unbatch(batches).map(_decoder(images), num_parallel_calls=tf.data.AUTOTUNE)
        batches = batch_records(decoded, TfOptions(batch_size=size), is_full=False)
    return _with_threads(batches.prefetch(tf.data.AUTOTUNE), options)


def _read(sample: Sample) -> Any:
    split = sample.split
    kinds = {run.shard.compression for run in split.runs}
    if len(kinds) > 1:
        raise ValueError("expected files that are all compressed alike")
    compression = _COMPRESSION[kinds.pop()]
    paths = [str(split.shards.folder / run.shard.name) for run in split.runs]
    starts = tf.constant([run.start for run in split.runs], tf.int64)
    counts = tf.constant([len(run) for run in split.runs], tf.int64)
    files = tf.data.Dataset.from_tensor_slices((paths, starts, counts))

    def read(path: Any, start: Any, count: Any) -> Any:
        return tf.data.TFRecordDataset(path, compression).skip(start).take(count)

    parallel = tf.data.AUTOTUNE
    return files.interleave(read, cycle_length=INTERLEAVED_FILES, num_parallel_calls=parallel)


def _decoder(images: Mapping[str, Feature]) -> Callable[[Any], Any]:
    def decode(record: dict[str, Any]) -> dict[str, Any]:
        decoded = {name: _decode(record[name], feature) for name, feature in images.items()}
        return {**record, **decoded}

    return decode


def _decode(data: Any, feature: Feature) -> Any:
    channels = feature.shape[-1] or 0
    image = tf.io.decode_image(data, channels, getattr(tf, feature.dtype), expand_animations=False)
    return tf.ensure_shape(image, feature.shape)


def _with_threads(dataset: Any, options: LoadOptions) -> Any:
    if options.threads is None:
        return dataset
    chosen = tf.data.Options()
    chosen.threading.private_threadpool_size = options.threads
    return dataset.with_options(chosen)
