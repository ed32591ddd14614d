"""Images of several kinds in one feature: the same pixels in every reader, whatever they are."""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum
from datum import Feature, specs
from datum.images import ImageError, read_file_header
from datum.sources import ClassFolders
from tests.contract.image_kinds import HEIGHT, WIDTH, Kind, all_kinds

tf = pytest.importorskip("tensorflow")

KINDS = all_kinds()
ENDINGS = {"JPEG": "jpg", "PNG": "png", "WebP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif"}
NARROW = [name for name, kind in KINDS.items() if not kind.is_deep]
OPAQUE = [name for name in NARROW if KINDS[name].channels < 4]
SINGLE = [name for name, kind in KINDS.items() if kind.channels == 1]
# What a feature of one channel holds: grey, ids, and colours made grey; 16-bit colours are refused.
GREY_OR_8_BITS = [name for name, kind in KINDS.items() if not (kind.is_deep and kind.channels > 1)]

# Which kinds are in the feature, and what it then is.
GROUPS = {
    "everything": (list(KINDS), 4, "uint16"),
    "8 bits": (NARROW, 4, "uint8"),
    "8 bits, opaque": (OPAQUE, 3, "uint8"),
    "opaque": ([name for name in KINDS if KINDS[name].channels < 4], 3, "uint16"),
    "grey": (SINGLE, 1, "uint16"),
    "grey of 8 bits": ([name for name in SINGLE if name in NARROW], 1, "uint8"),
    "JPEG": ([name for name in KINDS if name.endswith("JPEG")], 3, "uint8"),
    "RGBA next to JPEG": (["RGBA PNG", "RGB JPEG"], 4, "uint8"),
    "16 bits next to JPEG": (["16-bit RGB PNG", "RGB JPEG", "CMYK JPEG"], 3, "uint16"),
    "WebP": (["RGB WebP", "RGBA WebP"], 4, "uint8"),
    "TIFF": (["TIFF", "grey TIFF"], 3, "uint8"),
}


def feature_of(channels: int | None, dtype: str = "uint8") -> Feature:
    return Feature(dtype, (None, None, channels), encoding="image")


def write(folder: Path, rows: Any, channels: int | None = None) -> datum.Dataset:
    schema = {"image": feature_of(channels)}
    datum.write(rows, folder, schema=schema, shuffle=False, progress=False)
    return datum.load(folder)


def to_tf(ds: datum.Dataset, engine: str, **options: Any) -> Any:
    return ds.to_tf("train", batch_size=64, engine=engine, **options)


def read_everywhere(ds: datum.Dataset, folder: Path) -> dict[str, np.ndarray]:
    """The images of a dataset, by every way there is to read them."""
    count = len(ds["train"])
    code = specs.tensorflow(
        ds.schema, files=str(folder / "train-*.tfrecord"), metadata=ds.metadata, batch_size=None
    )
    script = folder.with_suffix(".py")
    script.write_text(code)
    found = {
        "NumPy": next(iter(ds.to_numpy("train", batch_size=64)))["image"],
        "PyTorch": next(iter(ds.to_torch("train", batch_size=64)))["image"].numpy(),
        "JAX": np.asarray(next(iter(ds.to_jax("train", batch_size=64)))["image"]),
        "one by one": np.stack([ds["train"][i]["image"] for i in range(count)]),
        "printed code": np.stack(
            [record["image"].numpy() for record in runpy.run_path(str(script))["dataset"]]
        ),
    }
    for engine in ("native", "graph"):
        found[f"tf.data, {engine}"] = next(iter(to_tf(ds, engine)))["image"].numpy()
    return found


def check(found: np.ndarray, kind: Kind, where: str) -> None:
    expected = kind.expected(found.shape[-1], found.dtype.name)
    if not kind.is_lossy:
        np.testing.assert_array_equal(found, expected, err_msg=where)
        return
    step = 257 if found.dtype == np.uint16 and found.shape[-1] > 1 else 1
    differing = np.abs(found.astype(int) - expected.astype(int)) / step
    assert differing.mean() <= 2, where
    assert differing.max() <= 8, where  # TensorFlow's decoder is faster, and less exact


