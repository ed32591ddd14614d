"""The options of a write."""

import pytest

from tests.unit.writing.datasets import rows, write


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"compression": "bz2"}, "compression"),
        ({"on_error": "ignore"}, "on_error"),
        ({"shards": 0}, "shards"),
        ({"shard_bytes": 10}, "shard_bytes"),
        ({"workers": 0}, "workers"),
        ({"executor": "cloud"}, "executor"),
        ({"legacy_metadata": True, "compression": "gzip"}, "legacy_metadata"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path, options, match):
    with pytest.raises(ValueError, match=match):
        write(rows(1), tmp_path / "out", **options)
