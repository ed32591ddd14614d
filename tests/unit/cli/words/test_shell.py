"""Errors of the library in the words of a shell."""

import pytest

from datum import SourceError, WriteError
from datum.cli.shell import say_for_shell, told_for_shell


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("append=True adds to it", "--append adds to it"),
        ("on_error='quarantine' goes on", "--on-error quarantine goes on"),
        ("leave out `splits`", "leave out --splits"),
        ("expected `shard_bytes` of 1", "expected --shard-size of 1"),
        ("expected `columns` or `drop`", "expected --columns or --drop"),
        ("expected `workers` of 1", "expected --workers of 1"),
        ("splits={'train': 0.8, 'val': 0.2}", "--splits train=0.8,val=0.2"),
        ("problem='image_clf' or so", "--problem image_clf or so"),
        ("x=True `other` y='z'", "x=True `other` y='z'"),
    ],
)
def test_options_are_spelt_as_a_shell_has_them(python, shell):
    assert say_for_shell(python) == shell


def test_errors_keep_their_class():
    with pytest.raises(SourceError, match="--append"), told_for_shell(None, None):
        raise SourceError("append=True")
    with (
        pytest.raises(WriteError, match=r"^nothing\nhint: --overwrite$"),
        told_for_shell(None, None),
    ):
        raise WriteError("nothing", hint="overwrite=True")


def lead(folder, problem="expected", *, hint="name the source, one of datum.sources"):
    with pytest.raises(SourceError) as caught, told_for_shell(str(folder), "my out"):
        raise SourceError(problem, hint=hint)
    return str(caught.value)


def test_a_folder_that_is_not_understood_leads_on(tmp_path):
    assert "your-program | datum write - OUT" in lead(tmp_path)
    (tmp_path / "b.json").write_text("{}")
    assert lead(tmp_path).endswith(f"datum write {tmp_path / 'b.json'} 'my out'")
    (tmp_path / "datum.json").write_text("{}")
    assert lead(tmp_path).endswith(f"datum reshard {tmp_path} 'my out'")
    assert lead(tmp_path).count("hint:") == 1


def test_a_hint_of_its_own_stays(tmp_path):
    assert lead(tmp_path, "x", hint="problem='image_seg'") == "x\nhint: --problem image_seg"
    assert "JSON lines" in lead(tmp_path / "no")


def test_what_is_wrong_with_an_option_leads_nowhere_else(tmp_path):
    (tmp_path / "b.json").write_text("{}")
    assert (
        lead(tmp_path, "expected `quality` of 1, got 0", hint="")
        == "expected --quality of 1, got 0"
    )


def test_a_hint_at_a_class_of_python_is_replaced(tmp_path):
    (tmp_path / "b.json").write_text("{}")
    assert "hint: name one of its files" in lead(tmp_path, "x", hint="CsvTable(path)")
