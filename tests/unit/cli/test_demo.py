"""`datum demo`: from image files to a trained model."""

import ast
import importlib.util
import io
import itertools
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

import datum
from datum.cli import demo_steps
from datum.cli.app import app
from datum.cli.demo_steps import (
    Story,
    draw_digits,
    load_tensorflow,
    measure_in_turn,
    read_digits,
    save_images,
    show_rates,
    train,
    write_larger_copy,
    write_pixels,
)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Speed is measured for a moment only; temporary folders can be looked at.

    TensorFlow has files of its own there, which it removes when the process ends.
    """
    monkeypatch.setattr(demo_steps, "COPIES", 1)
    monkeypatch.setattr(demo_steps, "TURNS", 1)
    monkeypatch.setattr(demo_steps, "SECONDS", 0.01)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)


def run(*words: str):
    return CliRunner().invoke(app, ["demo", *words])


def test_the_whole_of_it_with_training(quick):
    before = Path.cwd()
    result = run("--train")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    headings = [line for line in result.stdout.splitlines() if line[:1].isdigit()]
    assert [heading[:2] for heading in headings] == [f"{n}." for n in range(1, 8)]
    for shown in (
        "1,797 handwritten digits",
        '>>> datum.write("images", "digits", splits=splits, stratify="label")',
        "$ datum write images digits --splits train=0.8,val=0.2 --stratify label",
        "1,438 records, 1 shard",
        '>>> ds = datum.load("digits")',
        "10 classes",
        "1,797 of 1,797",
        "Measured: shuffled batches of 256",
        "epoch 12/12",
    ):
        assert shown in result.stdout
    assert "same order in both: 1,438 of 1,438" in result.stdout
    assert result.stdout.count("hand-written tf.data") == 2
    assert "\x1b" not in result.stdout
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())
    assert [path for path in quick.iterdir() if "autograph" not in path.name] == []
    assert Path.cwd() == before


def test_a_model_below_95_per_cent_is_a_failure(quick):
    result = run("--train", "--epochs", "1")
    assert result.exit_code == 1
    assert "less than the 95% expected" in result.stdout
    assert "datum demo --train --epochs 2" in result.stdout
    assert "7. Go on" in result.stdout


@pytest.mark.usefixtures("without_tensorflow")
def test_training_that_was_asked_for_and_could_not_be_is_a_failure(quick):
    result = run("--train")
    assert result.exit_code == 1
    assert result.stdout.count("hint: pip install tensorflow") == 3
    assert "Skipped: training needs the package `tensorflow`" in result.stdout
    assert "7. Go on" in result.stdout
    assert list(quick.iterdir()) == []


@pytest.mark.usefixtures("without_tensorflow")
def test_what_is_kept_can_be_played_with(quick, monkeypatch):
    result = run("--keep", "a playground")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("hint: pip install tensorflow") == 2
    assert "Train a model on it, too:" in result.stdout
    assert "$ cd 'a playground'" in result.stdout
    assert {path.name for path in Path("a playground").iterdir()} == {"digits", "images"}

    monkeypatch.chdir("a playground")
    shown = [
        line.split("#")[0].split()[2:] for line in result.stdout.splitlines() if "$ datum" in line
    ]
    tried = [words for words in shown if words[0] not in ("bench", "demo")]
    assert {words[0] for words in tried} >= {"write", "info", "head", "verify", "export-to"}
    for words in tried:
        extra = ["--overwrite"] if words[0] == "write" else []
        result = CliRunner().invoke(app, [*words, *extra])
        assert result.exit_code == 0, (words, result.output)
        assert result.stdout


@pytest.mark.usefixtures("quick")
def test_a_folder_with_files_is_not_written_to(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("x")
    for name in ("mine", "mine/file"):
        result = run("--keep", name)
        assert result.exit_code == 1
        assert result.stderr == (
            f"error: {name}: expected a new or empty folder\nhint: name another\n"
        )
    assert [path.name for path in Path("mine").iterdir()] == ["file"]


def test_without_scikit_learn_it_says_what_to_install(quick, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    result = run("--keep", "new")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.endswith("hint: pip install scikit-learn\n")
    assert not Path("new").exists()


@pytest.mark.parametrize("epochs", ["0", "-1", "many"])
def test_epochs_are_a_number(epochs):
    result = run("--epochs", epochs)
    assert result.exit_code == 2
    assert "--epochs" in result.stderr


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


PIXELS = np.array([[[0, 255], [128, 0]], [[255, 255], [0, 0]]], np.uint8)


def console(*, colours: bool, encoding: str = "utf-8") -> Console:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    system = "truecolor" if colours else None
    return Console(file=stream, force_terminal=colours, color_system=system, width=80)


def test_the_digits_are_those_of_scikit_learn():
    pixels, labels = read_digits()
    assert pixels.shape == (1797, 8, 8)
    assert (pixels.dtype, pixels.min(), pixels.max()) == (np.uint8, 0, 255)
    assert np.bincount(labels).min() > 170


def test_digits_without_scikit_learn_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(datum.MissingDependencyError, match="hint: pip install scikit-learn"):
        read_digits()


def test_images_lie_in_folders_named_after_their_labels(tmp_path):
    saved = save_images(tmp_path, PIXELS, np.array([7, 3]))
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))
    assert files == ["3/0001.png", "7/0000.png"]
    assert [label for _, label in saved] == [7, 3]
    assert saved[1][0] == (tmp_path / "3/0001.png").read_bytes()
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "7/0000.png")), PIXELS[0])


def test_pictures_are_half_blocks_in_grey_where_there_are_colours():
    text = draw_digits(PIXELS, console(colours=True), width=20)
    assert text.plain == "▀▀  ▀▀  "
    assert str(text.spans[0].style) == "rgb(0,0,0) on rgb(128,128,128)"


def test_pictures_are_shades_without_colour():
    assert draw_digits(PIXELS, console(colours=False), width=20).plain == "  ██  ████\n▒▒"


def test_pictures_are_letters_where_there_is_only_ascii():
    text = draw_digits(PIXELS, console(colours=False, encoding="ascii"), width=20)
    assert text.plain == "  @@  @@@@\n=="


@pytest.mark.parametrize(("width", "count"), [(3, 1), (11, 1), (12, 2), (1000, 2)])
def test_there_are_as_many_pictures_as_fit(width, count):
    text = draw_digits(PIXELS, console(colours=False), width=width)
    assert text.plain.splitlines()[0].count("██") == [None, 1, 3][count]


BATCH = {"label": np.zeros(10)}


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a second at every look."""
    ticks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_a_rate_counts_the_records_after_the_first_batch():
    told = []
    rates = measure_in_turn(
        {"one": lambda: itertools.repeat(BATCH)},
        turns=3,
        seconds=5,
        progress=lambda done, total: told.append((done, total)),
    )
    # Five batches of ten by the fifth look; the last look is one second later.
    assert rates == {"one": pytest.approx(50 / 6)}
    assert told == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.usefixtures("clock")
