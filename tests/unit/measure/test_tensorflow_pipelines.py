"""What TensorFlow reads by hand is what `to_tf` reads."""

import numpy as np
import pytest

import datum
from datum._inspect.measure.contenders import make_by_hand, make_to_tf
from datum._inspect.measure.timing import take_sample
from datum._load.options import LoadOptions


def as_plain(column):
    return column.to_list() if hasattr(column, "to_list") else column.numpy().tolist()


def rows_of(batches, *names):
    """All records as tuples, sorted: several files come in any order."""
    rows = []
    for batch in batches:
        rows += zip(*(as_plain(batch[name]) for name in names), strict=True)
    return sorted(rows)


@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_both_have_the_same_records(numbers, shuffle):
    sample = take_sample(numbers["train"], 40)
    options = LoadOptions(batch_size=16, shuffle=shuffle)
    by_hand = rows_of(make_by_hand(sample, options), "x", "y", "name", "tags")
    ours = rows_of(make_to_tf(sample, options, "graph", {}), "x", "y", "name", "tags")
    assert len(ours) == 40
    assert by_hand == ours


def test_columns_are_those_asked_for(numbers):
    sample = take_sample(numbers["train"], 40)
    options = LoadOptions(columns=["x"], threads=1)
    assert list(make_by_hand(sample, options).element_spec) == ["x"]
    assert list(make_to_tf(sample, options, "native", {}).element_spec) == ["x"]


def test_compressed_files_are_read(squeezed):
    sample = take_sample(squeezed["train"], 10)
    found = rows_of(make_by_hand(sample, LoadOptions(batch_size=4)), "x")
    assert len(found) == 10


def test_a_run_within_a_file_starts_where_it_starts(numbers):
    sample = take_sample(numbers["train[5:9]"], 4)
    found = [x for (x,) in rows_of(make_by_hand(sample, LoadOptions()), "x")]
    assert found == sorted(int(record["x"]) for record in numbers["train[5:9]"])


def test_images_are_decoded(photos):
    sample = take_sample(photos["train"], 8)
    (batch,) = make_by_hand(sample, LoadOptions(batch_size=8))
    image = batch["image"][0]
    image = image.to_tensor() if hasattr(image, "to_tensor") else image
    assert image.shape == (320, 320, 3)
    assert np.asarray(batch["label"]).shape == (8,)


def test_files_that_are_compressed_each_in_its_way_are_refused(tmp_path):
    from datum.format import RecordFile

    datum.write({"x": range(5)}, tmp_path / "a", progress=False)
    datum.write({"x": range(5)}, tmp_path / "b", compression="gzip", progress=False)
    files = [next((tmp_path / name).glob("*.tfrecord*")) for name in "ab"]
    assert RecordFile(files[1]).compression == "gzip"
    dataset = datum.load(files)
    sample = take_sample(dataset["all"], 10)
    with pytest.raises(ValueError, match="expected files that are all compressed alike"):
        make_by_hand(sample, LoadOptions())
