import dataclasses
import enum

import numpy as np
import pytest

from datum import Feature, Schema, SchemaError
from datum.format import RowEncoder, encode, parse
from datum.format.row_input import GivenPlan, GuessedPlan, collect_rows
from datum.schema import SchemaGuess


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: float


def guess_from(rows, guess=None):
    plan = GuessedPlan(guess or SchemaGuess(), {})
    sources = collect_rows(rows, plan)
    found = (guess or SchemaGuess()).copy()
    found.add_seen(plan.seen, len(rows))
    assert list(sources) == list(found.to_schema())
    return found.to_schema()


def test_rows_widen_the_guess_wherever_it_no_longer_fits():
    rows = [{"x": i, "l": [i], "s": "a"} for i in range(9)]
    rows[3] = {"x": 0.5, "l": [1, 2], "s": "b"}
    rows[5] = {"x": 1, "l": [], "new": b"c"}
    rows[7] = {"x": 0.1, "l": [3], "s": None, "new": b"d"}
    assert dict(guess_from(rows)) == {
        "x": Feature("float64"),
        "l": Feature("int64", (None,)),
        "s": Feature("str", optional=True),
        "new": Feature("bytes", optional=True),
    }


def test_keys_may_come_in_any_order_and_from_any_string():
    rows = [{"a": 1, "b": 2.5}, {"b": 3.5, "a": 4}, {"".join("a"): 5, "".join("b"): 0.5}]
    rows.append({np.str_("a"): 6, "b": 1.5})
    assert dict(guess_from(rows)) == {"a": Feature("int64"), "b": Feature("float64")}


def test_rows_that_are_not_plain_are_made_so_where_they_stand():
    rows = [{"c": "blue", "p/x": 1, "p/y": 0.5}, {"c": Color.RED, "p": Point(2, 1.5)}]
    assert dict(guess_from(rows)) == {
        "c": Feature("str"),
        "p/x": Feature("int64"),
        "p/y": Feature("float64"),
    }
    assert rows[1] == {"c": "red", "p/x": 2, "p/y": 1.5}


def test_a_row_that_is_no_dict_is_made_one_or_refused():
    assert dict(guess_from([{"x": 1, "y": 0.5}, Point(2, 1.5)]))["x"] == Feature("int64")
    with pytest.raises(
        SchemaError, match="record 1: expected a dict of values, got .*int"
    ) as caught:
        guess_from([{"x": 1}, 3])
    assert caught.value.record == 1


def test_integers_that_were_collected_count_as_negative():
    guess = SchemaGuess()
    plan = GuessedPlan(guess, {})
    collect_rows(
        [{"x": 1, "f": 0.1, "v": np.array([1, 2])}] * 3 + [{"x": -1, "f": -3, "v": [-1, 1]}], plan
    )
    for name in ("x", "f", "v"):
        assert plan.seen[name][0].has_negative, name


def test_a_huge_integer_after_negative_ones_is_refused_by_name():
    with pytest.raises(SchemaError, match="feature 'x': expected integers from 0 on"):
        guess_from([{"x": 1}, {"x": -1}, {"x": 3}, {"x": 2**63}])
    assert guess_from([{"x": 1}, {"x": 2**63}])["x"] == Feature("uint64")


def test_only_some_features_may_be_looked_for():
    guess = SchemaGuess()
    guess.add_rows([{"x": 1, "y": 2}])
    plan = GuessedPlan(guess, {}, only={"y"})
    collect_rows([{"y": 0.5}], plan)
    assert {name: guess.dtype for name, (guess, _) in plan.seen.items()} == {"y": "float64"}


def test_a_value_that_only_python_can_judge_is_gathered_there():
    schema = Schema({"x": Feature("float32"), "y": Feature("int64")})
    rows = [{"x": 1, "y": np.array(2)}, {"x": 2**30, "y": np.array([[1]])[0, 0]}]
    sources = collect_rows(rows, GivenPlan(schema))
    assert {name: len(parts) for name, parts in sources.items()} == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"x": 1, "z": 2}, "record 1: expected features x, y, got 'z' too"),
        ({"y": "a"}, "record 1, feature 'x': expected a value, got none"),
        ({"x": "a", "y": "a"}, "record 1, feature 'x': expected int64, got"),
        ({"x": 1, "y": "\ud800"}, "record 1, feature 'y': expected text that UTF-8 can hold"),
    ],
    ids=str,
)
def test_a_row_that_does_not_fit_a_schema_is_named(row, problem):
    schema = Schema({"x": Feature("int64"), "y": Feature("str", optional=True)})
    with pytest.raises(SchemaError, match=problem) as caught:
        collect_rows([{"x": 1}, row], GivenPlan(schema))
    assert caught.value.record == 1
    assert caught.value.feature is not None


def test_a_key_that_no_feature_has_may_be_none():
    schema = Schema({"x": Feature("int64")})
    assert list(collect_rows([{"x": 1, "z": None}], GivenPlan(schema))) == ["x"]


