"""The code for DALI, run against a stand-in that records what it is asked for."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from datum import Feature, specs
from tests.unit.specs.kinds import CONTEXT, IMAGES, SEQUENCES


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
    assert "# DALI reads no gzip files" in code
    assert '# "words" is left out: DALI reads no lists of strings.' in code
    assert '# "steps" is left out: DALI reads no feature lists of a SequenceExample.' in code
    assert "# bytes of complex64, which DALI does not know" in code
