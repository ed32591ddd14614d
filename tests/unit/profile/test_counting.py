"""What a profile counts: values, sizes, images, duplicates."""

import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import datum
import datum._inspect.profile
from datum import BytesColumn, Feature, Schema, Sparse
from datum._inspect.profile.counting import (
    Failure,
    HashedRecords,
    Piece,
    find_duplicates,
    hash_payloads,
    read_pieces,
)
from datum._inspect.profile.results import KINDS
from datum._inspect.profile.run import SMALL_RECORDS, class_names
from datum._inspect.profile.sketch import (
    MAX_COUNTED,
    MAX_LISTED,
    MAX_PIECES,
    MAX_POINTS,
    NumberTally,
    Sketch,
    ValueTally,
    bin_edges,
    tally_numbers,
    tally_strings,
    tally_values,
)
from datum._inspect.profile.tally import (
    LOOKED_AT,
    FeatureTally,
    ImageTally,
    holds_images,
    read_fields,
    tally_column,
    tally_images,
    tally_payloads,
)
from datum.format import Records, RecordWriter, encode, parse


def write_foreign(path, rows, schema):
    payloads = datum.format.RecordFile(encode(rows, schema).to_bytes())
    with RecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)


@pytest.mark.parametrize("sample", [None, 60])
def test_a_record_that_does_not_fit_the_schema_costs_its_neighbours_not_all(tmp_path, sample):
    one, two = datum.Schema({"x": datum.Feature("int64")}), {"x": datum.Feature("int64", (2,))}
    write_foreign(tmp_path / "train-a.tfrecord", [{"x": n} for n in range(100)], one)
    write_foreign(tmp_path / "train-b.tfrecord", [{"x": [n, n]} for n in range(100)], two)
    found = datum.profile(datum.load(tmp_path, schema=one), sample=sample, threads=1)
    (warning,) = [one for one in found.warnings if one.kind == "damage"]
    assert warning.text.startswith("train-b.tfrecord: record ")
    assert warning.text.endswith("feature 'x': expected 1 values, got 2")
    assert 0 < found.seen <= 100
    assert found.splits["train"].features["x"].numbers.count == found.seen


