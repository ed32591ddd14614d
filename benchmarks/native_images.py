"""Decoded photos without TensorFlow: `to_numpy` and `to_torch` beside peers and decoding alone."""

import os
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, peer_datasets, photos
from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.suite import Setting, Suite, faster

ALONE = "simplejpeg: decode alone, bytes in memory"
WEBDATASET = "WebDataset: tar files, 2 workers"
LITDATA = "LitData: StreamingDataLoader, 2 workers"
NUMPY = "datum: to_numpy, shuffled"
TORCH = "datum: to_torch, shuffled"
TORCH_WORKERS = "datum: to_torch in a DataLoader, 2 workers"
OURS = (NUMPY, TORCH)
BATCH_PHOTOS = 64
PACKAGES = {ALONE: "simplejpeg", WEBDATASET: "webdataset", LITDATA: "litdata", TORCH: "torch"}


def native_images(setting: Setting) -> Suite:
    """Batches of photos of one size, shuffled."""
    count = 300 if setting.quick else 2000
    folder = photos.photo_folder(count, setting.cache)
    files = [path for paths in photos.photos_by_class(folder).values() for path in paths]
    loaders: dict[str, Callable[[], Any]] = {
        WEBDATASET: partial(_webdataset, peer_datasets.webdataset_photos(count, setting.cache)),
        LITDATA: partial(_litdata, peer_datasets.litdata_photos(count, setting.cache)),
    }
    dataset = datasets.photo_dataset(count, setting.cache)
    loaders[NUMPY] = partial(_numpy, dataset)
    loaders[TORCH] = partial(_torch, dataset, has_workers=False)
    loaders[TORCH_WORKERS] = partial(_torch, dataset, has_workers=True)
    ways = {
        ALONE: partial(_alone, files),
        **{name: partial(_passes, load) for name, load in loaders.items()},
    }
    return Suite(
        name="native_images",
        title=f"load {count:,} photos decoded, batches of {BATCH_PHOTOS}, {os.cpu_count()} cores",
        contenders=tuple(
            Contender(name, prepare, count, datasets.bytes_of(files), note=_version(name))
            for name, prepare in ways.items()
        ),
        references=(ALONE, WEBDATASET, LITDATA),
        goals=(
            *(faster(name, ALONE, times=0.95) for name in OURS),
            *(faster(name, peer, times=1) for peer in (WEBDATASET, LITDATA) for name in OURS),
        ),
        check=partial(_check, loaders, folder),
        has_memory=False,  # workers have theirs apart
    )


def _version(name: str) -> str:
    package = PACKAGES.get(name)
    return f"{package} {metadata.version(package)}" if package else ""


def _alone(files: list[Path]) -> Callable[[], int]:
    from benchmarks import peers_simplejpeg

    return partial(peers_simplejpeg.decode_all, [path.read_bytes() for path in files])


def _passes(load: Callable[[], Any]) -> Callable[[], int]:
    loader = load()

    def run() -> int:
        return sum(len(batch["image"]) for batch in loader)

    run()  # starts the workers
    return run


def _webdataset(folder: Path) -> Any:
    from benchmarks import peers_webdataset

    return peers_webdataset.photos(folder, BATCH_PHOTOS)


def _litdata(folder: Path) -> Any:
    from benchmarks import peers_litdata

    return peers_litdata.photos(folder, BATCH_PHOTOS)


def _numpy(dataset: Path) -> Any:
    import datum

    columns = ("image", "label")
    loaded = datum.load(dataset)
    return loaded.to_numpy("train", batch_size=BATCH_PHOTOS, shuffle=True, columns=columns)


def _torch(dataset: Path, *, has_workers: bool) -> Any:
    from benchmarks import datum_native

    columns = ("image", "label")
    return datum_native.torch_loader(
        dataset, BATCH_PHOTOS, has_workers=has_workers, columns=columns
    )


def _check(loaders: Mapping[str, Callable[[], Any]], folder: Path) -> None:
    """Raises unless every photo comes once from each, with its label and the same pixels."""
    from simplejpeg import decode_jpeg

    wanted = Counter(
        (label, zlib.crc32(decode_jpeg(path.read_bytes())))
        for label, paths in enumerate(photos.photos_by_class(folder).values())
        for path in paths
    )
    for name, load in loaders.items():
        got: Counter[tuple[int, int]] = Counter()
        for batch in load():
            images = np.asarray(batch["image"])
            if images.dtype != np.uint8 or images.shape[1:] != (photos.HEIGHT, photos.WIDTH, 3):
                raise OutputDiffersError(f"{name}: got images of {images.dtype} {images.shape}")
            labels = np.asarray(batch["label"]).tolist()
            got.update(zip(labels, map(zlib.crc32, images), strict=True))
        if got != wanted:
            raise OutputDiffersError(f"{name}: the pixels and labels are not those of the files")
