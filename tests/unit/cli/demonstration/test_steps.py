"""The steps of the demo, one by one, and without TensorFlow."""

import importlib.util

import pytest

from datum.cli import demo_steps
from datum.cli.demo_steps import Story, read_digits


@pytest.fixture
def story(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no TensorFlow
    monkeypatch.setattr(demo_steps, "COPIES", 1)
    monkeypatch.setattr(demo_steps, "TURNS", 1)
    monkeypatch.setattr(demo_steps, "SECONDS", 0.01)
    return Story()


def test_each_step_shows_its_calls_and_what_came_of_them(story, tmp_path, capsys):
    digits = demo_steps.make_images(story, *read_digits())
    assert len(list(tmp_path.glob("images/*/*.png"))) == len(digits.files) == 1797
    assert "1,797 handwritten digits" in capsys.readouterr().out

    ds = demo_steps.write(story)
    out = capsys.readouterr().out
    assert '>>> datum.write("images", "digits", splits=splits, stratify="label")' in out
    assert "$ datum write images digits --splits train=0.8,val=0.2 --stratify label" in out
    assert "1,438 records, 1 shard" in out
    assert "datum.json" in out

    demo_steps.look(story, ds)
    out = capsys.readouterr().out
    assert '>>> ds = datum.load("digits")' in out
    assert "$ datum info digits" in out
    assert "10 classes" in out

    demo_steps.compare(story, ds)
    out = capsys.readouterr().out
    assert "1,797 of 1,797" in out
    assert "Passed over: the comparison with it needs the package `tensorflow`" in out
    assert out.endswith("   True\n")

    demo_steps.measure(story, ds, digits)
    out = capsys.readouterr().out
    assert "1,797 records" in out
    assert out.count("records/s") == 2
    assert "hint: pip install tensorflow" in out
    assert "Measured: shuffled batches of 256" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits", "images"]


def test_a_file_that_differs_is_counted_as_such(story, tmp_path, capsys):
    pixels, labels = read_digits()
    demo_steps.make_images(story, pixels[:200], labels[:200])
    ds = demo_steps.write(story)
    first, second = sorted(tmp_path.glob("images/*/*.png"))[:2]
    first.write_bytes(second.read_bytes())
    demo_steps.compare(story, ds)
    assert "199 of 200 are equal" in capsys.readouterr().out
