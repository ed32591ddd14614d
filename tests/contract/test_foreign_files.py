"""Files by other writers: the records and values that TensorFlow and protobuf read, or an error."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from datum import CorruptRecordError, DatumError
from datum.format import RecordFile, discover
from tests.contract.oracle import assert_reads_as_protobuf, read_protobuf, read_tfrecords

COMPRESSION = {"none": None, "GZIP": "gzip", "ZLIB": "zlib"}


def _entries(folder: Path) -> list[dict[str, str]]:
    with (folder / "MANIFEST.tsv").open(encoding="utf-8") as manifest:
        return list(csv.DictReader(manifest, delimiter="\t"))


@pytest.fixture(scope="module")
def foreign(shared_data: Path) -> Path:
    folder = shared_data / "foreign_tfrecords"
    if not folder.is_dir():
        pytest.skip(f"no foreign files at {folder}")
    return folder


def _select(folder: Path, *payloads: str) -> list[tuple[Path, dict[str, str]]]:
    chosen = [entry for entry in _entries(folder) if entry["payload"] in payloads]
    assert chosen, payloads
    return [(folder / entry["file"], entry) for entry in chosen]


def test_records_are_those_that_tensorflow_reads(foreign: Path) -> None:
    for path, entry in [
        (foreign / entry["file"], entry)
        for entry in _entries(foreign)
        if entry["payload"] != "NOT A TFRECORD"
    ]:
        compression = COMPRESSION[entry["compression"]]
        with RecordFile(path) as file:
            assert file.compression == compression, path.name
            records = list(file)
        assert len(records) == int(entry["records"]), path.name
        assert records == read_tfrecords(path, compression=compression), path.name


def test_every_value_of_every_example_is_protobufs(foreign: Path) -> None:
    for path, _ in _select(foreign, "Example"):
        records = list(RecordFile(path))
        messages = [read_protobuf(record) for record in records]
        assert None not in messages
        assert_reads_as_protobuf(records, messages)


def test_every_value_of_every_sequence_example_is_protobufs(foreign: Path) -> None:
    for path, _ in _select(foreign, "SequenceExample"):
        records = list(RecordFile(path))
        messages = [read_protobuf(record, is_sequence=True) for record in records]
        assert None not in messages
        assert_reads_as_protobuf(records, messages)


def test_random_access_gives_the_same_records(foreign: Path) -> None:
    for path, entry in _select(foreign, "Example", "SequenceExample", "raw text"):
        file = RecordFile(path)
        if entry["compression"] != "none":
            with pytest.raises(ValueError, match="expected a file that is not compressed"):
                file[0]
            continue
        records = list(file)
        assert len(file) == len(records)
        assert file[::-1] == records[::-1], path.name


def test_other_payloads_are_read_as_records_and_refused_as_examples(foreign: Path) -> None:
    for path, entry in _select(foreign, "other-proto", "raw text", "ExampleListWithContext"):
        assert len(list(RecordFile(path))) == int(entry["records"])
        assert not _kinds_found(path), path.name


def _kinds_found(path: Path) -> set[str]:
    try:
        found = discover(path)
    except DatumError:
        return set()
    return {kind for feature in found.features.values() for kind in feature.kinds}


def test_files_without_records_are_no_error(foreign: Path) -> None:
    for path, _ in _select(foreign, "no records"):
        assert list(RecordFile(path)) == []
        found = discover(path)
        assert found.records == 0
        assert len(found.schema()) == 0


def test_files_that_are_no_tfrecords_are_refused_at_the_first_byte(foreign: Path) -> None:
    for path, _ in _select(foreign, "NOT A TFRECORD"):
        with pytest.raises(CorruptRecordError) as caught:
            list(RecordFile(path))
        damage = caught.value.damage
        assert (damage.file, damage.offset, damage.record) == (str(path), 0, 0)
        with pytest.raises(CorruptRecordError):
            discover(path)


@pytest.mark.parametrize("recovery", ["tail", "skip"])
def test_recovery_finds_no_records_in_what_is_no_tfrecord(foreign: Path, recovery: str) -> None:
    for path, _ in _select(foreign, "NOT A TFRECORD"):
        file = RecordFile(path, recovery=recovery)
        if recovery == "skip":
            assert list(file) == []
            assert (file.damage[0].offset, file.damage[-1].end) == (0, path.stat().st_size)
        else:
            with pytest.raises(CorruptRecordError):
                list(file)
