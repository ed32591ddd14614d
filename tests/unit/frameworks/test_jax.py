import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

import datum
from datum import SchemaError
from datum._frameworks.jax import JaxLoader, Placer, to_bcoo, to_padded
from datum.columns import BytesColumn, Ragged, Sparse

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


PLACED_ROWS = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), PartitionSpec("data"))


def aligned(count: int) -> np.ndarray:
    """Memory that JAX can use as it is."""
    memory = np.zeros(4 * count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 4 * count].view(np.float32)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "int32", "uint32", "float16", "float32"]
)
def test_numbers_keep_their_type(dtype):
    made = Placer()({"x": np.ones((2, 3), dtype)})["x"]
    assert isinstance(made, jax.Array)
    assert (made.dtype, made.shape) == (np.dtype(dtype), (2, 3))


def test_bfloat16_stays_bfloat16():
    array = np.ones(2, jax.numpy.bfloat16)
    assert Placer()({"x": array})["x"].dtype == jax.numpy.bfloat16


def test_memory_that_suits_jax_is_not_copied():
    array = aligned(1024)
    made = Placer()({"x": array})["x"]
    assert made.unsafe_buffer_pointer() == array.ctypes.data


def test_an_array_that_is_given_away_leaves_the_memory_as_it_was():
    array = aligned(1024)
    jax.jit(lambda x: x + 1, donate_argnums=0)(Placer()({"x": array})["x"]).block_until_ready()
    assert not array.any()


def test_texts_stay_as_they_are():
    texts = np.array(["a", "b"], object)
    words = Ragged(BytesColumn.from_values(["a", "b", "c"]), np.array([0, 2, 3]))
    marks = Sparse(np.array([[0, 1]]), BytesColumn.from_values([b"x"]), (2, 3))
    made = Placer()({"t": texts, "w": words, "m": marks})
    assert made["t"] is texts
    assert made["w"] is words
    assert made["m"] is marks


def test_ragged_and_sparse_hold_arrays_of_jax():
    ragged = Ragged(np.arange(3, dtype=np.float32), np.array([0, 2, 3]))
    sparse = Sparse(np.array([[0, 1], [1, 0]]), np.array([1, 2], np.int16), (2, 3))
    made = Placer()({"r": ragged, "s": sparse, "n": Ragged(ragged, np.array([0, 2]))})
    leaves = jax.tree.leaves(made)
    assert len(leaves) == 7
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    assert made["r"].shape == (2, None)
    assert made["r"][0].tolist() == [0, 1]
    assert made["s"].dense_shape == (2, 3)
    assert made["n"].shape == (1, None, None)


def test_arrays_of_a_list_are_placed_one_by_one():
    made = Placer()({"image": [np.zeros((2, 2), np.uint8), np.zeros((3, 2), np.uint8)]})
    assert [image.shape for image in made["image"]] == [(2, 2), (3, 2)]
    assert all(isinstance(image, jax.Array) for image in made["image"])


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]"])
def test_times_become_counts(kind):
    made = Placer()({"t": np.array([3, 5], kind)})["t"]
    assert made.tolist() == [3, 5]


def test_the_other_byte_order_is_turned():
    made = Placer()({"x": np.array([1, 2], ">i4")})["x"]
    assert (made.dtype, made.tolist()) == (np.int32, [1, 2])


def test_integers_that_fit_are_narrowed_as_jax_does():
    made = Placer()({"x": np.array([-(2**31), 2**31 - 1]), "e": np.empty(0, np.int64)})
    assert (made["x"].dtype, made["x"].tolist()) == (np.int32, [-(2**31), 2**31 - 1])
    assert made["e"].shape == (0,)


@pytest.mark.parametrize(
    "array",
    [
        np.array([0, 2**31]),
        np.array([-(2**31) - 1, 0]),
        np.array([2**32], np.uint64),
        np.array(["NaT", "2020-01-01"], "datetime64[D]"),
        np.array(["2020-01-01"], "datetime64[ns]"),
    ],
)
def test_integers_that_do_not_fit_are_an_error_that_names_them(array):
    with pytest.raises(
        SchemaError, match="column stamp: expected numbers from .* got -?\\d+\n"
    ) as e:
        Placer()({"stamp": array})
    assert "jax_enable_x64" in str(e.value)
    assert e.value.feature == "stamp"


def test_values_of_ragged_are_looked_at_too():
    ragged = Ragged(np.array([2**40]), np.array([0, 1]))
    with pytest.raises(SchemaError, match="column r: .* got 1099511627776"):
        Placer()({"r": ragged})


def test_with_64_bits_nothing_is_narrowed():
    batch = {"i": np.array([2**40]), "f": np.array([0.1]), "t": np.array(["NaT"], "M8[ns]")}
    with jax.enable_x64(True):
        made = Placer()(batch)
    assert (made["i"].dtype, made["i"].tolist()) == (np.int64, [2**40])
    assert (made["f"].dtype, made["f"].tolist()) == (np.float64, [0.1])
    assert made["t"].tolist() == [-(2**63)]


def test_floats_are_rounded_to_32_bits():
    made = Placer()({"x": np.array([0.1])})["x"]
    assert (made.dtype, made[0]) == (np.float32, np.float32(0.1))


def test_columns_keep_their_order():
    assert list(Placer()({"b": np.zeros(1), "a": np.zeros(1)})) == ["b", "a"]


