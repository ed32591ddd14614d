"""Whether shards are sound: their bytes, their records, their images, and what is told of them."""

__all__: list[str] = []