@pytest.mark.parametrize("group", GROUPS)
def test_readers_agree_on_files_of_any_kinds(group, tmp_path):
    names, channels, dtype = GROUPS[group]
    folder = tmp_path / "photos"
    for at, name in enumerate(names):
        path = folder / "kind" / f"{at:02}.{ENDINGS[name.split()[-1]]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(KINDS[name].data)
    out = tmp_path / "out"
    datum.write(ClassFolders(folder), out, shuffle=False, progress=False)
    ds = datum.load(out)
    assert ds.schema["image"] == Feature(dtype, (HEIGHT, WIDTH, channels), encoding="image")
    for reader, images in read_everywhere(ds, out).items():
        assert images.shape == (len(names), HEIGHT, WIDTH, channels), reader
        assert images.dtype == dtype, reader
        for image, name in zip(images, names, strict=True):
            check(image, KINDS[name], f"{reader}: {name}")


def test_readers_agree_on_ids(tmp_path):
    rows = [{"image": KINDS[name].data} for name in GREY_OR_8_BITS]
    out = tmp_path / "out"
    ds = write(out, rows, channels=1)
    assert ds.schema["image"].shape[-1] == 1
    for reader, images in read_everywhere(ds, out).items():
        for image, name in zip(images, GREY_OR_8_BITS, strict=True):
            kind = KINDS[name]
            if not (kind.is_lossy and kind.channels > 1):  # whose grey is not made of its colours
                check(image, kind, f"{reader}: {name}")


def test_readers_agree_on_arrays(tmp_path):
    arrays = [kind.pixels for kind in KINDS.values()]
    out = tmp_path / "out"
    ds = write(out, [{"image": array} for array in arrays])
    for reader, images in read_everywhere(ds, out).items():
        for image, (name, kind) in zip(images, KINDS.items(), strict=True):
            expected = kind.expected(4, "uint16")
            np.testing.assert_array_equal(image, expected, err_msg=f"{reader}: {name}")


def pairs_and_triples() -> list[Sequence[str]]:
    triples = list(itertools.combinations(KINDS, 3))
    return [*itertools.combinations(KINDS, 2), *triples[:: len(triples) // 100]]


def test_a_feature_holds_all_that_its_images_have(tmp_path):
    groups = pairs_and_triples()
    rows: list[dict[str, Any]] = [{} for _ in range(3)]
    for at, names in enumerate(groups):
        for row, name in zip(rows, [*names, names[0]], strict=False):
            row[f"{at}"] = KINDS[name].data
    schema = {f"{at}": feature_of(None) for at in range(len(groups))}
    datum.write(rows, tmp_path / "out", schema=schema, shuffle=False, progress=False)
    ds = datum.load(tmp_path / "out")
    batch = next(iter(ds.to_numpy("train", batch_size=3)))
    for at, names in enumerate(groups):
        kinds = [KINDS[name] for name in names]
        feature, images = ds.schema[f"{at}"], batch[f"{at}"]
        assert feature.shape[-1] == max(kind.channels for kind in kinds), names
        assert feature.dtype == ("uint16" if any(kind.is_deep for kind in kinds) else "uint8")
        for image, kind, name in zip(images, kinds, names, strict=False):
            check(image, kind, f"{names}: {name}")


def test_colours_of_16_bits_are_refused_where_ids_are_meant(tmp_path):
    for name in ("16-bit RGB PNG", "16-bit RGBA PNG", "16-bit RGB TIFF"):
        with pytest.raises(datum.DatumError) as caught:
            write(tmp_path / "out", [{"image": KINDS[name].data}], channels=1)
        message = str(caught.value)
        assert "record 0" in message
        assert "expected grey or a palette for one channel, got 16-bit colour" in message
        assert "hint: use a feature of 3 channels" in message


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    """Images of all kinds in records that others wrote, as plain bytes."""
    folder = tmp_path_factory.mktemp("foreign")
    with tf.io.TFRecordWriter(str(folder / "train.tfrecord")) as writer:
        for kind in KINDS.values():
            value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[kind.data]))
            features = tf.train.Features(feature={"image": value})
            writer.write(tf.train.Example(features=features).SerializeToString())
    return folder