def test_keys_that_change_the_rows_when_compared_do_no_harm():
    rows: list[object] = []

    class Key(str):
        __slots__ = ()

        def __hash__(self):
            return hash("x")

        def __eq__(self, other):
            rows.clear()
            return str.__eq__(self, other)

    rows += [{"x": [1.5] * 1000}, {Key("x"): [2.5] * 1000}, {"x": [3.5] * 1000}]
    collect_rows(rows, GivenPlan(Schema({"x": Feature("float32", (None,))})))


def test_many_rows_that_are_not_plain_are_made_so_at_once():
    rows: list[dict[str, object]] = [{"c": Color.RED, "p": {"x": n}} for n in range(50)]
    assert dict(guess_from(rows)) == {"c": Feature("str"), "p/x": Feature("int64")}
    assert rows == [{"c": "red", "p/x": n} for n in range(50)]
    rows = [{"c": Color.RED} for _ in range(50)]
    rows[30] = {"c": {1}}
    with pytest.raises(SchemaError, match="record 30, feature 'c': expected ") as caught:
        guess_from(rows)
    assert caught.value.record == 30


@pytest.mark.parametrize(
    ("values", "is_uneven"),
    [
        ([[[1, 2], [3, 4]], [[5]], []], False),
        ([[[1, 2], [3, 4]], [[5], []]], True),
        ([np.ones((2, 3), int), np.ones((1, 2), int), []], False),
        ([[np.array([1]), np.array([2, 3])], np.ones((2, 2), int), [[4]]], True),
    ],
    ids=str,
)
def test_nested_rows_are_collected_with_their_lengths(values, is_uneven):
    rows = [{"x": [[7, 8]]}, {"x": [[7], [8]]}, *({"x": value} for value in values)]
    encoder = RowEncoder()
    block = encoder.encode(rows)
    assert block.schema == Schema({"x": Feature("int64", (None, None))})
    assert encoder.guess.features["x"].is_uneven == is_uneven
    found = parse(block.framed, block.schema)["x"].to_list()
    assert found == [np.asarray(row["x"], object).tolist() for row in rows[:2]] + [
        [list(map(int, inner)) for inner in value] for value in values
    ]


def test_a_nested_row_that_does_not_fit_leaves_no_trace():
    rows = [{"x": [[1], [2, 3]]}, {"x": [[4], [5, "a"]]}, {"x": [[6]]}]
    schema = Schema({"x": Feature("int64", (None, None))})
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected "):
        encode(rows, schema)
    widened = [{"x": [[1], [2, 3]]}, {"x": [[4], [5, 0.5]]}, {"x": [[6]]}, {"x": None}]
    block = RowEncoder().encode(widened)
    found = parse(block.framed, block.schema)["x"]
    assert found.to_list() == [[[1], [2, 3]], [[4], [5, 0.5]], [[6]], None]


def test_three_levels_of_rows():
    values = [[[["a"], []], [["b", "c"]]], [], [[]], [[[]]]]
    schema = Schema({"x": Feature("str", (None, None, None), optional=True)})
    rows = [{}, *({"x": value} for value in values)]
    assert parse(encode(rows, schema), schema)["x"].to_list() == [None, *values]


def test_arrays_that_are_alike_but_fit_no_feature_are_named():
    guess = SchemaGuess()
    guess.add_rows([{"x": np.complex64(1)}])
    for values in ([np.zeros(2, np.complex64)] * 2, [np.longdouble(1)] * 2):
        with pytest.raises(SchemaError, match="record 0, feature 'x': expected ") as caught:
            guess_from([{"x": value} for value in values], guess)
        assert caught.value.record == 0


def test_negative_integers_among_floats_never_join_uint64():
    rows = [{"x": 0.1}, {"x": np.uint64(1)}, {"x": 0.2}]
    assert guess_from(rows)["x"] == Feature("float64")
    with pytest.raises(SchemaError, match="feature 'x': expected integers from 0 on"):
        guess_from([*rows, {"x": -1}])


def test_rows_whose_features_all_differ_change_the_plan_a_few_times_only():
    rows = [{f"k{i}": i, "x": 1} for i in range(300)]
    plan = GuessedPlan(SchemaGuess(), {})
    asked = []
    features = plan.features
    plan.features = lambda: asked.append(1) or features()
    collect_rows(rows, plan)
    assert len(plan.seen) == 301
    assert len(asked) < 30


def test_a_row_that_contradicts_is_told_of_in_its_turn_among_rows_that_all_widen():
    rows = [{f"k{i}": i, "x": 1} for i in range(50)]
    rows[30]["x"] = "text"
    rows[40]["x"] = object()
    with pytest.raises(SchemaError, match="record 30, feature 'x'"):
        guess_from(rows)


def test_rows_that_all_widen_are_guessed_as_if_one_by_one():
    rows = [{f"k{i % 40}": i * (0.5 if i % 3 else -1), "x": [i] * (i % 4)} for i in range(100)]
    rows[50] = {"x": None, "color": Color.RED}
    whole = dict(guess_from([dict(row) for row in rows]))
    guess = SchemaGuess()
    for row in rows:
        plan = GuessedPlan(guess, {})
        collect_rows([dict(row)], plan)
        guess = guess.copy()
        guess.add_seen(plan.seen, 1)
    assert whole == dict(guess.to_schema())
