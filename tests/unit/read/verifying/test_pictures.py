import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from datum import Feature, Schema
from datum._read.record_checks import Findings, PictureChecks, find_fault
from datum.format import RecordFile, encode, parse

GREY = Feature("uint8", (None, None, 1), encoding="image")
COLOUR = Feature("uint8", (None, None, 3), encoding="image")


def image(kind="png", mode="L", size=(7, 9)):
    target = io.BytesIO()
    channels = {"L": (), "RGB": (3,)}[mode]
    pixels = np.random.default_rng(5).integers(0, 255, (*size, *channels), np.uint8)
    Image.fromarray(pixels).save(target, kind)
    return target.getvalue()


def check(rows, schema, **options):
    (records,) = RecordFile(encode(rows, Schema(schema)).to_bytes()).chunks()
    findings = Findings("train", "a")
    checks = PictureChecks(Schema(schema), **{"pool": None, **options})
    bad = checks.check(parse(records, schema), records, findings)
    return bad, checks, findings.problems


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "bmp", "webp", "tiff"])
def test_whole_images_have_no_fault(kind):
    assert find_fault(image(kind, "RGB"), COLOUR) is None
    assert find_fault(image(kind, "RGB"), None) is None


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "bmp", "webp", "tiff"])
def test_images_that_are_cut_have_one(kind):
    data = image(kind, "RGB", (40, 50))
    assert "expected a" in find_fault(data[: len(data) // 3], COLOUR)


def test_a_sum_that_a_png_holds_of_itself_is_checked():
    data = bytearray(image())
    data[data.index(b"IDAT") + 8] ^= 1
    assert "damaged" in find_fault(bytes(data), GREY)


def test_an_image_of_another_shape_than_its_feature_is_a_fault():
    feature = Feature("uint8", (8, 8, 1), encoding="image")
    fault = find_fault(image(size=(7, 9)), feature)
    assert fault == "expected an image of shape (8, 8, 1), got (7, 9, 1)"


@pytest.mark.parametrize("has_pool", [True, False])
def test_the_records_of_images_that_cannot_be_decoded_are_told(has_pool):
    schema = {"a": GREY, "b": Feature("uint8", (None, None, 1), encoding="image", optional=True)}
    rows = [{"a": image(), "b": image()} for _ in range(6)]
    rows[1] = {"a": image()}
    rows[2] = {"a": b"no image", "b": image()[:-30]}
    rows[4]["b"] = b""
    with ThreadPoolExecutor(2) as pool:
        bad, checks, problems = check(rows, schema, pool=pool if has_pool else None)
    assert bad == 2
    assert checks.decoded == 8
    found = [(one.kind, one.record, one.feature) for one in problems]
    assert found == [("image", 2, "a"), ("image", 2, "b"), ("image", 4, "b")]
    assert problems[0].text.startswith("expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, got")
    assert problems[0].offset > 0


BYTES = {"image/encoded": Feature("bytes"), "other": Feature("bytes")}


def test_bytes_that_mostly_hold_images_are_taken_for_such_where_nobody_described_them():
    rows = [{"image/encoded": image(), "other": b"anything"} for _ in range(5)]
    rows[0]["image/encoded"] = b"\x00"
    bad, checks, problems = check(rows, BYTES, guesses=True)
    assert (bad, checks.decoded) == (1, 4)
    assert [(one.record, one.feature) for one in problems] == [(0, "image/encoded")]
    assert check(rows, BYTES)[1].decoded == 0


def test_what_bytes_hold_is_decided_once():
    checks = PictureChecks(Schema(BYTES), pool=None, guesses=True)
    findings = Findings("train", "a")
    for data in (image(), b"now something else"):
        rows = [{"image/encoded": data, "other": b""}]
        (records,) = RecordFile(encode(rows, BYTES).to_bytes()).chunks()
        checks.check(parse(records, BYTES), records, findings)
    assert [one.kind for one in findings.problems] == ["image"]


def test_features_that_no_record_has_decide_nothing():
    schema = {"x": Feature("bytes", optional=True), "y": Feature("int64")}
    bad, checks, _ = check([{"y": 1}], schema, guesses=True)
    assert (bad, checks.decoded) == (0, 0)
