"""Records chosen by a function of the user's."""

import numpy as np
import pytest

import datum
from datum._rewrite.reshard import filter_part
from datum._write.report import Progress
from datum.format import Parser
from tests.unit.rewrite.damaged import KINDS, write_kinds, write_numbers


@pytest.fixture(scope="module", params=[None, "gzip"])
def part(request, tmp_path_factory):
    """The records of a plain dataset, and of one that is compressed."""
    folder = tmp_path_factory.mktemp("kinds") / "kinds"
    write_kinds(folder, compression=request.param)
    return datum.load(folder)["train"]


def choose(split, where):
    (found,) = split.parts().values()
    made = filter_part(found, where, "train", Progress())
    if hasattr(made, "blocks"):
        return [block for block in made.blocks() if len(block)]
    return [made.read(np.arange(len(made)))] if len(made) else []


def test_a_record_is_what_the_split_gives(part):
    seen = []
    choose(part, lambda record: seen.append(dict(record)))
    assert len(seen) == len(part)
    for mine, theirs in zip(seen, part, strict=True):
        np.testing.assert_equal(
            {name: value for name, value in mine.items() if name != "sparse"},
            {name: value for name, value in theirs.items() if name != "sparse"},
        )


def test_a_record_is_a_mapping_of_all_features(part):
    names = []
    choose(part, lambda record: names.append((list(record), len(record), record.get("no", 7))))
    assert names[0] == (list(KINDS), len(KINDS), 7)


def test_the_records_that_are_left_are_counted_from_0_on(part):
    blocks = choose(part, lambda record: record["x"] % 7 == 0)
    assert np.concatenate([block.numbers for block in blocks]).tolist() == list(range(9))


def test_only_what_is_asked_for_is_parsed(part, monkeypatch):
    made = []
    real = Parser.__init__

    def note(self, schema):
        made.append(list(schema))
        real(self, schema)

    monkeypatch.setattr(Parser, "__init__", note)
    choose(part, lambda record: record["x"] > 3 and record["flag"])
    assert made == [["x"], ["flag"]]


def test_images_are_decoded_when_they_are_asked_for_and_no_others(part, monkeypatch):
    decoded = []
    real = datum.images.decode
    monkeypatch.setattr(datum.images, "decode", lambda *given: decoded.append(1) or real(*given))
    blocks = choose(part, lambda record: record["x"] < 5 and record["image"].ndim == 3)
    assert sum(map(len, blocks)) == len(decoded) == 5


def test_an_unknown_feature_is_told_with_the_nearest(part):
    with pytest.raises(datum.SchemaError, match=r"got 'nmae'\nhint: did you mean 'name'"):
        choose(part, lambda record: record["nmae"])


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (lambda record: 1 / (int(record["x"]) - 5), "record 5: .* got ZeroDivisionError"),
        (lambda record: record["pixels"] > 3, "record 0: .* got ValueError: The truth value"),
        (lambda record: {}["other"], "record 0: .* got KeyError: 'other'"),
    ],
)
def test_an_error_of_the_function_names_the_record(part, where, message):
    with pytest.raises(datum.DatumError, match=f"where: split 'train', {message}") as caught:
        choose(part, where)
    assert caught.value.__cause__ is not None


def test_a_repr_shows_the_values(tmp_path):
    write_numbers(tmp_path / "in", count=3)
    shown = []
    choose(datum.load(tmp_path / "in")["train"], lambda record: shown.append(repr(record)))
    assert shown[1] == "LazyRecord({'x': np.int64(1), 'text': 't1'})"
