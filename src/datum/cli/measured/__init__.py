"""What `datum bench` shows: a chart, or a page."""

__all__: list[str] = []
