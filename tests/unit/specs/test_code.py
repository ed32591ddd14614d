"""Code that reads a dataset without Datum."""

from __future__ import annotations

import ast
import importlib.util
import pickle
import runpy
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datum
from datum import Feature, Sparse, specs
from datum.specs.code import (
    MAX_LINE,
    Call,
    Choice,
    join_parts,
    list_files,
    literal,
    quote,
    quote_files,
    render,
    render_dict,
    render_list,
)
from datum.specs.tensorflow_code import (
    FeatureCode,
    FeatureRequest,
    needs_single_records,
    read_feature,
)
from tests.unit.specs.kinds import CONTEXT, IMAGES, SEQUENCES, write_kinds


@given(st.text())
def test_a_quoted_text_is_read_as_itself(text: str) -> None:
    assert ast.literal_eval(quote(text)) == text
    assert "\n" not in quote(text)


def test_double_quotes_are_taken_where_they_can_be() -> None:
    assert quote("it's") == '"it\'s"'
    assert quote('say "a"') == "'say \"a\"'"


def test_literals_are_read_as_themselves() -> None:
    for value in (1, -2.5, True, b"\x00", "a", [[1, 2], []]):
        assert ast.literal_eval(literal(value)) == value
    assert literal((1, 2)) == "[1, 2]"
    assert eval(literal([float("inf"), -float("inf")])) == [float("inf"), -float("inf")]


def test_a_long_call_is_broken_into_lines_that_fit() -> None:
    inner = Call("g(", tuple(f"argument_{i}" for i in range(12)))
    text = render(Call("f(", ("x", inner, Choice("a" * 60, "condition", "b" * 60))), indent=4)
    assert max(map(len, text.splitlines())) <= MAX_LINE
    assert text.startswith("f(\n        x,\n        g(\n")
    ast.parse(text.replace("\n    ", "\n"))
    assert render(Call("f(", ("x", "y")), indent=4) == "f(x, y)"


def test_a_dict_has_an_entry_a_line_and_notes_above_them() -> None:
    assert render_dict({}) == "{}"
    text = render_dict({"a": "1", "b": Call("f(", ("2",))}, notes={"b": "a note"})
    assert text == '{\n    "a": 1,\n    # a note\n    "b": f(2),\n}'


def test_functions_have_two_blank_lines_around_them() -> None:
    assert join_parts(["import x", "def f():\n    pass", "y = 1"]) == (
        "import x\n\n\ndef f():\n    pass\n\n\ny = 1\n"
    )


def test_files_are_listed_or_found_by_patterns() -> None:
    assert list_files("a.tfrecord") == ('["a.tfrecord"]', False)
    assert list_files(["a", "b"]) == ('["a", "b"]', False)
    found, calls_glob = list_files(["a-*", "b"])
    assert calls_glob
    assert found == '[file for pattern in ("a-*", "b") for file in sorted(glob(pattern))]'
    with pytest.raises(ValueError, match="expected paths or patterns"):
        quote_files([])


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a[b]*c.tfrecord"
    path.write_bytes(b"")
    assert quote_files(str(path)) == ([f'"{path}"'], False)


def test_a_long_list_is_filled_line_by_line() -> None:
    assert render_list(["1", "2"], indent=4) == "[1, 2]"
    items = [quote(f"class {i}") for i in range(100)]
    text = render_list(items, indent=4)
    assert ast.literal_eval(text) == [f"class {i}" for i in range(100)]
    assert max(map(len, text.splitlines())) <= MAX_LINE
    assert len(text.splitlines()) < 20


class Recorded:
    """A call and its arguments, as nested lists; whatever it is asked for is a call too."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Recorded:
        if name.startswith("__"):
            raise AttributeError(name)
        return Recorded(f"{self.name}.{name}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        return (self.name, args, options)

    def __repr__(self) -> str:
        return self.name


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the reader was asked for, filled in when the pipeline is built."""
    found: dict[str, Any] = {}
    dali = types.ModuleType("nvidia.dali")
    fn: Any = types.ModuleType("nvidia.dali.fn")
    for name in ("cast", "squeeze", "reinterpret", "decoders"):
        setattr(fn, name, Recorded(name))
    fn.readers = types.SimpleNamespace(tfrecord=lambda **options: _read(found, options))
    dali.fn, dali.tfrecord, dali.types = fn, Recorded("tfrec"), Recorded("types")  # type: ignore[attr-defined]
    dali.pipeline_def = lambda **options: lambda make: lambda: _Pipeline(make, found)  # type: ignore[attr-defined]
    for name, module in (
        ("nvidia", types.ModuleType("nvidia")),
        ("nvidia.dali", dali),
        ("nvidia.dali.fn", fn),
        ("nvidia.dali.tfrecord", dali.tfrecord),  # type: ignore[attr-defined]
        ("nvidia.dali.types", dali.types),  # type: ignore[attr-defined]
    ):
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["nvidia"].dali = dali  # type: ignore[attr-defined]
    return found


