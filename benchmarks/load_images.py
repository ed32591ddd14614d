"""Loading photos into `tf.data`: decoded whole beside decoding alone, and cropped for training."""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, photos
from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.suite import Goal, Setting, Suite, faster

IN_MEMORY = "tf: decode alone, bytes in memory"
FILES = "tf: the files, decoded"
RECORDS = "tf: records, parse, decode"
DATUM = "datum: to_tf, batch_size=None"
DATUM_SHUFFLED = "datum: to_tf, batch_size=None, shuffled"
CROPPED_FILES = "tf: the files, decoded, cropped"
CROPPED_RECORDS = "tf: records, shuffled, decoded, cropped"
CROPS_ONLY = "tf: the same, only the crop decoded"
DATUM_CROPS = "datum: to_tf, shuffled, random_crop"
SIDE = 224
BATCH_PHOTOS = 64

Make = Callable[[Path, Path], Any]  # of a folder of photos, and of the dataset made of them


@dataclass(frozen=True)
class Work:
    """What is loaded by whom, how it is gone through, and what is checked of it."""

    name: str
    title: str
    loaders: Mapping[str, Make]
    count: Callable[[Any], int]
    check: Callable[[str, Any, Path], None]


def load_images(setting: Setting) -> Suite:
    """One photo at a time, decoded on all cores."""
    loaders: dict[str, Make] = {
        IN_MEMORY: lambda folder, _: _peers().in_memory(photos.photos_by_class(folder)),
        FILES: lambda folder, _: _peers().from_files(photos.photos_by_class(folder)),
        RECORDS: lambda _, dataset: _peers().from_records(datasets.shards_of(dataset)),
        DATUM: lambda _, dataset: _datum(dataset, batch_size=None),
        DATUM_SHUFFLED: lambda _, dataset: _datum(dataset, batch_size=None, shuffle=True),
    }
    goals = (
        faster(DATUM, IN_MEMORY, times=0.95),
        faster(DATUM_SHUFFLED, IN_MEMORY, times=0.95),
    )
    work = Work("load_images", "decoded one by one", loaders, _count_in_graph, _check_pixels)
    return _suite(work, setting, references=(IN_MEMORY, FILES), goals=goals)


def load_crops(setting: Setting) -> Suite:
    """Batches for training: random windows, resized, in random order."""
    loaders: dict[str, Make] = {
        CROPPED_FILES: _cropped_files,
        CROPPED_RECORDS: partial(_cropped_records, way="decode_and_crop"),
        CROPS_ONLY: partial(_cropped_records, way="decode_crop_only"),
        DATUM_CROPS: _datum_crops,
    }
    goals = (
        faster(DATUM_CROPS, CROPPED_RECORDS, times=1.5),
        faster(DATUM_CROPS, CROPPED_FILES, times=1.5),
    )
    crops = f"random crops of {SIDE} x {SIDE} in batches of {BATCH_PHOTOS}"
    work = Work("load_crops", crops, loaders, _count_batches, _check_crops)
    return _suite(work, setting, references=(CROPPED_FILES, CROPPED_RECORDS), goals=goals)


def _suite(
    work: Work, setting: Setting, *, references: tuple[str, ...], goals: tuple[Goal, ...]
) -> Suite:
    count = 300 if setting.quick else 2000
    folder = photos.photo_folder(count, setting.cache)
    dataset = datasets.photo_dataset(count, setting.cache)
    files = [path for paths in photos.photos_by_class(folder).values() for path in paths]

    def prepare(name: str) -> Callable[[], int]:
        return partial(work.count, work.loaders[name](folder, dataset))

    def check() -> None:
        for name, make in work.loaders.items():
            work.check(name, make(folder, dataset), folder)

    return Suite(
        name=work.name,
        title=f"load {count:,} photos into tf.data: {work.title}",
        contenders=tuple(
            Contender(name, partial(prepare, name), count, datasets.bytes_of(files))
            for name in work.loaders
        ),
        references=references,
        goals=goals,
        check=check,
    )


def _count_in_graph(loaded: Any) -> int:
    """Goes through single photos without Python, which would take a tenth of the time."""
    return int(loaded.reduce(np.int64(0), lambda count, _: count + 1))


def _count_batches(loaded: Any) -> int:
    return sum(int(batch["label"].shape[0]) for batch in loaded)


def _peers() -> Any:
    from benchmarks import peers_tf_photos  # loads TensorFlow

    return peers_tf_photos


def _datum(dataset: Path, **options: Any) -> Any:
    import datum

    return datum.load(dataset).to_tf("train", columns=("image", "label"), **options)


def _datum_crops(_: Path, dataset: Path) -> Any:
    from datum import transforms

    decode = {"image": transforms.random_crop(SIDE, SIDE)}
    return _datum(dataset, batch_size=BATCH_PHOTOS, shuffle=True, decode=decode)


def _cropped_files(folder: Path, _: Path) -> Any:
    peers = _peers()
    classes = photos.photos_by_class(folder)
    return peers.train_from_files(classes, BATCH_PHOTOS, peers.decode_and_crop(SIDE))


def _cropped_records(_: Path, dataset: Path, *, way: str) -> Any:
    peers = _peers()
    crop = getattr(peers, way)(SIDE)
    return peers.train_from_records(datasets.shards_of(dataset), BATCH_PHOTOS, crop)


def _check_pixels(name: str, loaded: Any, folder: Path) -> None:
    """Raises unless every photo comes once, with its label and the pixels TensorFlow decodes."""
    decode = _peers().decode
    wanted = Counter(
        (label, _sum_of(decode(path.read_bytes())))
        for label, paths in enumerate(photos.photos_by_class(folder).values())
        for path in paths
    )
    got = Counter((int(each["label"]), _sum_of(each["image"])) for each in loaded)
    if got != wanted:
        raise OutputDiffersError(f"{name}: the pixels and labels are not those of the files")


def _sum_of(image: Any) -> int:
    return zlib.crc32(image.numpy())


def _check_crops(name: str, loaded: Any, folder: Path) -> None:
    """Raises unless there is a crop of every photo, by its label; which crop is left to chance."""
    wanted = Counter(
        {label: len(paths) for label, paths in enumerate(photos.photos_by_class(folder).values())}
    )
    got: Counter[int] = Counter()
    for batch in loaded:
        images = batch["image"]
        if images.shape[1:] != (SIDE, SIDE, 3) or images.dtype != "uint8":
            raise OutputDiffersError(f"{name}: got images of {images.dtype} {images.shape}")
        got.update(batch["label"].numpy().tolist())
    if got != wanted:
        raise OutputDiffersError(f"{name}: expected labels {wanted}, got {got}")
