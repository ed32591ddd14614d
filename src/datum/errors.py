"""What can go wrong, and how it is told.

DatumError
├── CorruptRecordError        a record is damaged; `damage` says where and how
├── CorruptIndexError         an index file is damaged, or of another shard
├── ManifestError             a manifest is damaged, or of a newer version
├── SchemaError (ValueError)  data and schema do not agree; `record` and `feature` say where
├── SourceError (ValueError)  a source is not as expected, or a record of it cannot be read
├── SplitError (ValueError)   splits are asked for that are not there, or do not add up
├── StateError (ValueError)   the state of a loader is of other records, or in another order
├── WriteError (OSError)      a dataset could not be written; what was there is as it was
└── MissingDependencyError (ImportError)
                              an optional package is needed
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CorruptIndexError",
    "CorruptRecordError",
    "Damage",
    "DatumError",
    "ManifestError",
    "MissingDependencyError",
    "SchemaError",
    "SourceError",
    "SplitError",
    "StateError",
    "WriteError",
]


@dataclass(frozen=True, slots=True)
class Damage:
    """One place where a file does not hold what it should.

    Attributes:
        file: the file's path, or a name in angle brackets for memory.
        offset: the first byte lost, counted in the decompressed stream if the file is compressed.
        end: the first byte after the loss.
        record: the number the lost record would have had; each damage counts as one record.
        kind: "torn header", "torn payload", "length checksum", "payload checksum",
            "oversized record" or "compressed stream"; of a record that is whole, "malformed" if
            it is no tf.train.Example, and "image" if it has one that cannot be decoded; of a shard
            that the names of others tell of, "missing file".
    """

    file: str
    offset: int
    end: int
    record: int
    kind: str

    def __str__(self) -> str:
        return f"{self.file}: record {self.record}, bytes {self.offset}-{self.end}: {self.kind}"


class DatumError(Exception):
    """The base of every error that Datum raises on purpose."""


class CorruptRecordError(DatumError):
    """A record, or the stream that holds it, is damaged."""

    def __init__(self, message: str, damage: Damage | None = None) -> None:
        super().__init__(message)
        self.damage = damage


class CorruptIndexError(DatumError):
    """An index file is damaged, or does not belong to its shard."""


class ManifestError(DatumError):
    """A manifest is damaged, of a newer version, or says what cannot be."""


class SchemaError(DatumError, ValueError):
    """Data and schema do not agree, or a schema does not agree with itself.

    Attributes:
        record: the number of the record within what was given; None if it is no single one.
        feature: the name of the feature; None if it is no single one.
    """

    def __init__(
        self, message: str, *, record: int | None = None, feature: str | None = None
    ) -> None:
        super().__init__(message)
        self.record = record
        self.feature = feature


class SourceError(DatumError, ValueError):
    """A source is not as expected, or a record of it cannot be read."""


class SplitError(DatumError, ValueError):
    """Splits are asked for that are not there, or that do not add up."""


class StateError(DatumError, ValueError):
    """The state of a loader does not fit: it is of other records, or in another order."""


class WriteError(DatumError, OSError):
    """A dataset could not be written; what was there before is as it was."""


class MissingDependencyError(DatumError, ImportError):
    """An optional package is needed for what was asked."""
