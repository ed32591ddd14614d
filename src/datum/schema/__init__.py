"""What a record holds: features, their types and shapes."""

from datum.schema.casting import InexactError, as_array, cast_exactly, is_encodable
from datum.schema.dtypes import DTYPES, numpy_dtype
from datum.schema.feature import Encoding, Feature
from datum.schema.floats import EXACT, ROUND, FloatFacts, FloatRule, Floats, narrowed, widened
from datum.schema.guess import ValueGuess, guess_value
from datum.schema.infer import SchemaGuess, infer_feature, infer_schema
from datum.schema.plain import ImageBytes, plain_row, plain_value
from datum.schema.schema import Schema

__all__ = [
    "DTYPES",
    "EXACT",
    "ROUND",
    "Encoding",
    "Feature",
    "FloatFacts",
    "FloatRule",
    "Floats",
    "ImageBytes",
    "InexactError",
    "Schema",
    "SchemaGuess",
    "ValueGuess",
    "as_array",
    "cast_exactly",
    "guess_value",
    "infer_feature",
    "infer_schema",
    "is_encodable",
    "narrowed",
    "numpy_dtype",
    "plain_row",
    "plain_value",
    "widened",
]
