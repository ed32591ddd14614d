import pathlib
import threading

import numpy as np
import pytest

from datum import Feature, Schema, SchemaError
from datum.format import RowEncoder, encode, parse
from datum.format.statistics import MAX_DISTINCT, Counts, Statistics
from datum.schema import ImageBytes, SchemaGuess


def test_a_schema_given_is_kept_and_enforced():
    schema = Schema({"x": Feature("int64"), "s": Feature("str", optional=True)})
    encoder = RowEncoder(schema)
    rows = [{"x": 1}, {"x": 2, "s": "a"}]
    block = encoder.encode(rows)
    assert block.framed.to_bytes() == encode(rows, schema).to_bytes()
    assert block.schema is schema
    assert encoder.guess is None
    with pytest.raises(SchemaError, match="record 0, feature 'x': expected int64"):
        encoder.encode([{"x": 0.5}])


def test_each_block_is_written_under_what_is_known_by_then():
    encoder = RowEncoder()
    schemas = [encoder.encode(rows).schema for rows in ([{"x": 1}], [{"x": 0.5}], [{"y": "a"}])]
    assert [dict(schema) for schema in schemas] == [
        {"x": Feature("int64")},
        {"x": Feature("float32")},
        {"x": Feature("float32", optional=True), "y": Feature("str", optional=True)},
    ]
    assert encoder.schema == schemas[-1]
    assert encoder.guess.records == 3


def test_rows_and_columns_may_alternate():
    encoder = RowEncoder()
    encoder.encode({"x": np.array([1, 2], np.int16)})
    block = encoder.encode([{"x": 3}])
    assert block.schema == Schema({"x": Feature("int64")})
    assert parse(block.framed, block.schema)["x"].tolist() == [3]


def test_the_rows_of_the_caller_stay_as_they_are():
    row = {"a": {"b": 1}}
    rows = [row]
    RowEncoder().encode(rows)
    assert rows == [{"a": {"b": 1}}]
    assert rows[0] is row


def test_an_encoder_may_go_on_from_a_guess():
    guess = SchemaGuess.from_schema(Schema({"x": Feature("float64")}), records=5)
    encoder = RowEncoder(guess=guess)
    assert encoder.encode([{"x": 1}]).schema == Schema({"x": Feature("float32")})
    with pytest.raises(ValueError, match="expected `schema` or `guess`, got both"):
        RowEncoder(Schema({}), guess=guess)


def test_values_are_out_of_reach_once_collected():
    row = {"s": bytearray(b"abc"), "v": np.array([1, 2]), "l": ["a" * 5000]}
    collected = RowEncoder().collect([row])
    row["s"][:] = b"xyz"
    row["v"][:] = 9
    row["l"].clear()
    assert len(collected) == 1
    found = parse(collected.encode().framed, collected.schema)
    assert found["s"].to_list() == [b"abc"]
    assert found["v"].tolist() == [[1, 2]]
    assert found["l"].to_list() == [["a" * 5000]]


def test_blocks_may_be_encoded_by_other_threads_while_more_are_collected():
    rows = [
        [{"x": n, "s": str(n), "f": n / 3} for n in range(k, k + 500)] for k in range(0, 5000, 500)
    ]
    encoder, wanted = RowEncoder(threads=2), RowEncoder(threads=1)
    found = [None] * len(rows)

    def work(at, collected):
        found[at] = collected.encode()

    threads = []
    for at, block in enumerate(rows):
        threads.append(threading.Thread(target=work, args=(at, encoder.collect(block))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    one, other = Statistics(), Statistics()
    for block, again in zip(found, map(wanted.encode, rows), strict=True):
        assert block.framed.to_bytes() == again.framed.to_bytes()
        one, other = one.merge(block.statistics), other.merge(again.statistics)
    assert one == other
    assert one.features["x"].counts == Counts({}, MAX_DISTINCT)


def test_pictures_come_as_the_bytes_of_their_files():
    encoder = RowEncoder()
    block = encoder.encode([{"x": ImageBytes(b"a")}, {"x": b"b"}])
    assert block.schema == Schema({"x": Feature("uint8", (None, None, None), encoding="image")})
    assert parse(block.framed, block.schema)["x"].to_list() == [b"a", b"b"]
    encoder = RowEncoder()
    encoder.encode([{"x": b"a"}])
    assert encoder.encode([{"x": b"b"}, {"x": ImageBytes(b"c")}]).schema == block.schema


@pytest.mark.parametrize(
    "schema", [None, Schema({"x": Feature("uint8", (1, 1, 1), encoding="image")})]
)
def test_a_picture_that_nobody_read_is_refused(schema):
    with pytest.raises(
        SchemaError, match="record 1, feature 'x': expected bytes, got .*Path"
    ) as caught:
        RowEncoder(schema).encode([{"x": ImageBytes(b"a")}, {"x": pathlib.Path("a.jpg")}])
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_blocks_of_no_rows():
    encoder = RowEncoder()
    assert len(encoder.encode([]).framed) == 0
    assert len(encoder.encode({}).framed) == 0
    block = encoder.encode([{}, {}])
    assert list(block.framed) == [b"\n\x00"] * 2
    assert block.statistics == Statistics(2, {})
    assert encoder.schema == Schema({})


def test_only_features_that_records_have_are_looked_at():
    encoder = RowEncoder()
    for first in range(0, 50, 10):
        block = encoder.encode([{"id": at, f"key {at}": at} for at in range(first, first + 10)])
        assert len(block.statistics.features) == 11  # not those of the blocks before
    assert len(encoder.schema) == 51
    assert not encoder.schema["id"].optional
    assert encoder.schema["key 0"] == encoder.schema["key 49"] == Feature("int64", optional=True)


def test_a_feature_that_comes_back_in_another_form_keeps_what_is_known_of_it():
    encoder = RowEncoder()
    encoder.encode([{"box": {"x": 0.5}, "id": 1}])
    encoder.encode([{"id": 2}])
    for row in ({"box": {"x": 3}, "id": 3}, {"box/x": 3, "id": 4}):
        block = encoder.encode([row])
        assert block.schema["box/x"] == Feature("float32", optional=True)
        assert parse(block.framed.records(), block.schema)["box/x"].values.tolist() == [3.0]
    with pytest.raises(SchemaError, match="feature 'box/x': expected float64, got str"):
        encoder.encode([{"box": {"x": "wide"}}])