def test_each_shard_that_fails_is_told_once(tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", shards=2, progress=False)
    dataset = datum.load(tmp_path / "out")
    (tmp_path / "out" / "train-00000-of-00002.tfrecord").unlink()
    found = datum.profile(dataset, sample=200)
    assert [one.kind for one in found.warnings].count("damage") == 1


def test_an_error_while_counting_ends_the_threads(tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", shards=4, progress=False)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datum.profile(tmp_path / "out", progress=stop, threads=2)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "table"
    rng = np.random.default_rng(0)
    splits = {
        "train": [
            {"x": float(rng.normal()), "label": int(n % 3), "name": f"n{n}"} for n in range(300)
        ],
        "val": [{"x": 100.0 + n, "label": 0, "name": f"v{n}"} for n in range(100)],
    }
    datum.write(None, path, splits=splits, progress=False)
    return path


def test_every_split_and_feature_is_told(table):
    found = datum.profile(table)
    assert list(found.splits) == ["train", "val"]
    assert list(found.splits["val"].features) == ["x", "label", "name"]
    assert found.splits["val"].features["x"].numbers.lowest == 100
    assert (found.records, found.seen, found.is_complete) == (400, 400, True)
    assert (found.writer, found.version, found.compression) == ("datum", 1, None)


def test_all_splits_together_are_told_too(table):
    found = datum.profile(table).features
    assert found["label"].counts.values == ((0, 200), (1, 100), (2, 100))
    assert found["x"].numbers.highest == 199
    assert found["x"].numbers.count == 400


def test_of_samples_each_split_counts_as_much_as_it_has_records(table):
    found = datum.profile(table, sample=100).features["x"]
    assert sum(found.numbers.histogram.counts) == 400
    assert found.numbers.quantiles[0.5] < 100


def test_counts_of_a_sample_are_scaled_to_all_records(table):
    found = datum.profile(table, split="train", sample=30, columns=["name"])
    assert found.splits["train"].features["name"].counts.total == 30
    assert found.features["name"].counts.total == 300


def test_one_split_can_be_asked_for(table):
    found = datum.profile(table, split="val")
    assert list(found.splits) == ["val"]
    assert found.records == 100


def test_a_part_of_a_split_can_be_asked_for(table):
    found = datum.profile(table, split="train[:50%]")
    assert found.records == 150
    assert 0 < found.bytes < datum.load(table).splits["train"].bytes


def test_some_features_can_be_asked_for(table):
    assert list(datum.profile(table, columns=["name"]).features) == ["name"]
    with pytest.raises(datum.SchemaError, match="did you mean 'label'"):
        datum.profile(table, columns=["labl"])


@pytest.mark.parametrize("sample", [0, -1, True, 1.5, "fast"])
def test_a_sample_is_a_number_of_records(table, sample):
    with pytest.raises(ValueError, match="expected `sample` of 1 or more"):
        datum.profile(table, sample=sample)


def test_results_do_not_depend_on_the_number_of_threads(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=100_000), "n": rng.integers(0, 9, 100_000)}
    datum.write(columns, tmp_path / "out", shards=3, progress=False)
    first, second = (datum.profile(tmp_path / "out", threads=n).to_json() for n in (1, 4))
    first["seconds"] = second["seconds"] = 0
    assert json.dumps(first) == json.dumps(second)


def test_progress_is_told_up_to_the_end(table):
    calls = []
    datum.profile(table, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (400, 400)
    assert calls == sorted(calls)
    calls.clear()
    datum.profile(table, sample=30, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (60, 60)


def test_a_quick_look_sees_all_of_what_is_small(table):
    assert datum.profile(table, sample="quick").is_complete


def test_a_quick_look_sees_some_of_what_is_large(tmp_path):
    datum.write({"x": np.arange(SMALL_RECORDS + 1)}, tmp_path / "out", progress=False)
    found = datum.profile(tmp_path / "out", sample="quick")
    assert found.seen == 4096
    assert not found.is_complete


def test_a_quick_look_at_large_records_reads_few_of_them(tmp_path):
    blobs = [bytes([n]) * 2**21 for n in range(40)]
    datum.write({"x": blobs}, tmp_path / "out", progress=False)
    found = datum.profile(tmp_path / "out", sample="quick")
    assert 20 <= found.seen <= 32


def test_what_records_lack_shows_although_there_is_a_default(tmp_path):
    schema = {"x": datum.Feature("int64", default=7)}
    datum.write([{"x": 1}, {}], tmp_path / "out", schema=schema, progress=False)
    found = datum.profile(tmp_path / "out").features["x"]
    assert (found.present, found.missing) == (1, 1)


def test_records_of_no_features_are_told_by_their_bytes(tmp_path):
    with datum.format.RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"some text")
    found = datum.profile(datum.load(tmp_path / "a.tfrecord", schema={}))
    assert found.features == {}
    assert found.splits["train"].payloads.kind == "text"


def test_small_sound_datasets_have_no_warnings(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    digits, iris = datasets.load_digits(), datasets.load_iris(as_frame=True)
    splits = {"train": 0.9, "val": 0.1}
    columns = {"image": digits.images, "label": digits.target}
    datum.write(columns, tmp_path / "digits", splits=splits, progress=False)
    datum.write(iris.frame, tmp_path / "iris", progress=False)
    assert datum.profile(tmp_path / "digits").warnings == ()
    assert datum.profile(tmp_path / "iris").warnings == ()


def write(path, records=1000, **options):
    datum.write({"x": np.arange(records)}, path, shuffle=False, progress=False, **options)
    return datum.load(path)["train"]


def numbers_of(split, sample):
    found = list(read_pieces(split, sample))
    assert all(isinstance(piece, Piece) for piece in found)
    return np.concatenate([piece.numbers for piece in found])


def values_of(split, pieces):
    parsed = [datum.format.parse(piece.records, split.schema)["x"] for piece in pieces]
    return np.concatenate(parsed)


def test_all_records_come_in_order(tmp_path):
    split = write(tmp_path / "out", shards=3)
    assert numbers_of(split, None).tolist() == list(range(1000))


@pytest.mark.parametrize("sample", [1, 2, 31, 100, 999])
def test_a_sample_has_as_many_records_as_asked_for_from_all_over(tmp_path, sample):
    split = write(tmp_path / "out", shards=3)
    numbers = numbers_of(split, sample)
    assert len(numbers) == sample == len(set(numbers.tolist()))
    if sample > 1:
        assert numbers[0] == 0
        assert numbers[-1] == 999


def test_records_and_numbers_belong_together(tmp_path):
    split = write(tmp_path / "out", shards=4)
    pieces = list(read_pieces(split, 100))
    assert values_of(split, pieces).tolist() == numbers_of(split, 100).tolist()


def test_a_sample_is_one_piece(tmp_path):
    assert len(list(read_pieces(write(tmp_path / "out", shards=3), 500))) == 1


def test_a_sample_larger_than_the_split_is_all_of_it(tmp_path):
    assert len(numbers_of(write(tmp_path / "out"), 5000)) == 1000


@pytest.mark.parametrize("sample", [None, 90])
def test_parts_of_splits_can_be_looked_at(tmp_path, sample):
    split = write(tmp_path / "out", shards=3)[250:750]
    pieces = list(read_pieces(split, sample))
    values = values_of(split, pieces)
    assert (values.min(), values.max()) == (250, 749)
    assert (values - 250).tolist() == np.concatenate([p.numbers for p in pieces]).tolist()


def test_of_compressed_shards_the_starts_are_read(tmp_path):
    split = write(tmp_path / "out", shards=4, compression="gzip")
    pieces = list(read_pieces(split, 40))
    assert values_of(split, pieces).tolist() == [
        *range(10),
        *range(250, 260),
        *range(500, 510),
        *range(750, 760),
    ]


def test_a_part_of_a_compressed_shard_can_be_looked_at(tmp_path):
    split = write(tmp_path / "out", compression="gzip")[400:500]
    assert values_of(split, read_pieces(split, None)).tolist() == list(range(400, 500))


def test_files_of_others_are_sampled_too(tmp_path):
    schema = datum.Schema({"x": datum.Feature("int64")})
    rows = [{"x": number} for number in range(300)]
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        for payload in datum.format.RecordFile(datum.format.encode(rows, schema).to_bytes()):
            writer.write(payload)
    split = datum.load(tmp_path / "a.tfrecord")["train"]
    assert values_of(split, read_pieces(split, 50)).tolist() == numbers_of(split, 50).tolist()


def test_a_shard_that_is_gone_is_told_of_and_passed_by(tmp_path):
    split = write(tmp_path / "out", shards=2)
    (tmp_path / "out" / "train-00000-of-00002.tfrecord").unlink()
    found = list(read_pieces(split, None))
    assert isinstance(found[0], Failure)
    assert found[0].shard == "train-00000-of-00002.tfrecord"
    assert "no such file" in found[0].text
    assert str(tmp_path) not in found[0].text
    assert values_of(split, found[1:]).tolist() == list(range(500, 1000))


def result(values):
    return tally_numbers(np.asarray(values)).result(is_exact=True)


def test_numbers_are_told_by_extremes_mean_and_spread():
    values = np.random.default_rng(0).normal(5, 2, 1000)
    found = result(values)
    assert (found.count, found.lowest, found.highest) == (1000, values.min(), values.max())
    assert found.mean == pytest.approx(values.mean())
    assert found.std == pytest.approx(values.std())
    assert found.quantiles[0.5] == pytest.approx(np.median(values))
    assert sum(found.histogram.counts) == 1000


def test_what_is_not_finite_is_counted_apart():
    found = result(np.array([1.0, np.nan, np.inf, -np.inf, 0.0, np.nan]))
    assert (found.count, found.nan, found.infinite, found.zeros) == (2, 2, 2, 1)
    assert (found.lowest, found.highest) == (0.0, 1.0)


def test_nothing_but_nan_has_no_range():
    found = result(np.array([np.nan, np.nan]))
    assert (found.count, found.nan, found.lowest, found.histogram) == (0, 2, None, None)


def test_parts_together_are_as_the_whole():
    values = np.random.default_rng(1).normal(1e6, 1, 3000)
    whole = tally_numbers(values)
    parts = NumberTally()
    for part in np.array_split(values, 11):
        parts = parts.merge(tally_numbers(part))
    assert parts.mean == pytest.approx(whole.mean, rel=1e-12)
    assert parts.squares == pytest.approx(whole.squares, rel=1e-9)
    assert (parts.lowest, parts.highest) == (whole.lowest, whole.highest)


def test_large_arrays_are_counted_in_pieces():
    values = np.arange(2**19 + 5, dtype=np.float32)
    found = result(values)
    assert found.mean == pytest.approx(values.mean(dtype=np.float64))
    assert found.count == len(values)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64", "float16", "float32", "bool"])
def test_every_type_of_numbers_is_counted(dtype):
    found = result(np.array([0, 1, 1], dtype))
    assert (found.count, found.lowest, found.highest, found.zeros) == (3, 0, 1, 1)
    assert found.mean == pytest.approx(2 / 3)


def test_times_are_counts_of_their_unit_and_no_time_is_no_number():
    found = result(np.array(["1970-01-03", "NaT", "1970-01-01"], "datetime64[D]"))
    assert (found.count, found.lowest, found.highest, found.nan) == (2, 0, 2, 1)


def test_complex_numbers_are_told_by_their_size():
    found = result(np.array([3 + 4j, 0j]))
    assert (found.lowest, found.highest) == (0.0, 5.0)


def test_sums_that_overflow_have_no_mean_and_raise_nothing():
    found = result(np.array([1.7e308, -1.7e308, 1.7e308, 1.7e308]))
    assert found.std is None
    assert all(map(math.isfinite, found.histogram.edges))
    assert sum(found.histogram.counts) == 4


def test_integers_that_no_float_holds_keep_their_extremes():
    found = result(np.array([2**64 - 1, 2**63 + 1], np.uint64))
    assert (found.lowest, found.highest) == (2**63 + 1, 2**64 - 1)


@pytest.mark.parametrize("span", [1, 2, 15, 31, 40, 41, 53, 100, 365, 391, 1000, 1_000_003])
def test_bins_of_integers_hold_equally_many_but_for_the_last(span):
    edges = bin_edges(5, 4 + span, is_integer=True)
    widths = np.diff(edges)
    assert edges[0] == 5
    assert edges[-1] == 5 + span
    assert len(set(widths[:-1].tolist())) <= 1
    assert 0 < widths[-1] <= widths[0]
    assert len(widths) <= 40


def test_floats_that_are_whole_are_binned_as_integers_are():
    found = result(np.tile(np.arange(17.0), 3))
    assert found.histogram.counts == (3,) * 17


def test_one_value_is_one_bin():
    assert result(np.full(5, 2.5)).histogram.counts == (5,)
    assert result(np.full(5, 2)).histogram.counts == (5,)


def test_a_split_that_was_sampled_counts_as_much_as_it_has_records():
    tally = tally_numbers(np.array([0, 10])).scaled(50).merge(tally_numbers(np.full(100, 10)))
    assert tally.count == 200
    assert tally.mean == pytest.approx(7.5)


def counted(values, names=None):
    return tally_values(np.asarray(values), is_scalar=True).result(names or {}, is_exact=True)


def test_values_come_by_frequency_and_then_by_size():
    found = counted([3, 1, 3, 2, 10])
    assert found.values == ((3, 2), (1, 1), (2, 1), (10, 1))
    assert (found.distinct, found.total) == (4, 5)
    assert found.is_complete
    assert found.is_exact


def test_classes_have_their_names():
    found = counted([0, 1, 1], {0: "cat", 1: "dog", 2: "emu"})
    assert [found.name_of(value) for value, _ in found.values] == ["dog", "cat"]


def test_parts_of_values_together_are_as_the_whole():
    values = np.random.default_rng(0).integers(0, 50, 3000)
    parts = ValueTally()
    for part in np.array_split(values, 7):
        parts = parts.merge(tally_values(part, is_scalar=True))
    assert parts.result({}, is_exact=True).values == counted(values).values


def test_many_values_are_estimated():
    values = np.arange(200_000).reshape(20, -1)
    tally = ValueTally()
    for part in values:
        tally = tally.merge(tally_values(part, is_scalar=True))
    found = tally.result({}, is_exact=True)
    assert not found.is_counted
    assert not found.is_complete
    assert found.distinct == pytest.approx(200_000, rel=0.12)
    assert len(tally.counts) <= MAX_COUNTED


def test_of_many_texts_the_frequent_ones_are_kept():
    texts = [f"rare {n}" for n in range(30_000)]
    texts[::10] = ["often"] * len(texts[::10])
    tally = ValueTally()
    for start in range(0, len(texts), 5000):
        tally = tally.merge(tally_strings(texts[start : start + 5000], is_scalar=True))
    found = tally.result({}, is_exact=True)
    assert found.values[0][0] == "often"
    assert 3000 - 10 <= found.values[0][1] <= 3000
    assert found.distinct == pytest.approx(27_001, rel=0.12)


def test_ids_are_not_listed():
    tally = tally_values(np.arange(MAX_COUNTED + 1), is_scalar=True)
    tally = tally.merge(tally_values(np.arange(10), is_scalar=True))
    assert tally.is_abandoned
    assert tally.result({}, is_exact=True).values == ()


def test_a_result_lists_only_so_many():
    found = counted(np.arange(MAX_LISTED + 5))
    assert len(found.values) == MAX_LISTED
    assert found.distinct == MAX_LISTED + 5
    assert not found.is_complete


def test_measured_floats_are_not_counted_and_chosen_ones_are():
    measured = np.random.default_rng(0).normal(size=1000)
    assert tally_values(measured, is_scalar=True) is None
    found = counted(np.array([0.5, 1.0, np.nan, 0.5]))
    assert found.values == ((0.5, 2), (1.0, 1))
    assert found.total == 3


def test_neighbours_that_are_equal_are_counted():
    assert tally_values(np.array([1, 1, 1, 2, 2]), is_scalar=True).repeated == 0.75
    assert tally_strings(["a", "b", "b"], is_scalar=True).repeated == 0.5
    assert tally_values(np.array([1, 1]), is_scalar=False).repeated is None
    assert tally_values(np.array([1]), is_scalar=True).repeated is None


def test_bytes_are_counted_as_they_are():
    found = tally_strings([b"\xff", b"\xff", b"a"], is_scalar=True).result({}, is_exact=True)
    assert found.values == ((b"\xff", 2), (b"a", 1))
    assert found.name_of(b"\xff") == "\\xff"


def test_truth_values_stay_such():
    assert counted(np.array([True, False, True])).values == ((True, 2), (False, 1))


def labels_of(path, rows, **options):
    datum.write(rows, path, progress=False, **options)
    found = datum.profile(path)
    return [name for name, one in found.features.items() if one.is_label]


@pytest.mark.parametrize("name", ["label", "Labels", "class", "image/object/class/label", "y"])
def test_a_label_is_told_by_its_name(tmp_path, name):
    rows = [{name: n % 3, "other": n % 2} for n in range(30)]
    assert labels_of(tmp_path / "out", rows) == [name]


def test_numbers_and_ids_are_no_labels(tmp_path):
    rows = [{"label": n, "class": n / 7, "shelf": n % 3} for n in range(30)]
    assert labels_of(tmp_path / "out", rows) == []


def test_the_one_text_of_few_values_is_a_label(tmp_path):
    rows = [{"v1": "ham" if n % 4 else "spam", "v2": f"text {n}"} for n in range(40)]
    assert labels_of(tmp_path / "out", rows) == ["v1"]


def test_two_texts_of_few_values_are_none(tmp_path):
    rows = [{"sex": "fm"[n % 2], "shirt": "sml"[n % 3], "n": n} for n in range(40)]
    assert labels_of(tmp_path / "out", rows) == []


def test_names_of_classes_come_from_the_metadata():
    assert class_names({"class_names": ["cat", "dog"]}) == {0: "cat", 1: "dog"}
    assert class_names({"vocabulary": ["cat"]}) == {}
    assert class_names({"class_names": None}) == {}


def test_every_kind_is_told_somewhere_and_every_kind_told_is_listed():
    told = set()
    for path in Path(datum._inspect.profile.__file__).parent.glob("*warnings.py"):
        told |= set(re.findall(r'ProfileWarning\(\s*"([a-z-]+)"', path.read_text()))
    assert told == set(KINDS)


def look(*payloads):
    return tally_payloads(Records.of(payloads)).result(is_exact=True)


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"a line of text", "text"),
        ("große Töne\n".encode(), "text"),
        (b'{"a": [1, 2]}', "json"),
        (b"{not json", "text"),
        (b"\xff\xd8\xff\xe0rest", "jpeg"),
        (b"\x08\x96\x01\x12\x02hi", "protobuf"),
        (bytes(range(256)), "bytes"),
        (b"", "empty"),
    ],
)
def test_payloads_are_told_by_their_bytes(payload, kind):
    assert look(payload, payload).kind == kind


