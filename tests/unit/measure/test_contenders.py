"""The loaders that are measured against each other."""

import io
import logging
import os
import sys
import warnings

import numpy as np
import pytest
from PIL import Image

import datum
from datum._inspect.measure.contenders import (
    Settings,
    choose_frameworks,
    decode_encoded,
    find_image_sizes,
    find_version,
    loader_entries,
    make_by_hand,
    make_to_tf,
    quiet,
)
from datum._inspect.measure.timing import take_sample
from datum._load.options import LoadOptions
from datum.errors import MissingDependencyError

OPTIONS = LoadOptions(batch_size=10, shuffle=True)


def entries(dataset, framework, **settings):
    sample = take_sample(dataset["train"], 40)
    asked = Settings(options=OPTIONS, metadata=dataset.metadata, **settings)
    return sample, {entry.name: entry for entry in loader_entries(framework, sample, asked)}


def values_of(column):
    return np.asarray(column).tolist()


@pytest.mark.parametrize(
    ("framework", "names"),
    [
        ("numpy", ["to_numpy"]),
        ("torch", ["to_torch", "DataLoader"]),
        ("jax", ["to_jax"]),
        ("tf", ["to_tf native", "to_tf graph", "tf.data by hand"]),
    ],
)
def test_the_loaders_of_a_framework(numbers, framework, names):
    _, found = entries(numbers, framework)
    assert list(found) == names
    assert {entry.framework for entry in found.values()} == {framework}


@pytest.mark.parametrize(
    ("framework", "name"),
    [
        ("numpy", "to_numpy"),
        ("torch", "to_torch"),
        ("jax", "to_jax"),
        ("tf", "to_tf native"),
        ("tf", "to_tf graph"),
        ("tf", "tf.data by hand"),
    ],
)
def test_every_loader_gives_all_records_in_every_pass(numbers, framework, name):
    sample, found = entries(numbers, framework)
    contender = found[name].make()
    assert contender.batches == 4
    batches = list(contender.run(2))
    assert len(batches) == contender.lead + 2 * contender.batches
    seen = [x for batch in batches[contender.lead :] for x in values_of(batch["x"])]
    expected = [int(record["x"]) for record in sample.split]
    assert sorted(seen) == sorted(2 * expected)
    assert seen[:40] != expected  # shuffled


def test_workers_of_a_data_loader_give_all_records(numbers):
    sample, found = entries(numbers, "torch", workers=1, worker_epochs=3)
    contender = found["DataLoader"].make()
    assert (contender.epochs, contender.batches) == (3, 12)
    with quiet():  # forks beside threads are warned of
        seen = [x for batch in contender.run(1) for x in values_of(batch["x"])]
    assert sorted(seen) == sorted(3 * [int(record["x"]) for record in sample.split])


def test_the_call_names_the_workers(numbers):
    _, found = entries(numbers, "torch", workers=7)
    assert "num_workers=7" in found["DataLoader"].call


@pytest.mark.parametrize("asked", [None, "all"])
def test_none_is_all_that_are_installed(asked):
    assert choose_frameworks(asked) is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("tf", ["tf"]),
        ("tf, torch", ["torch", "tf"]),
        (["TensorFlow", "pytorch", "numpy", "torch"], ["numpy", "torch", "tf"]),
        ([], []),
    ],
)
def test_names_come_in_one_order(asked, expected):
    assert choose_frameworks(asked) == expected


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("tensorflw", "did you mean 'tensorflow'"), ("q", "there are numpy, torch, jax, tf")],
)
def test_an_unknown_name_is_refused(asked, hint):
    with pytest.raises(ValueError, match=f"expected .* got '{asked}'\nhint: {hint}"):
        choose_frameworks(asked)


def test_a_framework_tells_its_version():
    assert find_version("numpy") == np.__version__


def test_what_is_not_installed_is_missing_or_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    assert find_version("jax") is None
    with pytest.raises(MissingDependencyError, match="measuring jax needs the package `jax`"):
        find_version("jax", is_needed=True)


def test_quiet_silences_and_leaves_all_as_it_was(monkeypatch, caplog):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with quiet():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
        warnings.warn("chatter", stacklevel=1)
        logging.getLogger("torch").warning("chatter")
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ
    assert caplog.text == ""
    logging.getLogger("torch").warning("heard again")
    assert "heard again" in caplog.text
    with pytest.warns(UserWarning, match="heard again"):
        warnings.warn("heard again", stacklevel=1)


def test_what_the_user_set_stays(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with quiet():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"


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


def test_the_size_of_images_is_that_of_their_pixels(photos):
    found = find_image_sizes(photos["train"], LoadOptions(batch_size=4))
    assert found.side == 320
    assert found.bytes == 320 * 320 * 3


def test_there_is_no_size_without_images(numbers, photos):
    assert find_image_sizes(numbers["train"], LoadOptions()) is None
    assert find_image_sizes(photos["train"], LoadOptions(columns=["label"])) is None


def encoded(kind, size=(6, 4)):
    buffer = io.BytesIO()
    Image.new("RGB", size).save(buffer, kind)
    return buffer.getvalue()


def split_of(tmp_path, values):
    schema = {"data": datum.Feature("bytes")}
    datum.write({"data": values}, tmp_path / "d", schema=schema, progress=False)
    return datum.load(tmp_path / "d")["train"]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
def test_bytes_that_are_images_are_decoded(tmp_path, kind):
    split = split_of(tmp_path, [encoded(kind)] * 3)
    options, notes = decode_encoded(split, LoadOptions())
    assert options.decode == {"data": True}
    assert "'data'" in notes[0]
    assert find_image_sizes(split, options).side == 6


@pytest.mark.parametrize(
    "values", [[b"text", b"more"], [b"\xff\xd8\xff but no more"] * 2, [b"", b""]]
)
def test_other_bytes_are_left_alone(tmp_path, values):
    options = LoadOptions()
    assert decode_encoded(split_of(tmp_path, values), options) == (options, ())


def test_one_that_is_no_image_leaves_all_alone(tmp_path):
    options = LoadOptions()
    split = split_of(tmp_path, [encoded("PNG"), b"none"])
    assert decode_encoded(split, options) == (options, ())


def test_images_that_say_so_need_no_note(photos):
    options = LoadOptions()
    assert decode_encoded(photos["train"], options) == (options, ())
