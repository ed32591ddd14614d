"""`datum.write` of a folder of photos: beside other writers, beside `cp -r`, and by workers."""

import filecmp
import io
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks import photos
from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.suite import Goal, Setting, Suite, faster
from benchmarks.targets import Targets, shard_paths
from benchmarks.workloads import Field, Lists

DATUM = "datum.write"
BY_HAND = "tf.train.Example by hand, bytes kept"
ENCODED = "tf.train.Example by hand, decoded and encoded"
TFDS = "TFDS, GeneratorBasedBuilder"
COPY = "cp -r"
SYNCED_COPY = "cp -r, then sync -f"
ONE_WORKER = "datum.write, max_side=256, workers=1"
TWO_WORKERS = "datum.write, max_side=256, workers=2"
MAX_SIDE = 256

Write = Callable[[Path, Path], int]  # from a folder of photos into one that is empty


def write_folder(setting: Setting) -> Suite:
    """Whole files into records; they stay as they are, except where a tutorial does otherwise."""
    count = 300 if setting.quick else 2000
    writers: dict[str, Callable[[], Write]] = {
        BY_HAND: _by_hand,
        ENCODED: partial(_by_hand, encode_again=True),
        TFDS: _tfds,
        DATUM: _datum,
    }
    return _suite(
        "write_folder",
        f"datum.write: a folder of {count:,} photos",
        writers,
        setting,
        counts={name: count // 5 if name == ENCODED else count for name in writers},
        references=(BY_HAND, TFDS),
        goals=(
            faster(DATUM, BY_HAND, times=5),
            faster(DATUM, ENCODED, times=5),
            faster(DATUM, TFDS, times=5),
        ),
        check=_check_records,
    )


def write_copy(setting: Setting) -> Suite:
    """The same beside a plain copy. Datum has it all on the disk when it ends; `cp` has not."""
    count = 300 if setting.quick else 2000
    writers: dict[str, Callable[[], Write]] = {
        COPY: lambda: partial(_copy, count),
        DATUM: _datum,
        SYNCED_COPY: lambda: partial(_copy, count, is_synced=True),
    }
    return _suite(
        "write_copy",
        f"datum.write: a folder of {count:,} photos, beside a copy of it",
        writers,
        setting,
        counts=dict.fromkeys(writers, count),
        references=(COPY, SYNCED_COPY),
        goals=(faster(DATUM, COPY, times=0.8), faster(DATUM, SYNCED_COPY, times=0.8)),
        check=_check_copy,
    )


def write_shrunk(setting: Setting) -> Suite:
    """Every photo decoded, shrunk and encoded: work for the processor alone."""
    count = 100 if setting.quick else 400
    writers: dict[str, Callable[[], Write]] = {
        ONE_WORKER: partial(_datum, max_side=MAX_SIDE, workers=1),
        TWO_WORKERS: partial(_datum, max_side=MAX_SIDE, workers=2),
    }
    return _suite(
        "write_shrunk",
        f"datum.write: {count:,} photos shrunk to {MAX_SIDE} pixels",
        writers,
        setting,
        counts=dict.fromkeys(writers, count),
        references=(ONE_WORKER,),
        goals=(faster(TWO_WORKERS, ONE_WORKER, times=1.7),),
        check=_check_shrunk,
    )


def _suite(
    name: str,
    title: str,
    writers: Mapping[str, Callable[[], Write]],
    setting: Setting,
    *,
    counts: Mapping[str, int],
    references: tuple[str, ...],
    goals: tuple[Goal, ...],
    check: Callable[[str, Path, Path], None],
) -> Suite:
    targets = Targets(setting.cache)
    folders = {count: photos.photo_folder(count, setting.cache) for count in {*counts.values()}}

    def prepare(writer: str) -> Callable[[], int]:
        write, folder = writers[writer](), folders[counts[writer]]
        return lambda: write(folder, targets.new())

    def contender(writer: str) -> Contender:
        taken = counts[writer]
        files = photos.photos_by_class(folders[taken]).values()
        data_bytes = sum(path.stat().st_size for each in files for path in each)
        note = f"{taken:,} photos" if taken < max(counts.values()) else ""
        return Contender(writer, partial(prepare, writer), taken, data_bytes, note)

    def check_all() -> None:
        for writer, make in writers.items():
            target = targets.new()
            make()(folders[counts[writer]], target)
            check(writer, folders[counts[writer]], target)
        targets.clear()

    return Suite(
        name=name,
        title=title,
        contenders=tuple(map(contender, writers)),
        references=references,
        goals=goals,
        check=check_all,
        has_memory=False,  # of one process only, and some of these start others
        is_in_bytes=True,
    )


def _by_hand(*, encode_again: bool = False) -> Write:
    from benchmarks import peers_tf_images

    write = peers_tf_images.write_encoded if encode_again else peers_tf_images.write_files
    return lambda folder, target: write(target / "data.tfrecord", photos.photos_by_class(folder))


def _tfds() -> Write:
    from benchmarks import peers_tfds

    return lambda folder, target: peers_tfds.write_images(target, photos.photos_by_class(folder))


def _datum(*, max_side: int | None = None, workers: int | None = None) -> Write:
    import datum

    def run(folder: Path, target: Path) -> int:
        options = {"max_side": max_side, "workers": workers}
        return datum.write(folder, target, progress=False, **options).records

    return run


def _copy(count: int, folder: Path, target: Path, *, is_synced: bool = False) -> int:
    subprocess.run(["cp", "-r", str(folder), str(target)], check=True)
    if is_synced:
        subprocess.run(["sync", "-f", str(target)], check=True)
    return count  # the check compares them


def _check_records(name: str, folder: Path, target: Path) -> None:
    """Raises unless the records hold every file with its class, as TensorFlow reads them."""
    wanted = Counter(
        (path.read_bytes() if name != ENCODED else b"", label)
        for label, paths in enumerate(photos.photos_by_class(folder).values())
        for path in paths
    )
    # images that were encoded again can only be counted
    got = Counter((image if name != ENCODED else b"", label) for image, label in _read(target))
    if got != wanted:
        raise OutputDiffersError(f"{name}: the images and labels are not those of the files")


def _check_copy(name: str, folder: Path, target: Path) -> None:
    if name == DATUM:
        _check_records(name, folder, target)
        return
    paths = [path.relative_to(folder) for path in folder.rglob("*.jpg")]
    _, differing, missing = filecmp.cmpfiles(folder, target / folder.name, paths, shallow=False)
    if differing or missing:
        raise OutputDiffersError(f"{name}: {len(differing) + len(missing)} files differ")


def _check_shrunk(name: str, folder: Path, target: Path) -> None:
    """Raises unless images are as small as asked for, and the same whoever made them."""
    from PIL import Image

    sizes = Counter(Image.open(io.BytesIO(image)).size for image, _ in _read(target))
    if set(sizes) != {(MAX_SIDE, MAX_SIDE * photos.HEIGHT // photos.WIDTH)}:
        raise OutputDiffersError(f"{name}: got images of {sizes}")
    again = target / "again"
    _datum(max_side=MAX_SIDE, workers=1)(folder, again)
    names = [path.name for path in shard_paths(again)]
    if not names or filecmp.cmpfiles(target, again, names, shallow=False)[0] != names:
        raise OutputDiffersError(f"{name}: the files are not those of one worker")


def _read(target: Path) -> Iterator[tuple[bytes, int]]:
    from benchmarks import written

    fields = (Field("image", "bytes"), Field("label", "int"))
    for batch in written.read(shard_paths(target), fields):
        images, labels = batch["image"], batch["label"]
        assert not isinstance(images, Lists)
        assert not isinstance(labels, Lists)
        yield from zip(images.tolist(), labels.tolist(), strict=True)