def test_fields_of_messages_are_counted():
    found = look(b"\x08\x01\x12\x02hi", b"\x08\x02\x1d\x00\x00\x80\x3f")
    assert found.fields == (
        (1, "varint", 2, "1"),
        (2, "text", 1, "'hi'"),
        (3, "32-bit", 1, "0000803f"),
    )
    assert found.seen == 2


def test_every_type_of_field_is_known():
    message = b"\x08\x05" + b"\x11" + bytes(8) + b"\x1d" + bytes(4) + b"\x22\x02\x08\x01\x2a\x00"
    kinds = {number: kind for number, (kind, _, _) in read_fields(message).items()}
    assert kinds == {1: "varint", 2: "64-bit", 3: "32-bit", 4: "message", 5: "empty"}


@pytest.mark.parametrize("payload", [b"\x12\x7f", b"\x08", b"\x0b", b"\x00\x01", b"\xff" * 12])
def test_what_is_no_message_has_no_fields(payload):
    assert read_fields(payload) == {}


def test_messages_nested_without_end_do_no_harm():
    payload = b"\x08\x01"
    for _ in range(3000):
        payload = b"\x0a" + varint(len(payload)) + payload
    assert read_fields(payload)[1][0] == "message"


def varint(number):
    data = b""
    while number >= 128:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def test_only_some_payloads_are_looked_into_and_all_are_measured():
    found = look(*[b"text"] * (LOOKED_AT + 10), b"a longer text")
    assert found.seen == LOOKED_AT
    assert (found.sizes.count, found.sizes.highest) == (LOOKED_AT + 11, 13)


