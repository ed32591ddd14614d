"""Permissions count while a hostile test runs, also as root; not while its files are removed."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.permissions import permissions_enforced


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Run the test as if by an ordinary user."""
    with permissions_enforced():
        return (yield)
