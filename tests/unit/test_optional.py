import json
import re

import pytest

from datum import DatumError, MissingDependencyError
from datum._optional import require


def test_a_package_that_is_there_is_imported():
    assert require("json", purpose="this test") is json


def test_a_missing_package_is_named_with_its_purpose_and_the_way_to_get_it():
    message = "reading maps needs the package `no_such_package`\nhint: pip install no_such_package"
    with pytest.raises(MissingDependencyError, match=f"^{re.escape(message)}$") as caught:
        require("no_such_package", purpose="reading maps")
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, DatumError)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_of_a_missing_submodule_the_package_is_named():
    with pytest.raises(MissingDependencyError, match="pip install no_such_package$"):
        require("no_such_package.inner.part", purpose="this test")
