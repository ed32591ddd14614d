"""What a source is."""

from pathlib import Path

import numpy as np

import datum
from datum.sources import Block, ClassFolders, CsvTable, IndexedPart, Reject, Source, StreamedPart
from datum.sources.protocol import Stored
from datum.sources.python import PythonRows


def test_a_reject_reads_as_where_what_and_why():
    assert str(Reject(7, "a.jpg", "photos/a.jpg", "expected an image, got text")) == (
        "photos/a.jpg: record 7 (a.jpg): expected an image, got text"
    )
    assert str(Reject(7, None, "", "expected an image")) == "record 7: expected an image"


def test_a_block_is_as_long_as_its_records():
    assert len(Block([{"x": 1}], np.array([5]), rejects=[Reject(4, None, "", "bad")])) == 1


def test_parts_are_told_apart_by_what_they_can():
    (listed,) = PythonRows([{"x": 1}]).parts().values()
    (streamed,) = PythonRows(iter([{"x": 1}])).parts().values()
    assert isinstance(listed, IndexedPart)
    assert not isinstance(listed, StreamedPart)
    assert isinstance(streamed, StreamedPart)
    assert not isinstance(streamed, IndexedPart)


def test_sources_have_the_protocol_and_others_do_not(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    assert isinstance(CsvTable(tmp_path / "a.csv"), Source)
    assert isinstance(ClassFolders(tmp_path), Source)
    assert not isinstance([{"x": 1}], Source)
    assert isinstance(Path(), Source)  # by chance: paths have `parts`; so they are asked first


def test_stored_records_are_taken_by_their_places():
    framed = datum.format.frame([b"a", b"bb", b"ccc"])
    schema = datum.Schema({"x": datum.Feature("int64")})
    whole = Stored(framed.data, framed.offsets, schema, True, lambda at: f"record {at}")
    assert len(whole) == 3
    assert whole.sizes.tolist() == [17, 18, 19]
    taken = whole.take(np.array([2, 0]))
    assert list(datum.format.RecordFile(taken.frames.tobytes())) == [b"ccc", b"a"]
    assert taken.offsets.tolist() == [0, 19]
    assert (taken.schema, taken.is_partial, taken.locate(0)) == (schema, True, "record 2")
    assert whole.take(np.arange(3)) is whole
    assert len(whole.take(np.array([], np.intp))) == 0
