"""Folders of JPEG files by class, made once: gradients under noise, about 100 KB each."""

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.cached import cached

HEIGHT, WIDTH = 375, 500  # the usual size of a photo of ImageNet
CLASSES = 10
QUALITY = 90
NOISE = (14.0, 30.0)  # makes files of 70 to 117 KB


def photo_folder(count: int, cache: Path) -> Path:
    """A folder with `count` photos in folders of classes, made now unless `cache` has it."""
    return cached(f"photos-{count}", cache, partial(_save_all, count), sys.modules[__name__])


def photos_by_class(folder: Path) -> Mapping[str, Sequence[Path]]:
    """The files of each class, in order."""
    return {each.name: sorted(each.iterdir()) for each in sorted(folder.iterdir())}


def _save_all(count: int, folder: Path) -> None:
    # spawned, since TensorFlow does not survive a fork
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        list(pool.map(partial(_save, folder), range(count), chunksize=16))


def _save(folder: Path, number: int) -> None:
    from PIL import Image

    path = folder / f"class{number % CLASSES}" / f"{number:05}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(number)
    y, x = np.mgrid[0 : 1 : HEIGHT * 1j, 0 : 1 : WIDTH * 1j]
    slopes = rng.uniform(-255, 255, (3, 2))
    planes = [127.5 + a * (y - 0.5) + b * (x - 0.5) for a, b in slopes]
    noise = rng.normal(0, rng.uniform(*NOISE), (HEIGHT, WIDTH, 3))
    pixels = np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=QUALITY)
