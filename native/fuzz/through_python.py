"""Fuzzing through the Python face: through_python.py TARGET [options of libFuzzer] [corpus ...].

An input is a byte that says which file it stands for, and the bytes of that file. `dataset` puts it
in the place of a manifest, an index, a shard or a file of strangers and reads what is there;
`source` writes a dataset from it. A DatumError is an answer; any other exception is a finding, as
are ten seconds or two gigabytes. Corpora come from `seeds`; see scripts/fuzz.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROWS = {
    "x": np.arange(6),
    "y": np.linspace(0, 1, 6, dtype=np.float32),
    "name": ["a", "b", "cd", "", "é", "f"],
    "tokens": [[1], [], [2, 3], [4], [5, 6, 7], []],
}
WATCHED = {  # what takes bytes apart; to watch all of Datum takes long to start
    "dataset": ["datum.format", "datum._read"],
    "source": ["datum.sources", "datum.images"],
}
VOC = """<annotation><filename>a.png</filename><size><width>4</width><height>4</height>
<depth>3</depth></size><object><name>cat</name><difficult>0</difficult><bndbox><xmin>1</xmin>
<ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></object></annotation>"""


def main() -> None:
    """Fuzz a target; atheris is imported first, to watch what Datum imports."""
    import atheris

    warnings.simplefilter("ignore")
    name = sys.argv.pop(1)
    target = {"dataset": run_dataset, "source": run_source}[name]
    watched = WATCHED[name]
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="datum-fuzz-", dir=place) as folder:
        sound, work = Path(folder, "sound"), Path(folder, "work")

        def run(data: bytes) -> None:
            from datum import DatumError

            try:
                with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(DatumError):
                    target(data, sound, work)
            finally:
                shutil.rmtree(work, ignore_errors=True)

        # What a call imports only when it is needed is to be watched as well.
        with atheris.instrument_imports(include=watched, enable_loader_override=False):
            make_sound(sound)
            for owner, seed in seeds():
                if owner == name:
                    run(seed)
        atheris.Setup(sys.argv, run)
        atheris.Fuzz()


# A dataset, or files of strangers, that are read.


def make_sound(folder: Path) -> None:
    """A dataset whose manifest has no checksum, so that a changed one is looked at, too."""
    import datum

    datum.write(ROWS, folder, shards=1, progress=False)
    manifest = json.loads((folder / "datum.json").read_text())
    (folder / "datum.json").write_text(json.dumps(manifest | {"checksum": None}))


def run_dataset(data: bytes, sound: Path, work: Path) -> None:
    """Read all that is there, then by number, then around damage, then check it."""
    import datum

    kind, data = data[:1], data[1:]
    if kind in (b"m", b"i", b"s"):
        shutil.copytree(sound, work)
        (shard,) = work.glob("*.tfrecord")
        names = {b"m": "datum.json", b"i": next((work / "index").iterdir()), b"s": shard}
        (work / names[kind]).write_bytes(data)
    else:
        work.mkdir()
        endings = {b"g": ".gz", b"z": ".zlib"}
        (work / f"x.tfrecord{endings.get(kind, '')}").write_bytes(data)
    for on_error in ("raise", "skip"):
        with contextlib.suppress(datum.DatumError):
            ds = datum.load(work, on_error=on_error)
            repr(ds), ds._repr_html_()
            for split in ds.splits:
                for _ in ds.to_numpy(split, batch_size=4, on_error=on_error):
                    pass
                if len(ds[split]):
                    ds[split][len(ds[split]) - 1]
    str(datum.verify(work))


# Sources that are written.

FILES = {
    b"c": "a.csv",
    b"t": "a.tsv",
    b"j": "a.json",
    b"l": "a.jsonl",
    b"n": "a.npy",
    b"z": "a.npz",
    b"p": "a.parquet",
    b"a": "a.arrow",
    b"i": "images/cat/a.png",
    b"x": "Annotations/a.xml",
}


def run_source(data: bytes, sound: Path, work: Path) -> None:
    """Write what a file holds; bad records are put aside."""
    import datum

    del sound
    name = FILES.get(data[:1], "a.csv")
    file = work / "in" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(data[1:])
    source = work / "in" if "/" in name else file
    if name.startswith("Annotations"):
        (work / "in" / "JPEGImages").mkdir()
        (work / "in" / "JPEGImages" / "a.png").write_bytes(make_png())
    datum.write(source, work / "out", on_error="quarantine", workers=1, progress=False)
    assert datum.load(work / "out").verify().is_sound


# What it starts from.


def make_png() -> bytes:
    """A small image."""
    from PIL import Image

    made = io.BytesIO()
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(made, "PNG")
    return made.getvalue()


def seeds() -> Iterator[tuple[str, bytes]]:
    """Inputs of each target that are sound, with the names of the targets."""
    import gzip

    import pyarrow as pa
    from pyarrow import feather, parquet

    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder, "sound")
        make_sound(sound)
        (shard,), (index,) = sound.glob("*.tfrecord"), (sound / "index").iterdir()
        yield "dataset", b"m" + (sound / "datum.json").read_bytes()
        yield "dataset", b"i" + index.read_bytes()
        yield "dataset", b"s" + shard.read_bytes()
        yield "dataset", b"f" + shard.read_bytes()
        yield "dataset", b"g" + gzip.compress(shard.read_bytes(), mtime=0)
    yield "source", b'cx,name,when\n1,a,2024-01-02\n2.5,"b ""q""",\n-3,,2024-01-03\n'
    yield "source", b"tx\tname\n1\ta\n2\tb\n"
    yield "source", b'j[{"x": 1, "y": [1, 2]}, {"x": null, "y": [], "z": {"w": "a"}}]'
    yield "source", b'l{"x": 1, "y": [1, 2]}\n{"x": 2.5, "name": "a"}\n'
    yield "source", b"x" + VOC.encode()
    yield "source", b"i" + make_png()
    table = pa.table({"x": [1, 2, None], "name": ["a", "b", "c"], "y": [[1.0], [], [2.0]]})

    def saved(save: Callable[[io.BytesIO], object]) -> bytes:
        made = io.BytesIO()
        save(made)
        return made.getvalue()

    yield "source", b"n" + saved(lambda file: np.save(file, np.arange(6).reshape(3, 2)))
    yield "source", b"p" + saved(lambda file: parquet.write_table(table, file))
    yield "source", b"a" + saved(lambda file: feather.write_feather(table, file))
    arrays = {"x": np.arange(3), "y": np.ones((3, 2), np.float32)}

    def save_archive(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                info = zipfile.ZipInfo(f"{name}.npy")  # of 1980: the same bytes on every run
                archive.writestr(info, saved(lambda inner, one=array: np.save(inner, one)))

    yield "source", b"z" + saved(save_archive)


if __name__ == "__main__":
    main()
