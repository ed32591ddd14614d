"""Training images for TensorBoard, with their labels, boxes and masks."""

from datum.tensorboard.write import write_images

__all__ = ["write_images"]
