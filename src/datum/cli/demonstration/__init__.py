"""The steps of `datum demo`."""

__all__: list[str] = []
