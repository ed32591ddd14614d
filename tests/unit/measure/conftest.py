"""Two small datasets that everything here is measured with, written once."""

import io

import numpy as np
import pytest
from PIL import Image

import datum

RECORDS = 96


@pytest.fixture(scope="session")
def numbers(tmp_path_factory):
    """Numbers, texts and lists in three shards."""
    folder = tmp_path_factory.mktemp("measured") / "numbers"
    rows = [
        {"x": i, "y": i / 2, "name": f"record {i}", "tags": list(range(i % 3))}
        for i in range(RECORDS)
    ]
    datum.write(rows, folder, shards=3, progress=False)
    return datum.load(folder)


def as_jpeg(side: int) -> bytes:
    pixels = np.arange(side * side * 3, dtype=np.uint32).reshape(side, side, 3) % 251
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Images of 320 x 320 pixels, with labels."""
    folder = tmp_path_factory.mktemp("measured") / "photos"
    image = datum.Feature("uint8", (None, None, 3), encoding="image")
    columns = {"image": [as_jpeg(320)] * 8, "label": list(range(8))}
    datum.write(columns, folder, schema={"image": image}, progress=False)
    return datum.load(folder)


@pytest.fixture(scope="session")
def squeezed(tmp_path_factory):
    """Compressed shards."""
    folder = tmp_path_factory.mktemp("measured") / "squeezed"
    datum.write({"x": range(RECORDS)}, folder, shards=2, compression="gzip", progress=False)
    return datum.load(folder)
