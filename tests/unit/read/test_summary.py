from pathlib import Path

from datum import Feature, Schema
from datum._read.contents import Contents, summarize
from datum.format import Manifest, ShardInfo, SplitInfo

SHARDS = tuple(ShardInfo(f"train-{i}", 600, 60_000_000, 0) for i in range(2))


def test_a_summary_tells_splits_and_features():
    schema = Schema({"image": Feature("bytes"), "label": Feature("int64", optional=True)})
    splits = {"train": SplitInfo(SHARDS), "v": SplitInfo(())}
    metadata = {"label": {"class_names": ["cat", "dog"]}, "image": {"class_names": 3}}
    manifest = Manifest(schema, splits, metadata, compression="gzip")
    assert summarize(Contents.of_manifest(Path("photos"), manifest)).splitlines() == [
        "Dataset('photos', gzip)",
        "  splits:",
        "    train  1,200 records, 2 shards, 120.0 MB",
        "    v      0 records, 0 shards, 0 B",
        "  features:",
        "    image  'bytes'",
        "    label  'int64', optional=True, 2 classes: cat, dog",
    ]


def test_many_classes_are_not_all_shown():
    manifest = Manifest(
        Schema({"x": Feature("int64")}), {}, {"x": {"class_names": [str(i) for i in range(1000)]}}
    )
    text = summarize(Contents.of_manifest(Path("x"), manifest))
    assert text.endswith("'int64', 1,000 classes: 0, 1, 2, 3, 4, ...")


def test_a_summary_tells_who_wrote_it_if_it_was_not_this_library():
    contents = Contents(Path("x"), Schema({}), {}, compression="zlib", writer="tfrecord files")
    assert summarize(contents).startswith("Dataset('x', zlib, tfrecord files)\n")
