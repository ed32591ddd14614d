"""Options of `to_numpy`, `to_torch`, `to_jax` and `to_tf`: the same names, defaults and meaning."""

import inspect
import itertools
import re

import numpy as np
import pytest

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
