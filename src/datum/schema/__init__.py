"""What a record holds: features, their types and shapes."""

from datum.schema.casting import InexactError, as_array, cast_exactly, is_encodable
from datum.schema.dtypes import DTYPES, numpy_dtype
from datum.schema.feature import Encoding, Feature
from datum.schema.infer import infer_feature, infer_schema
from datum.schema.schema import Schema

__all__ = [
    "DTYPES",
    "Encoding",
    "Feature",
    "InexactError",
    "Schema",
    "as_array",
    "cast_exactly",
    "infer_feature",
    "infer_schema",
    "is_encodable",
    "numpy_dtype",
]
