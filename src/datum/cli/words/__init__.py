"""Words and figures that commands take and show."""

__all__: list[str] = []
