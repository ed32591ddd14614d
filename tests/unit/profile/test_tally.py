import numpy as np
import pytest

from datum import Feature, Schema, Sparse
from datum._inspect.profile.tally import FeatureTally, tally_column
from datum.format import encode, parse


def profiled(feature, values, **options):
    schema = Schema({"x": feature})
    rows = [{} if value is None else {"x": value} for value in values]
    column = parse(encode(rows, schema), schema)["x"]
    tally = tally_column(feature, column, has_classes=options.pop("has_classes", False))
    return tally.result(feature, options.pop("names", {}), is_exact=True)


def test_scalars_have_a_range_and_values():
    found = profiled(Feature("int64"), [1, 2, 2])
    assert found.numbers.highest == 2
    assert found.counts.values == ((2, 2), (1, 1))
    assert found.lengths is None


def test_what_records_lack_is_counted_and_not_taken_for_zero():
    found = profiled(Feature("float32", optional=True), [1.0, None, 3.0, None])
    assert (found.present, found.missing, found.missing_share) == (2, 2, 0.5)
    assert found.numbers.lowest == 1
    assert found.numbers.zeros == 0


def test_a_feature_that_no_record_has_is_told_so():
    found = profiled(Feature("int64", optional=True), [None, None])
    assert (found.present, found.missing, found.numbers) == (0, 2, None)


def test_rows_of_differing_length_have_lengths():
    found = profiled(Feature("int64", (None,)), [[1, 2], [], [7]])
    assert (found.lengths.lowest, found.lengths.highest, found.lengths.mean) == (0, 2, 1)
    assert found.numbers.highest == 7
    assert found.counts.distinct == 3


def test_nested_rows_are_counted_by_their_outermost_length():
    found = profiled(Feature("float32", (None, None)), [[[1.0], [2.0, 3.0]], []])
    assert (found.lengths.lowest, found.lengths.highest) == (0, 2)
    assert found.numbers.count == 3


def test_many_integers_a_record_are_no_labels_unless_their_classes_have_names():
    rows = [list(range(100))] * 3
    assert profiled(Feature("int64", (None,)), rows).counts is None
    found = profiled(Feature("int64", (None,)), rows, has_classes=True, names={0: "a"})
    assert found.counts.distinct == 100


def test_pixels_are_numbers_and_no_values():
    found = profiled(Feature("uint8", (2, 2), encoding="raw"), [np.eye(2, dtype=np.uint8)] * 3)
    assert found.counts is None
    assert (found.numbers.count, found.numbers.zeros) == (12, 6)


def test_tensors_of_several_shapes_are_counted():
    feature = Feature("float64", (None, None))
    found = profiled(
        Feature(feature.dtype, feature.shape, encoding="raw"), [np.ones((2, 3)), np.zeros((1, 1))]
    )
    assert found.numbers.count == 7
    assert (found.lengths.lowest, found.lengths.highest) == (1, 2)


def test_sparse_features_tell_how_much_of_them_is_filled():
    two = Sparse(np.array([[1], [3]]), np.array([1.0, 5.0]), (10,))
    rows = [two, Sparse(np.empty((0, 1), np.int64), np.empty(0), (10,))]
    found = profiled(Feature("float32", (10,), encoding="sparse"), rows)
    assert found.filled == pytest.approx(0.1)
    assert (found.lengths.lowest, found.lengths.highest) == (0, 2)


def test_texts_are_told_by_size_values_and_examples():
    found = profiled(Feature("str"), ["a", "", "große", "a"])
    assert (found.sizes.lowest, found.sizes.highest, found.empty) == (0, 6, 1)
    assert found.counts.values[0] == ("a", 2)
    assert found.examples == ("a", "große")


def test_long_texts_are_shortened_and_not_counted():
    found = profiled(Feature("str"), ["é" * 5000])
    assert found.counts is None
    assert found.examples == ("é" * 128,)


def test_bytes_that_hold_images_are_told_as_images():
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x03\x08\x02\x00\x00\x00"
    found = profiled(Feature("bytes"), [png, png])
    assert found.images.formats == {"png": 2}
    assert (found.images.width.highest, found.images.height.highest) == (2, 3)
    assert found.counts is None


def test_counts_of_a_part_that_could_not_be_counted_are_dropped():
    short = tally_column(Feature("str"), parsed(["a"]), has_classes=False)
    long = tally_column(Feature("str"), parsed(["x" * 5000]), has_classes=False)
    assert short.merge(long).values is None
    assert FeatureTally().merge(short).values is not None
    assert short.merge(FeatureTally(0, 3)).missing == 3


def parsed(texts):
    schema = Schema({"x": Feature("str")})
    return parse(encode([{"x": text} for text in texts], schema), schema)["x"]
