"""Options of `to_numpy`, `to_torch`, `to_jax` and `to_tf`: the same names, defaults and meaning."""

import inspect
import itertools
import re

import numpy as np
import pytest
from PIL import Image

import datum
from datum.dataset import Dataset
from datum.mixing import Mix

for _framework in ("tensorflow", "torch", "jax"):
    pytest.importorskip(_framework)

LOADERS = ("to_numpy", "to_torch", "to_jax", "to_tf")
OTHERS = LOADERS[1:]
METHODS = [(Dataset, name) for name in LOADERS] + [(Mix, name) for name in LOADERS[:3]]
SHARED = (
    *("batch_size", "shuffle", "seed", "epochs", "columns", "drop_remainder", "remainder", "host"),
    *(
        "supervised",
        "missing",
        "decode",
        "cast",
        "map",
        "batch_map",
        "cache",
        "cache_after",
        "bucket_by",
        "pad",
    ),
    *("prefetch", "on_error", "reshuffle"),
)
RESULTS = {"to_numpy": "Loader", "to_torch": "TorchLoader", "to_jax": "JaxLoader"}
RESULTS["to_tf"] = "DatumDataset"


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("same") / "same"
    rows = [
        {
            "x": np.arange(n, n + 2, dtype=np.float32),
            "label": n % 3,
            "tokens": np.arange(1 + n * 7 % 11, dtype=np.int64),
        }
        for n in range(50)
    ]
    datum.write(rows, folder, shuffle=False, shards=2, progress=False)
    return datum.load(folder)


def method_id(value):
    return value.__name__ if inspect.isclass(value) else value


def documented(method):
    """What the docstring says of each argument."""
    arguments = inspect.getdoc(method).partition("\nArgs:\n")[2]
    return dict(re.findall(r"^ +(\w+): (.+(?:\n {8,}.+)*)", arguments, re.MULTILINE))


@pytest.mark.parametrize(("owner", "name"), METHODS, ids=method_id)
def test_every_shared_option_is_in_the_signature_and_the_docstring(owner, name):
    method = getattr(owner, name)
    parameters = inspect.signature(method).parameters
    told = documented(method)
    for option in SHARED:
        assert option in parameters, option
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        assert option in told, option


@pytest.mark.parametrize(("owner", "name"), METHODS, ids=method_id)
def test_shared_options_have_the_same_defaults(owner, name):
    ours = inspect.signature(Dataset.to_numpy).parameters
    theirs = inspect.signature(getattr(owner, name)).parameters
    assert {option: theirs[option].default for option in SHARED} == {
        option: ours[option].default for option in SHARED
    }


@pytest.mark.parametrize(("owner", "name"), METHODS, ids=method_id)
def test_the_class_of_what_is_given_is_annotated(owner, name):
    assert inspect.signature(getattr(owner, name)).return_annotation == RESULTS[name]


@pytest.mark.parametrize("name", LOADERS)
def test_what_is_given_is_of_the_class_that_is_annotated(ds, name):
    assert type(getattr(ds, name)("train")).__name__ == RESULTS[name]


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [
        ("batchsize", "batch_size"),
        ("shufle", "shuffle"),
        ("sed", "seed"),
        ("remander", "remainder"),
        ("supervise", "supervised"),
        ("bucketby", "bucket_by"),
        ("padd", "pad"),
    ],
)
@pytest.mark.parametrize("name", LOADERS)
def test_a_misspelt_option_names_the_nearest(ds, name, misspelt, nearest):
    with pytest.raises(TypeError) as caught:
        getattr(ds, name)("train", **{misspelt: 1})
    assert name in str(caught.value)
    assert f"`{misspelt}`" in str(caught.value)
    assert f"hint: did you mean `{nearest}`?" in str(caught.value)


def plain(value):
    """What any framework gave, as lists: a ragged column as the list of its rows."""
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if getattr(value, "is_nested", False):  # a torch.Tensor of rows that differ in length
        return [row.tolist() for row in value.unbind()]
    if hasattr(value, "row_splits"):  # Ragged, of whatever tensors, and tf.RaggedTensor
        values, splits = np.asarray(value.values), np.asarray(value.row_splits)
        return [values[a:b].tolist() for a, b in itertools.pairwise(splits)]
    return np.asarray(value).tolist()