def test_feeds_are_made_anew_for_every_turn_and_taken_in_turn():
    order = []

    def feed(name):
        order.append(name)
        return itertools.repeat(BATCH)

    feeds = {name: lambda name=name: feed(name) for name in "ab"}
    measure_in_turn(feeds, turns=2, seconds=1, progress=lambda done, total: None)
    assert order == ["a", "b", "a", "b"]


@pytest.mark.usefixtures("clock")
def test_one_turn_that_was_disturbed_does_not_count():
    sizes = iter([10, 1000, 10])

    def feed():
        return itertools.repeat({"label": np.zeros(next(sizes))})

    rates = measure_in_turn({"x": feed}, turns=3, seconds=5, progress=lambda done, total: None)
    assert rates["x"] == pytest.approx(50 / 6)


def test_rates_are_shown_against_the_first():
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(show_rates({"by hand": 1000.0, "ds.to_tf": 12_500.0}, console))
    console.file.close()
    first, second = console.export_text().splitlines()
    assert first.split() == ["by", "hand", "██", "1,000", "records/s", "1.0x"]
    assert second.split() == ["ds.to_tf", "█" * 24, "12,500", "records/s", "12.5x"]


def test_copies_hold_the_same_images_many_times(tmp_path):
    pixels = np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8)
    labels = np.arange(3)
    columns = {"image": pixels[..., None], "label": labels}
    image = datum.Feature("uint8", (8, 8, 1), encoding="image")
    datum.write(columns, tmp_path / "few", schema={"image": image}, progress=False)
    few = datum.load(tmp_path / "few")
    files = [(bytes(few["all"].read([i])["image"][0]), few["all"][i]["label"]) for i in range(3)]

    copies = [
        write_larger_copy(files, few, tmp_path / "png", copies=4),
        write_pixels(pixels, labels, tmp_path / "pixels", copies=4),
    ]
    assert copies[0].schema["image"].encoding == "image"
    assert copies[1].schema["image"].encoding != "image"
    for copy in copies:
        assert len(copy["train"]) == 12
        for record in copy["train"]:
            np.testing.assert_array_equal(record["image"][..., 0], pixels[record["label"]])


