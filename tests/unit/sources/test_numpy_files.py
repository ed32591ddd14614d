import pickle

import numpy as np
import pytest

from datum import Feature, Schema
from datum.errors import SourceError
from datum.sources import NumpyFile


def test_the_arrays_of_an_npz_file_are_columns(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(6).reshape(3, 2), label=np.array(["a", "b", "c"]))
    part = NumpyFile(path, key="label", split="all").parts()["all"]
    assert part.schema == Schema({"x": Feature("int64", (2,)), "label": Feature("str")})
    block = part.read(np.array([2]))
    assert block.data["x"].tolist() == [[4, 5]]
    assert block.keys == ["c"]


def test_an_npy_file_is_a_column_or_one_for_each_field(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3.0))
    assert list(NumpyFile(path).parts()["train"].schema) == ["x"]
    np.save(path, np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]))
    part = NumpyFile(path).parts()["train"]
    assert part.schema == Schema({"a": Feature("int32"), "b": Feature("float64")})


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("it was unpickled",))


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_pickled_objects_are_never_unpickled(tmp_path, name):
    path = tmp_path / name
    objects = np.array([Evil()], object)
    if name == "a.npy":
        np.save(path, objects)
    else:
        np.savez(path, x=objects)
    with pytest.raises(SourceError, match=rf"(?s){name}: expected arrays of NumPy.*hint: save"):
        NumpyFile(path).parts()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 cut off", pickle.dumps(Evil())])
def test_files_of_something_else_are_refused(tmp_path, content):
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"a.npy: expected arrays of NumPy"):
        NumpyFile(path).parts()


def test_one_file_is_a_source(tmp_path):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.arange(3))
    with pytest.raises(SourceError, match="expected one file, got 2"):
        NumpyFile(str(tmp_path / "*.npy"))
