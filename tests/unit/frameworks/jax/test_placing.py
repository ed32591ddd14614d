"""Which arrays JAX gets, and which values it would lose."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from datum import SchemaError
from datum.columns import BytesColumn, Ragged, Sparse
from datum.frameworks.jax import Placer

ROWS = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), PartitionSpec("data"))


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
    made = Placer(ROWS)({"x": np.zeros((2, 4)), "y": np.zeros(2), "r": ragged, "l": [np.zeros(5)]})
    assert made["x"].sharding == made["y"].sharding == ROWS
    assert isinstance(made["r"].values.sharding, SingleDeviceSharding)
    assert isinstance(made["l"][0].sharding, SingleDeviceSharding)


def test_a_sharding_for_each_name_leaves_the_others_where_jax_puts_them():
    made = Placer({"x": ROWS})({"x": np.zeros(2), "y": np.zeros(2)})
    assert made["x"].sharding == ROWS
    assert isinstance(made["y"].sharding, SingleDeviceSharding)


def test_what_is_ragged_cannot_be_cut():
    ragged = Ragged(np.zeros(3), np.array([0, 2, 3]))
    with pytest.raises(ValueError, match="column r: expected an array.* got a Ragged\nhint: `pad`"):
        Placer({"r": ROWS})({"r": ragged})


def test_a_sharding_that_does_not_suit_a_shape_is_told_with_the_column():
    pixels = NamedSharding(ROWS.mesh, PartitionSpec("data", None, None))
    with pytest.raises(ValueError, match="column label: .*can cut, got \\(2,\\)"):
        Placer(pixels)({"image": np.zeros((2, 3, 3)), "label": np.zeros(2)})
