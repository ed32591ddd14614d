import io
import pickle
import zipfile

import numpy as np
import pytest

import datum
from datum import Feature, Schema
from datum.errors import SourceError
from datum.sources import NumpyFile, table


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


def test_an_archive_that_inflates_far_beyond_its_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "FREE_BYTES", 2**20)
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(2**22, np.uint8))
    size = path.stat().st_size
    told = rf"a\.npz: {size:,} bytes that inflate to 4,194,\d\d\d exceed the limit of 1,048,576"
    with pytest.raises(SourceError, match=told) as caught:
        NumpyFile(path).parts()
    hint = str(caught.value).partition("hint: ")[2].removesuffix(" takes them")
    assert len(eval(hint, {"datum": datum}).parts()["train"]) == 2**22
    with pytest.raises(SourceError, match="exceed the limit of 100"):
        NumpyFile(path, max_bytes=100).parts()


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_a_header_that_claims_more_than_memory_is_an_error_of_the_file(tmp_path, name):
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**59,)}
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, header)
    path = tmp_path / name
    path.write_bytes(array.getvalue())
    if name == "a.npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", array.getvalue())
    with pytest.raises(SourceError, match=rf"{name}: "):
        NumpyFile(path).parts()
