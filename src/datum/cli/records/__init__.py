"""Records as `datum head` shows them."""

__all__: list[str] = []