def _read(found: dict[str, Any], options: dict[str, Any]) -> dict[str, str]:
    found["reader"] = options
    return {name: f"<{name}>" for name in options["features"]}


class _Pipeline:
    def __init__(self, make: Any, found: dict[str, Any]) -> None:
        self.make, self.found = make, found

    def build(self) -> None:
        self.found["outputs"] = self.make()


def run(code: str, asked: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features asked for, and what the pipeline returns, by their names."""
    scope: dict[str, Any] = {}
    exec(compile(code, "<spec>", "exec"), scope)
    return asked["reader"]["features"], dict(zip(scope["names"], asked["outputs"], strict=True))


def test_each_kind_is_asked_for_as_dali_knows_it(asked: dict[str, Any]) -> None:
    features, outputs = run(specs.dali({**CONTEXT, **IMAGES, **SEQUENCES}), asked)
    fixed, variable = "tfrec.FixedLenFeature", "tfrec.VarLenFeature"
    calls = {name: (call[0], *map(str, call[1])) for name, call in features.items()}
    assert calls["dense"] == (fixed, "[2, 3]", "tfrec.float32", "0.0")
    assert calls["raw"] == (fixed, "[]", "tfrec.string", "")
    assert calls["ragged"] == (variable, "tfrec.int64", "0")
    assert calls["boxes"] == (variable, "[4]", "tfrec.float32", "0.0")
    assert calls["any shape_shape"] == (fixed, "[3]", "tfrec.int64", "0")
    assert calls["sparse_index"] == (variable, "tfrec.int64", "0")
    assert 'it\'s "a"\nname' in calls
    assert not {"words", "pair", "steps", "nothing"} & {*calls, *outputs}


def test_values_are_made_what_they_were(asked: dict[str, Any]) -> None:
    _, outputs = run(specs.dali({**CONTEXT, **IMAGES}), asked)
    shown = {name: repr(value) for name, value in outputs.items()}
    assert shown["raw"] == "('reinterpret', ('<raw>',), {'dtype': types.FLOAT64, 'shape': [3, 2]})"
    assert "'shape': [-1, 2]" in shown["raw rows"]
    assert shown["huge"] == "('reinterpret', ('<huge>',), {'dtype': types.UINT64})"
    assert shown["flags"] == "('cast', ('<flags>',), {'dtype': types.BOOL})"
    assert shown["small"].startswith("('squeeze', (('cast',")
    assert "<any shape_shape>" in shown["any shape"]
    assert "decoders.image" in shown["photo"]
    assert "types.RGB" in shown["photo"]
    assert "types.UINT16" in shown["depth"]
    assert shown["may lack photo"] == "'<may lack photo>'"  # it may be empty, which is no image


def test_files_and_their_indexes_are_given(asked: dict[str, Any], tmp_path: Path) -> None:
    for name in ("b.tfrecord", "a.tfrecord"):
        (tmp_path / name).touch()
    run(specs.dali({"x": Feature("int64")}, files=str(tmp_path / "*.tfrecord")), asked)
    assert asked["reader"]["path"] == [
        str(tmp_path / name) for name in ("a.tfrecord", "b.tfrecord")
    ]
    assert asked["reader"]["index_path"] == [
        str(tmp_path / name) for name in ("a.tfrecord.idx", "b.tfrecord.idx")
    ]


def test_what_dali_cannot_read_is_told() -> None:
    code = specs.dali({**CONTEXT, **SEQUENCES}, compression="gzip")
    assert "# DALI cannot read gzip files" in code
    assert '# "words" is left out: DALI cannot read lists of strings.' in code
    assert '# "steps" is left out: DALI cannot read feature lists of a SequenceExample.' in code
    assert "# bytes of complex64, which DALI does not support" in code


def ask(feature: Feature, *, in_sequences: bool = False, is_batched: bool = True) -> FeatureRequest:
    return FeatureRequest("x", feature, is_batched=is_batched, in_sequences=in_sequences)


def test_the_list_and_the_elements_have_their_own_types() -> None:
    one = ask(Feature("bfloat16"))
    assert (one.kind, one.dtype) == ("tf.float32", "tf.bfloat16")
    assert ask(Feature("float64")).kind == "tf.string"
    assert ask(Feature("datetime64[us]")).dtype == "tf.int64"
    assert ask(Feature("str")).dtype == "tf.string"


def test_what_was_parsed_lies_where_the_message_has_it() -> None:
    assert ask(Feature("int64")).found() == 'parsed["x"]'
    assert ask(Feature("int64"), in_sequences=True).found() == 'context["x"]'
    steps = Feature("int64", (None,), sequence=True)
    assert ask(steps, in_sequences=True).found() == 'lists["x"]'


def test_shapes_have_the_records_in_front_where_there_are_many() -> None:
    feature = Feature("float64", (None, 3))
    assert ask(feature).shape(None, 3) == "[-1, -1, 3]"
    assert ask(feature, is_batched=False).shape(None, 3) == "[-1, 3]"
    assert ask(feature).inner == (3,)


def test_only_what_has_no_default_is_doubtful() -> None:
    assert ask(Feature("int64", optional=True)).is_doubtful
    assert not ask(Feature("int64", default=0)).is_doubtful
    assert not ask(Feature("int64")).is_doubtful


tf = pytest.importorskip("tensorflow")


def run_code(code: str, folder: Path) -> Any:
    """The dataset that the code makes, as a file of its own."""
    script = folder / "parse_records.py"
    script.write_text(code, encoding="utf-8")
    return runpy.run_path(str(script))["dataset"]


def rows_of(batches: Any) -> list[dict[str, Any]]:
    """The records of batches, as plain values."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        columns = {name: plain_column(column) for name, column in batch.items()}
        rows += (
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        )
    return rows


def plain_column(column: Any) -> list[Any]:
    if isinstance(column, tf.RaggedTensor):
        return column.to_list()
    if isinstance(column, tf.SparseTensor):
        rows: list[Any] = [[] for _ in range(int(column.dense_shape[0]))]
        for (row, *place), value in zip(
            column.indices.numpy().tolist(), column.values.numpy().tolist(), strict=True
        ):
            rows[row].append((place, value))
        return rows
    return list(map(plain_tensor, column))


def plain_tensor(value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    array = value.numpy()
    return array if isinstance(array, bytes) else array.tolist()


def expected_rows(split: Any, schema: Any) -> list[dict[str, Any]]:
    """What Datum reads, in TensorFlow's terms: bytes for texts, counts of units for times."""
    rows = []
    for record in split:
        row = {}
        for name, value in record.items():
            feature = schema[name]
            if feature.optional and feature.default is None:
                row[f"{name}_present"] = value is not None
            row[name] = None if value is None else plain(value, feature)
        rows.append(row)
    return rows


def plain(value: Any, feature: Any) -> Any:
    if isinstance(value, Sparse):
        pairs = zip(value.indices.tolist(), np.asarray(value.values).tolist(), strict=True)
        return [(place, item) for place, item in pairs]
    if isinstance(value, list):
        return [plain(item, feature) for item in value]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "mM":
        array = array.astype(np.int64)
    if array.dtype == object:
        return [plain(item, feature) for item in array.tolist()]
    return array.tolist()


def assert_alike(got: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(got) == len(expected)
    for left, right in zip(got, expected, strict=True):
        assert set(left) == set(right)
        for name, value in right.items():
            if value is not None:
                assert left[name] == value, name


def check(ds: datum.Dataset, **options: Any) -> str:
    pattern = str(ds.path / "train-*.tfrecord")
    code = specs.tensorflow(ds.schema, files=pattern, metadata=ds.metadata, **options)
    assert_alike(rows_of(run_code(code, ds.path.parent)), expected_rows(ds["train"], ds.schema))
    return code


def test_the_code_reads_every_kind_of_feature_in_batches(tmp_path: Path) -> None:
    code = check(write_kinds(tmp_path / "ds", CONTEXT), batch_size=3)
    assert "tf.io.parse_example(" in code
    assert ".batch(3).map(parse" in code


def test_the_code_reads_sequences_in_batches(tmp_path: Path) -> None:
    code = check(write_kinds(tmp_path / "ds", CONTEXT, SEQUENCES), batch_size=4)
    assert "tf.io.parse_sequence_example(" in code


def test_the_code_decodes_images_one_by_one_and_makes_ragged_batches(tmp_path: Path) -> None:
    code = check(write_kinds(tmp_path / "ds", CONTEXT, IMAGES), batch_size=4)
    assert "tf.io.parse_single_example(" in code
    assert ".ragged_batch(4)" in code


def test_the_code_reads_images_beside_sequences(tmp_path: Path) -> None:
    check(write_kinds(tmp_path / "ds", IMAGES, SEQUENCES, CONTEXT))


def test_patterns_files_and_compression_are_those_given(tmp_path: Path) -> None:
    schema = {"x": Feature("int64")}
    datum.write([{"x": 7}], tmp_path / "ds", schema=schema, compression="zlib", progress=False)
    files = [str(tmp_path / "ds" / "train-00000-of-00001.tfrecord")]
    code = specs.tensorflow(schema, files=files, compression="zlib", batch_size=None)
    assert [int(record["x"]) for record in run_code(code, tmp_path)] == [7]
    assert 'list_files(["a-*", "b-*"], shuffle=False)' in specs.tensorflow(
        schema, files=["a-*", "b-*"]
    )
    with pytest.raises(ValueError, match="expected `compression` None, gzip or zlib"):
        specs.tensorflow(schema, compression="xz")  # type: ignore[arg-type]


def test_class_names_and_notes_are_in_the_code() -> None:
    schema = {"label": Feature("int64"), "when": Feature("datetime64[s]")}
    code = specs.tensorflow(schema, metadata={"label": {"class_names": ["cat", "dog"]}})
    assert 'class_names = {\n    "label": ["cat", "dog"],\n}' in code
    assert '# "when": seconds since 1970-01-01, in UTC' in code
    assert "return tf.io.parse_example(serialized, feature_spec)" in code


def test_a_name_cannot_become_code() -> None:
    name = 'x"\nimport os  # \u2028'
    code = specs.tensorflow({name: Feature("datetime64[s]")})
    assert not any(line.startswith("import os") for line in code.splitlines())


def read(feature: Feature, **options: object) -> FeatureCode:
    known = {"is_batched": True, "in_sequences": feature.sequence, **options}
    return read_feature(FeatureRequest("x", feature, **known))  # type: ignore[arg-type]


def specs_of(feature: Feature, **options: object) -> dict[str, str]:
    return {key: str(code) for key, code in read(feature, **options).specs.items()}


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("float32", (2, 3)), {"x": "tf.io.FixedLenFeature([2, 3], tf.float32)"}),
        (
            Feature("int64", default=5),
            {"x": "tf.io.FixedLenFeature([], tf.int64, default_value=5)"},
        ),
        (
            Feature("str", default="a"),
            {"x": 'tf.io.FixedLenFeature([], tf.string, default_value="a")'},
        ),
        (Feature("int64", (None,)), {"x": "tf.io.RaggedFeature(tf.int64)"}),
        (
            Feature("float32", (None, 4)),
            {
                "x": 'tf.io.RaggedFeature(tf.float32, value_key="x",'
                " partitions=[tf.io.RaggedFeature.UniformRowLength(4)])"
            },
        ),
        (
            Feature("int64", (None, None)),
            {
                "x": 'tf.io.RaggedFeature(tf.int64, value_key="x",'
                ' partitions=[tf.io.RaggedFeature.RowLengths("x_lengths_1")])'
            },
        ),
        (
            Feature("float32", (5,), encoding="sparse"),
            {"x": 'tf.io.SparseFeature("x_index", "x_value", tf.float32, 5)'},
        ),
        (Feature("float64"), {"x": "tf.io.FixedLenFeature([], tf.string)"}),
        (
            Feature("float64", (2,), default=0.0),
            {
                "x": "tf.io.FixedLenFeature([], tf.string,"
                r" default_value=b'\x00\x00\x00\x00\x00\x00\x00\x00' * 2)"
            },
        ),
        (Feature("int64", (0, 3)), {}),
    ],
)
def test_a_feature_is_asked_for_as_the_format_says(
    feature: Feature, expected: dict[str, str]
) -> None:
    assert specs_of(feature) == expected


