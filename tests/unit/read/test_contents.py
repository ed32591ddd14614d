from pathlib import Path

from datum._read.contents import Contents
from datum.errors import Damage
from datum.format import ShardInfo, SplitInfo
from tests.unit.read.written import write_numbered


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


def test_shards_with_damage_are_named_with_the_records_that_are_no_messages():
    shards = SplitInfo(tuple(ShardInfo(name, 5, 100, None) for name in ("a", "b", "c")))
    damage = (
        Damage("folder/a", 10, 20, 1, "payload checksum"),
        Damage("folder/b", 10, 20, 1, "malformed"),
        Damage("folder/b", 30, 40, 3, "malformed"),
        Damage("folder/gone", 0, 0, 0, "missing file"),
    )
    contents = Contents(Path("folder"), {}, {"train": shards}, damage=damage)
    assert contents.left_out == {"a": (), "b": (1, 3)}
