"""Expressions over features, as `datum reshard --where` takes them."""

__all__: list[str] = []
