"""The options of a write."""

import pytest

from datum import SplitError
from datum._write.options import check_options
from tests.unit.write.datasets import rows, write


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"compression": "bz2"}, "compression"),
        ({"on_error": "ignore"}, "on_error"),
        ({"floats": "float16"}, "floats"),
        ({"shards": 0}, "shards"),
        ({"records_per_shard": 0}, "records_per_shard"),
        ({"records_per_shard": 2.5}, "records_per_shard"),
        ({"records_per_shard": 5, "shards": 2}, "`shards` or `records_per_shard`, got both"),
        ({"records_per_shard": 5, "shards": {"train": 2}}, "`shards` or `records_per_shard`"),
        ({"shard_bytes": 10}, "shard_bytes"),
        ({"workers": 0}, "workers"),
        ({"executor": "cloud"}, "executor"),
        ({"keys": "coco"}, "keys"),
        ({"sidecars": ["older"], "compression": "gzip"}, "older"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path, options, match):
    with pytest.raises(ValueError, match=match):
        write(rows(1), tmp_path / "out", **options)


def test_shards_of_a_split_that_there_is_not_are_refused():
    options = check_options(
        schema=None,
        floats="float32",
        shuffle=True,
        seed=0,
        shard_bytes=1 << 20,
        shards={"trian": 2},
        records_per_shard=None,
        compression=None,
        workers=None,
        executor="local",
        on_error="raise",
        stratify=None,
        sidecars=(),
        keys=None,
    )
    options.check_split_names(["trian"])
    with pytest.raises(SplitError, match=r"got 'trian'\nhint: did you mean 'train'"):
        options.check_split_names(["train", "val"])
    with pytest.raises(SplitError, match=r"hint: there are other"):
        options.check_split_names(["other"])
