"""The loader of JAX: placed batches, hosts, and what it refuses."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import datum
from datum.columns import Ragged
from datum.frameworks.jax import JaxLoader

MESH = Mesh(np.array(jax.devices()[:1]), ("data",))
ROWS = NamedSharding(MESH, PartitionSpec("data"))
WHOLE = NamedSharding(MESH, PartitionSpec())


@pytest.fixture
def ds(tmp_path):
    rows = [
        {"id": i, "x": np.full(3, i, np.float32), "items": list(range(i % 4)), "name": f"n{i}"}
        for i in range(10)
    ]
    datum.write(rows, tmp_path / "rows", shuffle=False, progress=False)
    return datum.load(tmp_path / "rows")


def ids(loader):
    return [batch["id"].tolist() for batch in loader]


def test_batches_are_dicts_of_jax_arrays(ds):
    batch = next(iter(ds.to_jax(batch_size=4)))
    assert list(batch) == ["id", "x", "items", "name"]
    assert isinstance(batch["x"], jax.Array)
    assert isinstance(batch["items"], Ragged)
    assert isinstance(batch["items"].values, jax.Array)
    assert batch["name"].tolist() == ["n0", "n1", "n2", "n3"]


def test_numpy_gives_the_same_batches(ds):
    options = dict(batch_size=3, shuffle=True, seed=7, epochs=2)
    assert ids(ds.to_jax(**options)) == ids(ds.to_numpy(**options))
    assert len(ds.to_jax(**options)) == 8


def test_a_batch_goes_into_jit_as_it_is(ds):
    batch = next(iter(ds.to_jax(batch_size=4, columns=["x", "items"])))
    total = jax.jit(lambda batch: batch["x"].sum() + batch["items"].values.sum())(batch)
    assert total == 18 + (0 + 0 + 1 + 0 + 1 + 2)


def test_functions_get_numpy_and_their_results_are_placed(ds):
    def pair(batch):
        assert isinstance(batch["x"], np.ndarray)
        return batch["x"] * 2, batch["id"]

    x, number = next(iter(ds.to_jax(batch_size=4, batch_map=pair)))
    assert isinstance(x, jax.Array)
    assert x[:, 0].tolist() == [0, 2, 4, 6]
    assert number.tolist() == [0, 1, 2, 3]


def test_the_process_of_jax_is_the_host(ds, monkeypatch):
    loader = ds.to_jax(batch_size=2, drop_remainder=True)  # asked when it is iterated, not before
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert ids(loader) == [[2, 3], [6, 7]]
    assert len(loader) == 2


def test_single_records_are_arrays_without_a_dimension_for_the_batch(ds):
    records = list(ds.to_jax(batch_size=None))
    assert all(isinstance(record["id"], jax.Array) for record in records)
    assert [record["id"].tolist() for record in records] == list(range(len(records)))


def test_a_given_host_counts_more_than_the_process(ds, monkeypatch):
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert ids(ds.to_jax(batch_size=5, host=(0, 1))) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_arrays_are_placed_with_the_sharding(ds):
    for batch in ds.to_jax(batch_size=5, sharding=ROWS):
        assert batch["x"].sharding == ROWS
        assert batch["id"].sharding == ROWS


def test_a_device_will_do_for_a_sharding(ds):
    device = jax.devices()[0]
    batch = next(iter(ds.to_jax(batch_size=5, sharding=device)))
    assert batch["x"].devices() == {device}


def test_short_batches_can_be_whole_on_each_device(ds):
    sizes = [len(batch["id"]) for batch in ds.to_jax(batch_size=4, sharding=WHOLE)]
    assert sizes == [4, 4, 2]


def test_a_mask_can_be_placed_by_its_name(ds):
    loader = ds.to_jax(batch_size=4, remainder="pad", sharding={"batch_mask": ROWS, "x": ROWS})
    assert [batch["batch_mask"].tolist() for batch in loader][-1] == [True, True, False, False]


def test_a_sharding_of_an_unknown_column_names_the_nearest(ds):
    with pytest.raises(ValueError, match="`sharding`.*got 'ids'\nhint: did you mean 'id'"):
        ds.to_jax(sharding={"ids": ROWS})


@pytest.mark.parametrize("sharding", ["data", PartitionSpec("data"), {"x": 3}])
def test_what_is_no_sharding_is_refused(ds, sharding):
    with pytest.raises(TypeError, match="expected `sharding` to be a jax.sharding.Sharding"):
        ds.to_jax(sharding=sharding)


def test_mixed_loaders_make_a_loader_of_jax(ds):
    options = dict(batch_size=5, columns=["id"], shuffle=True)
    splits = ["train[:5]", "train[5:]"]
    mixed = datum.mix({ds.to_jax(split, sharding=ROWS, **options): 1 for split in splits}, seed=3)
    assert isinstance(mixed, JaxLoader)
    assert next(iter(mixed))["id"].sharding == ROWS
    mixed.set_epoch(0)
    assert ids(mixed) == ids(
        datum.mix({ds[split]: 1 for split in splits}, seed=3).to_numpy(**options)
    )


def test_a_mix_of_splits_goes_to_jax(ds):
    mixed = datum.mix({ds["train[:5]"]: 1, ds["train[5:]"]: 1}).to_jax(batch_size=5)
    assert isinstance(next(iter(mixed))["x"], jax.Array)


def test_its_name_is_told(ds):
    assert repr(ds.to_jax()).startswith("JaxLoader('train', 10 records")


# How often `jit` compiles.


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = [{"tokens": rng.integers(1, 9, n)} for n in rng.integers(0, 100, 150)]
    folder = tmp_path_factory.mktemp("texts") / "texts"
    datum.write(rows, folder, progress=False)
    return datum.load(folder)


def count_programs(loader):
    """How many programs `jit` makes for all batches of a pass, and how many batches there are."""
    traces = []

    @jax.jit
    def step(batch):
        traces.append(jax.tree.map(jax.numpy.shape, batch))
        return jax.tree.map(lambda column: column.sum(), batch)

    batches = 0
    for batch in loader:
        step(batch)
        batches += 1
    assert step._cache_size() == len(traces)
    return len(traces), batches


@pytest.mark.parametrize("remainder", ["pad", "drop", "wrap"])
@pytest.mark.parametrize("pad", [100, datum.Pad(length=64, truncate=True, mask=False)])
def test_one_length_for_all_batches_is_one_program(texts, pad, remainder):
    loader = texts.to_jax(batch_size=4, shuffle=True, pad=pad, remainder=remainder, epochs=2)
    assert count_programs(loader) == (1, 76 if remainder != "drop" else 74)


def test_multiples_make_as_many_programs_as_there_are(texts):
    loader = texts.to_jax(batch_size=4, pad=datum.Pad(multiple=32), remainder="pad", epochs=2)
    programs, batches = count_programs(loader)
    assert 2 <= programs <= 4 < batches


@pytest.mark.parametrize("pad", [True, datum.Pad()])
def test_buckets_make_as_many_programs_as_there_are(texts, pad):
    options = {"batch_tokens": 400, "buckets": [25, 50, 100], "remainder": "pad", "epochs": 2}
    loader = texts.to_jax(bucket_by="tokens", shuffle=True, pad=pad, **options)
    assert count_programs(loader) == (3, len(loader))


def test_what_is_not_padded_makes_a_program_for_each_number_of_values(texts):
    programs, batches = count_programs(texts.to_jax(batch_size=4, remainder="drop"))
    assert programs > batches / 2


def test_masks_are_placed_with_the_sharding_or_by_name(ds):
    options = {"batch_size": 4, "remainder": "pad", "pad": 5, "columns": ["items"]}
    for batch in ds.to_jax(sharding=ROWS, **options):
        assert {name: column.sharding for name, column in batch.items()} == {
            "items": ROWS,
            "items_mask": ROWS,
            "batch_mask": ROWS,
        }
    last = list(ds.to_jax(sharding={"items_mask": WHOLE}, **options))[-1]
    assert last["items_mask"].sharding == WHOLE
    assert last["items_mask"].sum(axis=1).tolist() == [0, 1, 0, 1]  # of records 8, 9, 0 and 1
    assert last["batch_mask"].tolist() == [True, True, False, False]
    with pytest.raises(ValueError, match="expected `sharding` to name features, got 'items_mask'"):
        ds.to_jax(sharding={"items_mask": WHOLE}, pad=True)
