"""Records that others wrote, as datasets."""
