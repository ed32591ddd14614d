"""Datasets as batches of PyTorch tensors."""

from datum._frameworks.torch.loader import TorchLoader, make_loader

__all__ = ["TorchLoader", "make_loader"]
