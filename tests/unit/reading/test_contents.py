from pathlib import Path

from datum.reading.contents import Contents
from tests.unit.reading.written import write_numbered


def test_a_manifest_tells_all_contents(tmp_path):
    manifest = write_numbered(
        tmp_path,
        compression="gzip",
        metadata={"x": {"class_names": ["a"]}},
        statistics={"train": {"records": 10}},
    )
    contents = Contents.of_manifest(tmp_path, manifest)
    assert contents == Contents(
        folder=tmp_path,
        schema=manifest.schema,
        splits=manifest.splits,
        metadata=manifest.metadata,
        statistics=manifest.statistics,
        compression="gzip",
        writer="datum",
    )
    assert contents.is_published


def test_records_of_others_are_not_published():
    assert not Contents(Path(), {}, {}, writer="tfds").is_published
