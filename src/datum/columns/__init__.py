"""The columns that a batch is made of, beside plain NumPy arrays."""

from datum.columns.masked import Masked
from datum.columns.ragged import Ragged
from datum.columns.sparse import Sparse
from datum.columns.strings import BytesColumn

__all__ = ["BytesColumn", "Masked", "Ragged", "Sparse"]