@pytest.mark.parametrize("schema", [None, {"image": feature_of(4, "uint16")}])
def test_readers_agree_on_what_others_wrote(schema, foreign):
    ds = datum.load(foreign, schema=schema)
    decode: dict[str, Any] = {} if schema else {"decode": {"image": True}}
    found = {
        "NumPy": next(iter(ds.to_numpy("train", batch_size=64, **decode)))["image"],
        "PyTorch": next(iter(ds.to_torch("train", batch_size=64, **decode)))["image"].numpy(),
    }
    for engine in ("auto", "native"):
        records = ds.to_tf("train", batch_size=None, engine=engine, **decode)
        found[engine] = np.stack([record["image"].numpy() for record in records])
    for reader, images in found.items():
        assert images.dtype == ("uint16" if schema else "uint8")
        assert images.shape[-1] == (4 if schema else 3)
        for image, (name, kind) in zip(images, KINDS.items(), strict=True):
            check(image, kind, f"{reader}: {name}")


def test_a_copy_of_tiff_files_is_refused_by_the_graph_before_the_first_batch(foreign, tmp_path):
    ds = datum.load(foreign, schema={"image": feature_of(4, "uint16")})
    datum.write(ds, tmp_path / "out", progress=False, shuffle=False)
    copied = datum.load(tmp_path / "out")
    assert "tiff" in copied.metadata["image"]["formats"]
    with pytest.raises(datum.SchemaError, match="feature 'image': expected .* got TIFF\nhint"):
        to_tf(copied, "graph")
    images = next(iter(to_tf(copied, "native")))["image"].numpy()
    for image, (name, kind) in zip(images, KINDS.items(), strict=True):
        check(image, kind, name)


@pytest.mark.parametrize("data", [b"", b"\0\0\0 ftypavif", KINDS["RGB PNG"].data[:60]])
def test_what_is_no_image_is_told_with_its_feature(data, tmp_path):
    value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
    record = tf.train.Example(features=tf.train.Features(feature={"photo": value}))
    with tf.io.TFRecordWriter(str(tmp_path / "train.tfrecord")) as writer:
        writer.write(record.SerializeToString())
    ds = datum.load(tmp_path)
    with pytest.raises(datum.DatumError, match="record 0.*feature 'photo': expected"):
        next(iter(ds.to_numpy("train", decode={"photo": True})))
    if data[:4] == b"\x89PNG":
        return  # TensorFlow itself says that it is damaged
    with pytest.raises(tf.errors.InvalidArgumentError, match="feature 'photo': expected a JPEG"):
        next(iter(ds.to_tf("train", decode={"photo": True})))


def is_small(path: Path) -> bool:
    try:
        header = read_file_header(path)
    except ImageError:
        return bool(path.suffix)
    return header.height * header.width < 2**18


def test_readers_agree_on_odd_files_or_they_are_refused(shared_data, tmp_path):
    paths = [path for path in sorted((shared_data / "odd_images").iterdir()) if is_small(path)]
    out = tmp_path / "out"
    rows = [{"name": path.name, "image": path} for path in paths]
    report = datum.write(rows, out, shuffle=False, progress=False, on_error="quarantine")
    assert report.records > 200
    assert report.splits["train"].rejected > 10
    ds = datum.load(out)
    expected = {row["name"]: row["image"] for row in ds["train"]}
    code = specs.tensorflow(
        ds.schema, files=str(out / "train-*.tfrecord"), metadata=ds.metadata, batch_size=None
    )
    script = tmp_path / "spec.py"
    script.write_text(code)
    readers = {
        "native": ds.to_tf("train", batch_size=None, engine="native"),
        "graph": ds.to_tf("train", batch_size=None, engine="graph"),
        "printed code": runpy.run_path(str(script))["dataset"],
    }
    lossy = (".jpg", ".mpo")
    for reader, records in readers.items():
        compared = 0
        for record in records:
            name, image = record["name"].numpy().decode(), record["image"].numpy()
            if name.endswith(lossy):
                assert image.shape == expected[name].shape, (reader, name)
                differing = np.abs(image.astype(int) - expected[name]) / 257
                assert differing.mean() < 2, (reader, name)
            else:
                where = f"{reader}: {name}"
                np.testing.assert_array_equal(image, expected[name], err_msg=where)
            compared += 1
        assert compared == report.records
