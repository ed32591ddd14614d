"""Code and descriptions for other libraries that read the records, ready to paste."""

from datum.specs.dali_code import dali
from datum.specs.tensorflow_code import tensorflow
from datum.specs.tfrecord_code import tfrecord

__all__ = ["dali", "tensorflow", "tfrecord"]
