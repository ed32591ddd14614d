import dataclasses
import pickle

import pytest

import datum
from datum import (
    CorruptIndexError,
    CorruptRecordError,
    Damage,
    DatumError,
    MissingDependencyError,
    SchemaError,
)

DAMAGE = Damage("a.tfrecord", 16, 40, 3, "payload checksum")


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (CorruptRecordError, Exception),
        (CorruptIndexError, Exception),
        (SchemaError, ValueError),
        (MissingDependencyError, ImportError),
    ],
)
def test_every_error_is_a_datum_error_and_its_builtin(error, builtin):
    assert issubclass(error, DatumError)
    assert issubclass(error, builtin)


def test_the_tree_in_the_docstring_names_every_error():
    names = [name for name in datum.errors.__all__ if name.endswith("Error")]
    assert names
    assert all(name in datum.errors.__doc__ for name in names)


def test_damage_tells_file_record_bytes_and_kind():
    assert str(DAMAGE) == "a.tfrecord: record 3, bytes 16-40: payload checksum"


def test_damage_is_a_value_that_cannot_be_changed():
    assert Damage("a.tfrecord", 16, 40, 3, "payload checksum") == DAMAGE
    assert len({DAMAGE, dataclasses.replace(DAMAGE)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        DAMAGE.offset = 0


def test_a_corrupt_record_error_carries_its_damage():
    error = CorruptRecordError("broken", DAMAGE)
    assert str(error) == "broken"
    assert error.damage is DAMAGE
    assert CorruptRecordError("broken").damage is None


def test_errors_survive_the_trip_between_processes():
    error = pickle.loads(pickle.dumps(CorruptRecordError("broken", DAMAGE)))
    assert str(error) == "broken"
    assert error.damage == DAMAGE
