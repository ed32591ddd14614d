"""From a source to a dataset on disk: schema, order, shards, manifest, published at once."""
