import numpy as np

from datum import Feature, Schema
from datum.columns import BytesColumn, Masked, Ragged
from datum.frameworks.tensorflow.transfer import BLOCK_BYTES, Buffers, Packer, as_stored


def test_text_is_parsed_as_bytes():
    schema = as_stored(Schema({"a": Feature("str", (None,)), "b": Feature("str", default="ö")}))
    assert schema["a"] == Feature("bytes", (None,))
    assert schema["b"] == Feature("bytes", default="ö".encode())


def test_columns_that_are_alike_make_one_piece():
    schema = Schema(
        {
            "a": Feature("float32"),
            "b": Feature("int64"),
            "c": Feature("float32", optional=True),
            "d": Feature("float32", (2,)),
            "e": Feature("bool"),
        }
    )
    packer = Packer(schema)
    assert [form.names for form in packer.forms] == [("a", "c"), ("b",), ("c_present", "e"), ("d",)]
    assert packer.names == ["a", "b", "c", "c_present", "d", "e"]
    assert (packer.numeric, packer.strings) == (4, 0)


def test_which_records_have_a_feature_is_a_column():
    packer = Packer(Schema({"a": Feature("int64", optional=True), "b": Feature("int64")}))
    present = np.array([True, False])
    found = packer.unmask({"a": Masked(np.array([1, 0]), present), "b": np.array([1, 2])})
    assert found["a"].tolist() == [1, 0]
    assert found["a_present"] is present
    assert packer.unmask({"a": np.array([1]), "b": np.array([2])})["a_present"].tolist() == [True]


def test_counts_come_first_and_every_piece_begins_with_a_block():
    schema = Schema({"x": Feature("int64"), "y": Feature("uint8"), "l": Feature("int64", (None,))})
    packer = Packer(schema)
    columns = {
        "x": np.array([7, 8, 9]),
        "y": np.array([1, 2, 3], np.uint8),
        "l": Ragged(np.arange(9), np.array([0, 9, 9, 9])),
    }
    flat, strings = packer.pack(columns, 3, Buffers())
    assert len(strings) == 0
    assert flat.ctypes.data % BLOCK_BYTES == 0
    items = [3, 3, 4, 9]  # of x, of y, of the splits, of the values
    blocks = [1, 1, 1, 2]
    assert flat.reshape(-1)[:9].tolist() == [3, *items, *blocks]
    assert packer.header_blocks == 2
    assert flat[2, :3].tolist() == [7, 8, 9]
    assert flat[3].view(np.uint8)[:3].tolist() == [1, 2, 3]
    assert flat[4, :4].tolist() == [0, 9, 9, 9]
    assert flat[5:].reshape(-1)[:9].tolist() == list(range(9))


def test_strings_of_all_columns_come_one_after_the_other():
    schema = Schema({"a": Feature("bytes"), "b": Feature("bytes", (2,))})
    buffer = b"catdogcow"
    columns = {
        "a": BytesColumn(buffer, np.array([0, 3])),
        "b": BytesColumn(buffer, np.array([3, 3, 6, 3]), shape=(1, 2)),
    }
    flat, strings = Packer(schema).pack(columns, 1, Buffers())
    assert strings.tolist() == [b"cat", b"dog", b"cow"]
    assert flat.reshape(-1)[:3].tolist() == [1, 1, 2]
    columns["b"] = BytesColumn.from_values([b"ant", b"bee"])
    assert Packer(schema).pack(columns, 1, Buffers())[1].tolist() == [b"cat", b"ant", b"bee"]
