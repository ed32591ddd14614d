"""Batches for training: which records each has, made ahead by threads, resumed anywhere."""

from datum.loading.loader import Loader
from datum.loading.options import LoadKeywords, LoadOptions

__all__ = ["LoadKeywords", "LoadOptions", "Loader"]