def test_the_first_payload_is_glimpsed_at():
    assert look(b"first", b"second").first == b"first"
    assert len(look(b"x" * 1000).first) == 64


def encoded(kind, size=(30, 20), mode="RGB"):
    file = io.BytesIO()
    Image.new(mode, size).save(file, kind)
    return file.getvalue()


def image_result(images):
    return tally_images(BytesColumn.from_values(images)).result(is_exact=True)


def test_images_are_told_by_their_headers():
    found = image_result([encoded("JPEG"), encoded("PNG", (7, 5), "L"), encoded("PNG", (9, 5))])
    assert found.formats == {"png": 2, "jpeg": 1}
    assert found.channels == {3: 2, 1: 1}
    assert (found.width.lowest, found.width.highest) == (7, 30)
    assert (found.height.lowest, found.height.highest) == (5, 20)
    assert found.pixels.highest == 600
    assert found.unreadable == 0


@pytest.mark.parametrize("kind", ["GIF", "BMP", "WEBP", "TIFF"])
def test_other_formats_are_known_too(kind):
    assert image_result([encoded(kind)]).formats == {kind.lower(): 1}


def test_what_is_no_image_is_counted():
    found = image_result([encoded("PNG"), b"none", b"", encoded("PNG")[:20]])
    assert found.unreadable == 3
    assert found.width.count == 1


