"""What `datum write` is asked for, and what it shows."""

__all__: list[str] = []
