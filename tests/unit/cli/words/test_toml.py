"""Files of TOML."""

import pytest

from datum.cli.arguments import read_toml


def test_a_file_is_a_dict(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('name = "ü"\n[splits]\ntrain = 0.9\n', encoding="utf-8")
    assert read_toml(path) == {"name": "ü", "splits": {"train": 0.9}}


@pytest.mark.parametrize("content", [b"a = ", b"\xff\xfe"])
def test_what_is_no_toml_is_told_with_the_file(tmp_path, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.toml: expected TOML, got: "):
        read_toml(path)


def test_no_file_is_told_as_such(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_toml(tmp_path / "no.toml")