@pytest.fixture
def story(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no TensorFlow
    monkeypatch.setattr(demo_steps, "COPIES", 1)
    monkeypatch.setattr(demo_steps, "TURNS", 1)
    monkeypatch.setattr(demo_steps, "SECONDS", 0.01)
    return Story()


def test_a_file_that_differs_is_counted_as_such(story, tmp_path, capsys):
    pixels, labels = read_digits()
    demo_steps.make_images(story, pixels[:200], labels[:200])
    ds = demo_steps.write(story)
    first, second = sorted(tmp_path.glob("images/*/*.png"))[:2]
    first.write_bytes(second.read_bytes())
    demo_steps.compare(story, ds)
    assert "199 of 200 are equal" in capsys.readouterr().out


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")


@pytest.fixture
def terminal(monkeypatch, narrow):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_steps_are_numbered(capsys):
    story = Story()
    story.step("First")
    story.step("Second")
    assert capsys.readouterr().out == "\n1. First\n\n2. Second\n"


@pytest.mark.usefixtures("terminal")
def test_a_heading_fills_the_line_of_a_terminal(capsys):
    Story().step("First")
    plain = Text.from_ansi(capsys.readouterr().out).plain
    assert plain.splitlines()[1] == "1. First " + "─" * 31


@pytest.mark.usefixtures("narrow")
def test_text_is_wrapped_and_indented(capsys):
    Story().say("one two three four five six seven eight nine ten")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["   one two three four five six seven", "   eight nine ten"]


def test_text_is_no_markup(capsys):
    Story().say("[bold]x[/bold]")
    assert capsys.readouterr().out == "   [bold]x[/bold]\n"


def test_code_has_the_prompts_of_python(capsys):
    Story().python("x = [\n    1,\n]\n\ndef f():\n    pass\n\nf()")
    assert [line[3:] for line in capsys.readouterr().out.splitlines()] == [
        ">>> x = [",
        "...     1,",
        "... ]",
        "...",
        ">>> def f():",
        "...     pass",
        "...",
        ">>> f()",
    ]


def test_commands_have_the_prompt_of_a_shell(capsys):
    Story().shell("datum info digits")
    assert capsys.readouterr().out == "   $ datum info digits\n"


def test_what_is_missing_is_told_with_its_hint(capsys):
    Story().note_missing(datum.MissingDependencyError("training needs x", hint="pip install x"))
    assert capsys.readouterr().out == "   Skipped: training needs x.\n   hint: pip install x\n"


def test_tables_are_indented_and_no_line_ends_in_blanks(capsys):
    table = Table.grid(padding=(0, 2))
    table.add_row("a", "b")
    table.add_row("long", "")
    Story().show(table)
    assert capsys.readouterr().out == "   a     b\n   long\n"


@pytest.fixture(scope="module")
def written_digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    save_images(folder / "images", *read_digits())
    out = folder / "digits"
    splits = {"train": 0.8, "val": 0.2}
    datum.write(folder / "images", out, splits=splits, stratify="label", progress=False)
    return datum.load(out)


def test_native_code_is_silenced_and_heard_again(capfd):
    with demo_steps._silenced():
        os.write(2, b"chatter")
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"


CHATTERING = """
import os
from types import SimpleNamespace
def say(word): os.write(2, word.encode())
say("loaded, by " + os.environ["TF_CPP_MIN_LOG_LEVEL"])
config = SimpleNamespace(list_physical_devices=lambda: say("no GPU here"))
get_logger = lambda: SimpleNamespace(setLevel=say)
"""


def test_tensorflow_is_loaded_without_a_word(tmp_path, monkeypatch, capfd):
    """One that chatters on any processor, in the place of the real one."""
    (tmp_path / "tensorflow.py").write_text(CHATTERING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    load_tensorflow(purpose="x")
    sys.modules.pop("tensorflow")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    assert capfd.readouterr() == ("", "ERROR")


def test_the_model_learns_the_digits_the_same_way_each_time(written_digits, capsys):
    accuracies = [train(Story(), written_digits, 4) for _ in range(2)]
    assert accuracies[0] == accuracies[1] > 0.9
    out = capsys.readouterr().out
    assert "epoch 4/4" in out
    assert "ds.to_tf(" in out