CASES = {
    "as they are": {},
    "batch_size=None": {"batch_size": None, "shuffle": True, "seed": 3},
    "shuffle": {"batch_size": 8, "shuffle": True, "seed": 1},
    "shuffle='full'": {"batch_size": 8, "shuffle": "full", "seed": 1},
    "shuffle='blocks'": {"batch_size": 8, "shuffle": "blocks", "seed": 2},
    "shuffle=10": {"batch_size": 8, "shuffle": 10, "seed": 2},
    "epochs": {"batch_size": 8, "shuffle": True, "epochs": 2},
    "without reshuffle": {"batch_size": 8, "shuffle": True, "epochs": 2, "reshuffle": False},
    "remainder='keep'": {"batch_size": 8, "remainder": "keep"},
    "remainder='drop'": {"batch_size": 8, "remainder": "drop"},
    "remainder='pad'": {"batch_size": 8, "remainder": "pad"},
    "remainder='wrap'": {"batch_size": 8, "remainder": "wrap"},
    "drop_remainder": {"batch_size": 8, "drop_remainder": True},
    "of two hosts": {"batch_size": 8, "shuffle": True, "host": (1, 2)},
    "columns": {"batch_size": 8, "columns": ["label"]},
    "supervised": {"batch_size": 8, "supervised": ("x", "label"), "shuffle": True},
    "supervised with names": {"batch_size": 8, "supervised": (["x", "label"], "label", "label")},
    "pad": {"batch_size": 8, "pad": True},
    "pad to a length": {"batch_size": 8, "pad": 12},
    "pad with a value": {"batch_size": 8, "pad": {"tokens": -1}},
    "cast": {"batch_size": 8, "cast": {"x": "float16", "tokens": "float32", "label": "float32"}},
    "bucket_by": {"batch_size": 8, "bucket_by": "tokens", "pad": True, "shuffle": True},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_an_option_means_the_same_in_every_framework(ds, options):
    expected = [plain(batch) for batch in ds.to_numpy("train", **options)]
    assert expected
    for name in OTHERS:
        found = [plain(batch) for batch in getattr(ds, name)("train", **options)]
        assert found == expected, name


@pytest.mark.parametrize("name", LOADERS)
def test_without_a_seed_every_loader_has_another_order(ds, name):
    def order():
        loader = getattr(ds, name)("train", batch_size=50, shuffle=True, seed=None)
        (batch,) = [plain(batch) for batch in loader]
        return [x[0] for x in batch["x"]]

    first, second = order(), order()
    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A dataset of everything that can be cast, and of what cannot."""
    folder = tmp_path_factory.mktemp("cast") / "kinds"
    rows = [
        {
            "exact": n / 3,
            "half": np.float16(n),
            "count": n,
            "list": [n / 7] * (n % 3),
            "name": str(n),
            "image": Image.new("RGB", (4, 3), (n, n, n)),
            "sparse": datum.Sparse(np.array([[n % 5]]), np.array([n / 9]), (5,)),
        }
        for n in range(10)
    ]
    datum.write(rows, folder, floats="float64", shuffle=False, progress=False)
    return datum.load(folder)


def dtype_of(column):
    """The name of the type of a column of any framework."""
    while hasattr(column, "row_splits") or hasattr(column, "dense_shape"):
        column = column.values
    return str(getattr(column.dtype, "name", column.dtype)).removeprefix("torch.")


@pytest.mark.parametrize("engine", ["native", "graph"])
@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("mapped", [False, True])
def test_a_cast_gives_every_framework_the_same_types(kinds, name, engine, mapped):
    options = {"engine": engine} if name == "to_tf" else {}
    if mapped:
        options["map"] = dict
    elif engine == "graph" and name != "to_tf":
        pytest.skip("engines are those of TensorFlow")
    floats = ("exact", "half", "list", "sparse")
    (batch,) = getattr(kinds, name)("train", batch_size=10, cast="float32", **options)
    assert {one: dtype_of(batch[one]) for one in floats} == dict.fromkeys(floats, "float32")
    assert np.asarray(batch["exact"]).tolist() == np.float32(np.arange(10) / 3).tolist()
    assert dtype_of(batch["image"]) == "uint8"
    cast = {"image": "float32", "count": "float16", "exact": "float32"}
    (batch,) = getattr(kinds, name)("train", batch_size=10, cast=cast, **options)
    assert {one: dtype_of(batch[one]) for one in cast} == cast
    assert np.asarray(batch["image"])[:, 0, 0, 0].tolist() == list(range(10))
    assert dtype_of(batch["half"]) == "float16"


@pytest.mark.parametrize("name", LOADERS)
def test_a_cast_is_asked_for_in_the_types_of_any_framework(kinds, name):
    import tensorflow as tf
    import torch

    for dtype in (np.float32, np.dtype("float32"), torch.float32, tf.float32):
        (batch,) = getattr(kinds, name)("train", batch_size=10, columns=["exact"], cast=dtype)
        assert dtype_of(batch["exact"]) == "float32"


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize(
    ("cast", "match"),
    [
        ("int32", "expected `cast` to a floating-point type"),
        ({"exact": "flaot32"}, "expected `cast` to a floating-point type"),
        (
            {"exacto": "float32"},
            r"expected `cast` to name features, got 'exacto'\nhint: did you mean 'exact'",
        ),
        ({"name": "float32"}, "expected `cast` of numbers or decoded images, got 'name'"),
    ],
)
def test_a_cast_that_cannot_be_is_refused(kinds, name, cast, match):
    with pytest.raises((ValueError, datum.SchemaError), match=match):
        getattr(kinds, name)("train", cast=cast)


@pytest.mark.parametrize("name", LOADERS)
def test_bytes_of_an_image_cannot_be_cast(kinds, name):
    with pytest.raises(ValueError, match="decoded images, got 'image'"):
        getattr(kinds, name)("train", decode=False, cast={"image": "float32"})
