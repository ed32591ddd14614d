"""From data to training without a framework; tests/docs/test_scripts.py trains with one each."""

import json
from pathlib import Path

import pytest

from tests import bare


@pytest.fixture(scope="module")
def trained_alone(tmp_path_factory):
    environment = bare.fill(tmp_path_factory.mktemp("environment"))
    folder = tmp_path_factory.mktemp("alone")
    program = Path(__file__).with_name("numpy_alone.py")
    ran = bare.run(environment, program, folder / "rows", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_whole_path_needs_no_framework(trained_alone):
    assert trained_alone["there"] == []
    assert trained_alone["accuracy"] > 0.95
    assert trained_alone["name"].startswith("n")
    assert all(isinstance(word, str) for words in trained_alone["words"] for word in words)


@pytest.mark.parametrize(
    ("method", "package"), [("to_tf", "tensorflow"), ("to_torch", "torch"), ("to_jax", "jax")]
)
def test_what_needs_a_framework_says_which_one(trained_alone, method, package):
    expected = f"needs the package `{package}`\nhint: pip install {package}"
    assert expected in trained_alone["told"][method]