def test_a_header_behind_much_else_is_found():
    plain = encoded("JPEG")
    comment = b"\xff\xfe" + (50_000).to_bytes(2, "big") + bytes(49_998)
    found = image_result([plain[:2] + comment + plain[2:]])
    assert found.formats == {"jpeg": 1}


def test_byte_strings_that_start_as_images_do_hold_images():
    assert holds_images(BytesColumn.from_values([b"", encoded("PNG")]))
    assert not holds_images(BytesColumn.from_values([b"", b"text"]))
    assert not holds_images(BytesColumn(b"", np.empty((0, 2), np.int64)))


def test_parts_of_images_together_are_as_the_whole():
    tally = ImageTally()
    for size in ((3, 4), (5, 6)):
        tally = tally.merge(tally_images(BytesColumn.from_values([encoded("PNG", size)])))
    found = tally.scaled(10).result(is_exact=True)
    assert found.formats == {"png": 20}
    assert (found.pixels.lowest, found.pixels.highest) == (12, 30)


def hashed(*payloads, numbers=None, is_all=True):
    records = Records.of(payloads)
    numbers = np.arange(len(payloads)) if numbers is None else np.array(numbers)
    return HashedRecords(hash_payloads(records), numbers, is_all)


def test_records_that_differ_are_no_duplicates():
    assert find_duplicates({"train": hashed(b"a", b"b"), "val": hashed(b"c")}) == ()