def test_a_long_default_of_one_number_is_short() -> None:
    (spec,) = specs_of(Feature("float32", (100,), default=1.5)).values()
    assert "tf.fill([100], 1.5).numpy()" in spec


def test_the_name_of_a_sparse_feature_gives_way_to_another_key() -> None:
    feature = Feature("float32", (5,), encoding="sparse")
    assert list(specs_of(feature, others=frozenset({"x"}))) == ["x_value"]


def test_images_and_tensors_of_any_shape_are_read_one_by_one() -> None:
    assert needs_single_records(Feature("uint8", (None, None, 3), encoding="image"))
    assert needs_single_records(Feature("uint8", (None, None, 3), encoding="raw"))
    assert not needs_single_records(Feature("float64", (None, 3)))
    assert not needs_single_records(Feature("int64", (None, None)))


@pytest.mark.parametrize(
    ("feature", "note"),
    [
        (Feature("datetime64[us]"), "microseconds since 1970-01-01, in UTC"),
        (Feature("timedelta64[s]"), "seconds"),
        (Feature("int64", (None,), optional=True), "absent values are empty"),
        (
            Feature("int64", (None,), default=(1, 2)),
            "absent values are empty; Datum returns [1, 2]",
        ),
        (Feature("int64"), ""),
    ],
)
def test_what_is_to_be_known_is_noted(feature: Feature, note: str) -> None:
    assert read(feature).note == note


