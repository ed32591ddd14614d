"""Permissions count in every hostile test, also where they run as root, as in CI."""

import pytest


@pytest.fixture(autouse=True)
def _ordinary(permissions_count: None) -> None:
    """See `permissions_count`."""
