"""How other libraries are told what records hold: code and descriptions to paste."""

from datum.specs.dali_code import dali
from datum.specs.tensorflow_code import tensorflow
from datum.specs.tfrecord_code import tfrecord

__all__ = ["dali", "tensorflow", "tfrecord"]