def test_copies_within_a_split_are_counted_without_the_first():
    (found,) = find_duplicates({"train": hashed(b"a", b"b", b"a", b"a")})
    assert (found.split, found.other, found.records) == ("train", "train", 2)
    assert found.examples == ((2, 0), (3, 2))


def test_the_first_copies_of_a_split_are_the_examples():
    payloads = [b"%d" % (n % 50) for n in range(100)]
    (found,) = find_duplicates({"train": hashed(*payloads)})
    assert found.records == 50
    assert found.examples == ((50, 0), (51, 1), (52, 2), (53, 3), (54, 4))


def test_records_of_two_splits_are_found_with_their_twins():
    (found,) = find_duplicates({"train": hashed(b"a", b"b", b"c"), "val": hashed(b"x", b"c")})
    assert (found.split, found.other, found.records) == ("val", "train", 1)
    assert found.examples == ((1, 2),)


def test_numbers_are_those_of_the_records_that_were_looked_at():
    splits = {
        "train": hashed(b"a", numbers=[700], is_all=False),
        "val": hashed(b"a", numbers=[30]),
    }
    (found,) = find_duplicates(splits)
    assert found.examples == ((30, 700),)
    assert not found.is_exact


def test_splits_without_records_share_nothing():
    assert find_duplicates({"train": hashed(), "val": hashed(b"a")}) == ()
    assert find_duplicates({"train": hashed(b"a"), "val": hashed()}) == ()


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


