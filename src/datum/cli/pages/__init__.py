"""What `datum info` and `datum stats` show of a dataset."""

__all__: list[str] = []