def test_palettes_and_tiff_are_noted() -> None:
    mask = Feature("uint8", (None, None, 1), encoding="image")
    assert "palette" in read(mask, is_batched=False).note
    assert read(mask, is_batched=False, formats=("jpeg",)).note == ""
    photo = Feature("uint8", (None, None, 3), encoding="image")
    assert "TIFF" in read(photo, is_batched=False, formats=("tiff",)).note


if not all(map(importlib.util.find_spec, ("tfrecord", "torch"))):
    pytest.skip("the packages tfrecord and torch are not installed", allow_module_level=True)

# The package and TensorFlow define the same messages, and cannot both be loaded.
RUN = """
import pickle, runpy, sys
found = [list(runpy.run_path(script)["dataset"]) for script in sys.argv[2:]]
open(sys.argv[1], "wb").write(pickle.dumps(found))
"""


def read_with_package(*datasets: datum.Dataset) -> list[Any]:
    """The records of each dataset, read in a process of its own."""
    scripts = []
    for ds in datasets:
        files = str(ds.path / "train-*.tfrecord")
        script = ds.path.with_suffix(".py")
        code = specs.tfrecord(ds.schema, files=files, compression=ds.compression)
        script.write_text(code, encoding="utf-8")
        scripts.append(str(script))
    answer = datasets[0].path.with_suffix(".pickle")
    subprocess.run([sys.executable, "-c", RUN, str(answer), *scripts], check=True, timeout=240)
    found: list[Any] = pickle.loads(answer.read_bytes())
    return found


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, Sparse):
        assert_same(got[0], expected.indices)
        assert_same(list(got[1]), list(expected.values))
    elif isinstance(expected, list):
        assert len(got) == len(expected)
        for left, right in zip(got, expected, strict=True):
            assert_same(left, right)
    elif isinstance(got, list) and not got:
        assert len(expected) == 0  # of how many dimensions, an empty list does not say
    elif isinstance(expected, np.ndarray):
        assert np.asarray(got).shape == expected.shape
        assert np.asarray(got).dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    else:
        assert type(got) is type(expected)
        assert got == expected


