"""The calls of the demo: shown as they are run."""

import ast
from typing import Any

import numpy as np
import pytest

import datum
from datum.cli import demo_steps
from datum.cli.demo_steps import save_images


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """A dataset as the demo has it, of two classes in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    made = np.random.default_rng(0).integers(0, 256, (200, 8, 8)).astype(np.uint8)
    save_images(tmp_path / "images", made, np.arange(200) % 2)
    demo_steps.write_dataset()
    return datum.load("digits")


def example(ds: Any, tf: Any) -> Any:
    """Say what it does."""
    made = ds

    def inner(x: Any) -> Any:
        return x

    return inner(made)


def returns_a_name() -> int:
    """Count."""
    count = 1
    count += 1
    return count


def test_code_is_shown_without_name_docstring_types_and_return():
    assert demo_steps.code_of(example).splitlines() == [
        "made = ds",
        "",
        "def inner(x):",
        "    return x",
        "",
        "inner(made)",
    ]


def test_a_name_that_is_returned_is_not_shown():
    assert demo_steps.code_of(returns_a_name) == "count = 1\ncount += 1"


@pytest.mark.parametrize(
    "name",
    [
        "compare_with_tensorflow",
        "feed_numpy",
        "feed_pixels_by_hand",
        "feed_tensorflow",
        "feed_tensorflow_by_hand",
        "go_on_from_state",
        "train_model",
        "write_dataset",
    ],
)
def test_what_is_shown_can_be_typed(name):
    code = demo_steps.code_of(getattr(demo_steps, name))
    ast.parse(code)
    assert "Any" not in code
    assert max(map(len, code.splitlines())) <= 80 - len("   >>> ")


def test_a_dataset_is_written_from_folders(digits):
    assert {name: split.records for name, split in digits.splits.items()} == {
        "train": 160,
        "val": 40,
    }
    assert digits.metadata["label"]["class_names"] == ["0", "1"]


def test_numpy_and_tensorflow_see_the_same(digits):
    assert demo_steps.compare_with_tensorflow(digits) == 160


def test_a_state_goes_on_with_the_same_records(digits):
    assert demo_steps.go_on_from_state(digits) is True


def test_pipelines_by_hand_give_what_datum_gives(digits, tmp_path):
    import tensorflow as tf

    pixels = np.stack([record["image"] for record in digits["all"]])
    labels = np.array([record["label"] for record in digits["all"]])
    datum.write({"image": pixels, "label": labels}, "pixels", progress=False)
    feeds = [
        demo_steps.feed_tensorflow_by_hand(tf, ["digits/train-00000-of-00001.tfrecord"]),
        demo_steps.feed_pixels_by_hand(tf, ["pixels/train-00000-of-00001.tfrecord"]),
        demo_steps.feed_tensorflow(digits),
    ]
    batches = [next(iter(feed)) for feed in feeds]
    batches.append(next(iter(demo_steps.feed_numpy(digits))))
    known = {image.tobytes(): label for image, label in zip(pixels, labels, strict=True)}
    for batch in batches:
        assert batch["image"].shape[1:] == (8, 8, 1)
        assert len(batch["label"]) >= 160
        for image, label in zip(
            np.asarray(batch["image"]), np.asarray(batch["label"]), strict=True
        ):
            assert known[image.tobytes()] == label
