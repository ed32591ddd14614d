"""Pictures in a terminal."""

__all__: list[str] = []
