"""Connectors of TFDS, each with the values of three records."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from PIL import Image

f = tfds.features
RANDOM = np.random.default_rng(0)


def pixels(*shape: int, dtype: Any = np.uint8) -> Any:
    return RANDOM.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def numbers(dtype: Any) -> list[Any]:
    info = np.iinfo(dtype)
    return [info.min, 5, info.max]


def encoded(array: Any, form: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, form)
    return stream.getvalue()


def boxes(*corners: tuple[float, float, float, float]) -> list[Any]:
    return [f.BBox(*map(float, corner)) for corner in corners]


# Connectors, each with the values of three records, that our schema says as TFDS does.
EQUAL: dict[str, tuple[Any, list[Any]]] = {
    **{np.dtype(d).name: (d, numbers(d)) for d in (np.int8, np.int16, np.int32, np.int64)},
    **{np.dtype(d).name: (d, numbers(d)) for d in (np.uint8, np.uint16, np.uint32, np.uint64)},
    "bool": (np.bool_, [True, False, True]),
    "float16": (np.float16, [0.1, -65504, np.inf]),
    "float32": (np.float32, [0.1, -3e38, np.inf]),
    "string": (np.str_, ["a", "", b"\xff\x00"]),
    "scalar": (f.Scalar(np.int16), [1, -2, 3]),
    "matrix": (f.Tensor(shape=(2, 3), dtype=np.int8), list(pixels(3, 2, 3, dtype=np.int8))),
    "vector": (
        f.Tensor(shape=(None,), dtype=np.uint8),
        [np.array(v, np.uint8) for v in ([1, 2], [], [3])],
    ),
    "rows": (
        f.Tensor(shape=(None, 2), dtype=np.float32),
        [np.ones((n, 2), np.float32) for n in (2, 0, 1)],
    ),
    "strings": (f.Tensor(shape=(2,), dtype=np.str_), [["a", "b"], ["", "c"], ["d", "é"]]),
    "empty": (f.Tensor(shape=(0,), dtype=np.int64), [[], [], []]),
    "bytes float64": (
        f.Tensor(shape=(2,), dtype=np.float64, encoding="bytes"),
        list(np.array([[0.1, 1e300], [0, -1], [np.inf, 2]])),
    ),
    "bytes bool": (f.Tensor(shape=(), dtype=np.bool_, encoding="bytes"), [True, False, True]),
    "bytes complex": (
        f.Tensor(shape=(2,), dtype=np.complex64, encoding="bytes"),
        list(np.array([[1j, 2], [0, 1], [3, -1j]], np.complex64)),
    ),
    "bytes uint64": (f.Tensor(shape=(), dtype=np.uint64, encoding="bytes"), numbers(np.uint64)),
    "bytes rows": (
        f.Tensor(shape=(None, 2), dtype=np.int16, encoding="bytes"),
        [np.ones((n, 2), np.int16) for n in (2, 0, 1)],
    ),
    "bytes any": (
        f.Tensor(shape=(None, None, 2), dtype=np.uint8, encoding="bytes"),
        [pixels(2, 3, 2), pixels(1, 4, 2), pixels(3, 1, 2)],
    ),
    "text": (f.Text(), ["a", "", "é"]),
    "label": (f.ClassLabel(names=["cat", "dog"]), ["dog", 0, -1]),
    "bare label": (f.ClassLabel(num_classes=7), [6, 0, 1]),
    "box": (f.BBoxFeature(), boxes((0.1, 0.2, 0.3, 0.4), (0, 0, 1, 1), (0, 0, 0, 0))),
    "image": (f.Image(), [pixels(4, 5, 3), pixels(2, 2, 3), encoded(pixels(3, 3, 3), "BMP")]),
    "image gray": (f.Image(shape=(4, 4, 1)), list(pixels(3, 4, 4, 1))),
    "image alpha": (f.Image(shape=(None, None, 4)), list(pixels(3, 4, 5, 4))),
    "image uint16": (
        f.Image(shape=(None, None, 1), dtype=np.uint16),
        list(pixels(3, 4, 5, 1, dtype=np.uint16)),
    ),
    "mask": (f.LabeledImage(labels=["sky", "sea"]), list(pixels(3, 4, 5, 1))),
    "audio": (f.Audio(sample_rate=16000), [np.arange(n) - 2 for n in (5, 0, 3)]),
    "audio stereo": (
        f.Audio(shape=(None, 2), dtype=np.int16),
        [np.ones((n, 2), np.int16) for n in (5, 0, 3)],
    ),
    "list": (f.Sequence(np.int32), [[1, 2], [], [3]]),
    "list fixed": (f.Sequence(np.float32, length=2), [[1, 2], [3, 4], [5, 6]]),
    "list vectors": (
        f.Sequence(f.Tensor(shape=(2,), dtype=np.int64)),
        [[[1, 2]], [], [[3, 4]] * 2],
    ),
    "list texts": (f.Sequence(f.Text()), [["a", "é"], [], [""]]),
    "list labels": (f.Sequence(f.ClassLabel(names=["x", "y"])), [["x", "y"], [], ["y"]]),
    "list boxes": (f.Sequence(f.BBoxFeature()), [boxes((0, 0, 1, 1)), [], boxes((0, 0, 1, 1)) * 2]),
    "list bools": (f.Sequence(np.bool_), [[True], [], [False, True]]),
    "objects": (
        f.Sequence({"id": np.int64, "name": f.Text(), "size": {"w": np.float32}}),
        [
            [{"id": 1, "name": "a", "size": {"w": 0.5}}],
            [],
            [{"id": n, "name": str(n), "size": {"w": n}} for n in range(3)],
        ],
    ),
    "nested": (f.Sequence(f.Sequence(np.int64)), [[[1], [], [2, 3]], [], [[]]]),
    "nested texts": (f.Sequence(f.Sequence(f.Text())), [[["a"], [], ["b", "é"]], [], [[]]]),
    "nested thrice": (
        f.Sequence(f.Sequence(f.Sequence(np.uint8))),
        [[[[1], []], [], [[2, 3]]], [], [[]]],
    ),
    "nested vectors": (
        f.Sequence(f.Sequence(f.Tensor(shape=(2,), dtype=np.float32))),
        [[[[1, 2]], []], [], [[[3, 4], [5, 6]]]],
    ),
    "nested objects": (
        f.Sequence({"tags": f.Sequence({"id": np.int64})}),
        [[{"tags": [{"id": 1}, {"id": 2}]}, {"tags": []}], [], [{"tags": []}]],
    ),
    "dict": (
        {"a": np.int64, "b/c": {"d": f.Text()}},
        [{"a": n, "b/c": {"d": str(n)}} for n in range(3)],
    ),
    "translation": (
        f.Translation(["en", "fr"]),
        [{"en": "cat", "fr": "chat"}, {"en": "", "fr": "é"}, {"en": "a", "fr": "b"}],
    ),
    "translations": (
        f.TranslationVariableLanguages(),
        [{"en": "cat", "fr": ["chat", "chatte"]}, {"de": "Katze"}, {"en": ["a"]}],
    ),
    "dataset": (
        f.Dataset({"x": np.int64, "point": f.Tensor(shape=(2,), dtype=np.float32)}),
        [[{"x": n, "point": [n, 1]} for n in range(k)] for k in (2, 1, 3)],
    ),
    "dataset of numbers": (f.Dataset(np.int32), [[1, 2], [3], [4, 5]]),
}
FEATURES = {name: connector for name, (connector, _) in EQUAL.items()}
EXAMPLES = [{name: values[at] for name, (_, values) in EQUAL.items()} for at in range(3)]