def test_the_code_reads_every_kind_of_feature(tmp_path: Path) -> None:
    required = {"x": Feature("int64"), "steps": Feature("float32", (None,), sequence=True)}
    rows = [{"x": 1, "steps": [0.5]}, {"x": 2, "steps": []}]
    datum.write(rows, tmp_path / "required", schema=required, shuffle=False, progress=False)
    assert "sequence_description=sequence_description" in specs.tfrecord(required)
    datasets = [
        write_kinds(tmp_path / "context", CONTEXT),
        write_kinds(tmp_path / "images", IMAGES, compression="gzip"),
        write_kinds(tmp_path / "all", CONTEXT, IMAGES, SEQUENCES),
        datum.load(tmp_path / "required"),
    ]
    for ds, got in zip(datasets, read_with_package(*datasets), strict=True):
        expected = list(ds["train"])
        assert len(got) == len(expected)
        for left, right in zip(got, expected, strict=True):
            assert list(left) == list(right)
            for name in right:
                assert_same(left[name], right[name])


def test_zlib_is_told_to_be_out_of_reach() -> None:
    assert "cannot read zlib" in specs.tfrecord({"x": Feature("int64")}, compression="zlib")


def test_several_patterns_and_plain_files_are_listed() -> None:
    schema = {"x": Feature("int64")}
    assert 'for pattern in ("a-*", "b-*")' in specs.tfrecord(schema, files=["a-*", "b-*"])
    code = specs.tfrecord(schema, files=["a.tfrecord", "b.tfrecord"])
    assert 'files = ["a.tfrecord", "b.tfrecord"]' in code
    assert "glob" not in code


def test_colours_of_16_bits_are_noted() -> None:
    deep = Feature("uint16", (None, None, 3), encoding="image")
    mask = Feature("uint16", (None, None, 1), encoding="image")
    assert "# Pillow decodes only 8 bits" in specs.tfrecord({"photo": deep})
    assert "# Pillow" not in specs.tfrecord({"mask": mask})