def test_what_batch_map_made_is_placed_whatever_its_shape():
    x, (y, note) = Placer()((np.zeros(2), (np.ones(2), "note")))
    assert isinstance(x, jax.Array)
    assert isinstance(y, jax.Array)
    assert note == "note"
    assert isinstance(Placer()(np.zeros(2)), jax.Array)
    assert Placer()(None) is None


def test_one_sharding_serves_all_arrays_with_rows():
    ragged = Ragged(np.zeros(3, np.float32), np.array([0, 2, 3]))
    made = Placer(PLACED_ROWS)(
        {"x": np.zeros((2, 4)), "y": np.zeros(2), "r": ragged, "l": [np.zeros(5)]}
    )
    assert made["x"].sharding == made["y"].sharding == PLACED_ROWS
    assert isinstance(made["r"].values.sharding, SingleDeviceSharding)
    assert isinstance(made["l"][0].sharding, SingleDeviceSharding)


def test_a_sharding_for_each_name_leaves_the_others_where_jax_puts_them():
    made = Placer({"x": PLACED_ROWS})({"x": np.zeros(2), "y": np.zeros(2)})
    assert made["x"].sharding == PLACED_ROWS
    assert isinstance(made["y"].sharding, SingleDeviceSharding)


def test_what_is_ragged_cannot_be_cut():
    ragged = Ragged(np.zeros(3), np.array([0, 2, 3]))
    with pytest.raises(
        ValueError, match="column r: expected an array.* got a Ragged\nhint: use `pad`"
    ):
        Placer({"r": PLACED_ROWS})({"r": ragged})


def test_a_sharding_that_does_not_suit_a_shape_is_told_with_the_column():
    pixels = NamedSharding(PLACED_ROWS.mesh, PartitionSpec("data", None, None))
    with pytest.raises(ValueError, match="column label: .*can divide, got \\(2,\\)"):
        Placer(pixels)({"image": np.zeros((2, 3, 3)), "label": np.zeros(2)})


RAGGED = Ragged(np.arange(6, dtype=np.float32), np.array([0, 2, 2, 6]))
SPARSE = Sparse(np.array([[0, 1], [2, 0]]), np.array([5, 7], np.int32), (3, 2))


def test_ragged_goes_into_and_out_of_jit():
    doubled = jax.jit(lambda ragged: jax.tree.map(lambda part: part * 2, ragged))(RAGGED)
    assert isinstance(doubled, Ragged)
    assert doubled.values.tolist() == [0, 2, 4, 6, 8, 10]
    assert doubled.row_splits.tolist() == [0, 4, 4, 12]


def test_nested_ragged_goes_through_jit():
    nested = Ragged(RAGGED, np.array([0, 1, 3]))
    total = jax.jit(lambda ragged: ragged.values.values.sum())(nested)
    assert total == 15


def test_sparse_goes_into_jit_and_its_shape_is_known_there():
    @jax.jit
    def densify(sparse):
        return jnp.zeros(sparse.dense_shape).at[tuple(sparse.indices.T)].set(sparse.values)

    assert densify(SPARSE).tolist() == SPARSE.to_dense().tolist()


def test_another_shape_of_sparse_is_another_program():
    traced = []
    function = jax.jit(lambda sparse: traced.append(sparse.dense_shape) or sparse.values.sum())
    function(SPARSE)
    function(Sparse(SPARSE.indices, SPARSE.values, (4, 2)))
    assert traced == [(3, 2), (4, 2)]


def test_messages_of_jax_name_the_parts():
    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path({"r": RAGGED, "s": SPARSE})
    ]
    assert paths == ["['r'].values", "['r'].row_splits", "['s'].indices", "['s'].values"]


def test_gradients_flow_through_the_values_of_ragged():
    gradient = jax.grad(lambda w: (to_padded(RAGGED, length=4) * w).sum())(1.0)
    assert gradient == 15


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7])
def test_padding_within_jit_gives_what_ragged_itself_does(length):
    padded = jax.jit(to_padded, static_argnames="length")(RAGGED, length=length, fill=-1)
    assert padded.dtype == np.float32
    assert padded.tolist() == RAGGED.to_padded(length=length, fill=-1).tolist()


def test_rows_of_vectors_are_padded():
    ragged = Ragged(np.arange(12).reshape(6, 2), np.array([0, 2, 2, 6]))
    assert to_padded(ragged, length=3).tolist() == ragged.to_padded(length=3).tolist()


def test_no_rows_and_no_values_are_padded():
    ragged = Ragged(np.empty(0, np.float32), np.array([0, 0, 0]))
    assert to_padded(ragged, length=2, fill=9).tolist() == [[9, 9], [9, 9]]


def test_sparse_becomes_a_matrix_to_multiply_with():
    product = jax.jit(lambda sparse, x: to_bcoo(sparse) @ x)(SPARSE, jnp.array([10, 100]))
    assert product.tolist() == (SPARSE.to_dense() @ np.array([10, 100])).tolist()


_SUSPENDED = """
import sys
import datum

datum.write({"x": range(1000)}, sys.argv[1], progress=False)
batches = iter(datum.load(sys.argv[1]).to_jax("train", batch_size=8))
next(batches)
"""


def test_a_program_that_ends_within_an_epoch_ends_quietly(tmp_path: Path) -> None:
    # JAX keeps the suspended generator until the names of modules are gone.
    ran = subprocess.run(
        [sys.executable, "-c", _SUSPENDED, str(tmp_path / "numbers")],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "Exception ignored" not in ran.stderr
