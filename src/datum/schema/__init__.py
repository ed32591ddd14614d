"""The schema of records: features, their types and shapes."""

from datum.schema.feature import (
    DTYPES,
    Encoding,
    Feature,
    InexactError,
    as_array,
    cast_exactly,
    is_encodable,
    numpy_dtype,
)
from datum.schema.infer import SchemaGuess, ValueGuess, guess_value, infer_feature, infer_schema
from datum.schema.plain import ImageBytes, plain_row, plain_value
from datum.schema.schema import (
    EXACT,
    ROUND,
    FloatFacts,
    FloatRule,
    Floats,
    Schema,
    narrowed,
    widened,
)

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
