"""Datasets as each framework takes them."""

__all__: list[str] = []
