"""Batches for training: which records each has, made ahead by threads, resumed anywhere."""