SHARES = [0.05, 0.25, 0.5, 0.75, 0.95]


def merged(parts):
    sketch = Sketch()
    for part in parts:
        sketch = sketch.merge(Sketch.of(part))
    return sketch


def test_few_values_are_described_exactly():
    values = np.random.default_rng(0).normal(size=5000)
    sketch = merged(np.array_split(values, 7))
    assert np.allclose(sketch.quantiles(SHARES), np.quantile(values, SHARES))
    edges = np.linspace(values.min(), values.max(), 33)
    assert sketch.histogram(edges).tolist() == np.histogram(values, edges)[0].tolist()


@pytest.mark.parametrize("pieces", [40, 200])
def test_ranks_of_many_values_are_right_to_a_fraction_of_a_percent(pieces):
    values = np.random.default_rng(1).lognormal(size=pieces * 8192)
    sketch = merged(np.array_split(values, pieces))
    found = sketch.quantiles(SHARES)
    ranks = np.searchsorted(np.sort(values), found) / len(values)
    assert np.abs(ranks - SHARES).max() < 0.003


def test_memory_is_bounded():
    sketch = merged(np.random.default_rng(2).normal(size=(300, 8192)))
    assert len(sketch.parts) <= MAX_PIECES
    assert sum(len(points) for points, _ in sketch.parts) <= MAX_POINTS


def test_the_weight_of_all_points_is_the_number_of_values():
    sketch = merged(np.random.default_rng(3).normal(size=(100, 8192)))
    total = sum(len(points) * weight for points, weight in sketch.parts)
    assert total == pytest.approx(100 * 8192)


def test_of_a_large_array_some_values_are_drawn_from_all_over():
    values = np.arange(4 * MAX_POINTS)
    sketch = Sketch.of(values)
    assert len(sketch.parts[0][0]) == MAX_POINTS
    assert sketch.quantiles([0.5])[0] == pytest.approx(2 * MAX_POINTS, rel=0.02)


def test_sorted_input_is_no_trap():
    values = np.arange(50 * 8192, dtype=np.float64)
    sketch = merged(np.array_split(values, 50))
    assert np.allclose(sketch.quantiles(SHARES) / len(values), SHARES, atol=0.003)


def test_scaled_values_count_more_beside_others():
    sketch = Sketch.of(np.zeros(10)).scaled(9).merge(Sketch.of(np.ones(10)))
    assert sketch.quantiles([0.8])[0] == 0
    assert sketch.histogram(np.array([0.0, 0.5, 1.0])).tolist() == [90, 10]


def test_nothing_has_no_quantiles():
    assert np.isnan(Sketch.of(np.empty(0)).quantiles([0.5])).all()
