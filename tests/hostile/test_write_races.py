"""Writers and readers of one target at the same time: one writer wins, readers see a whole."""

import collections
import multiprocessing
import os
import threading

import numpy as np
import pytest

import datum
from datum._write import api, staging
from datum.format import Index
from tests.unit.write.datasets import digests, read, write

ROUNDS = 12
AT_WORK = "another process is writing"


def attempt(out, value, options, start, results):
    start.wait()
    try:
        write([{"x": value}] * 50, out, **options)
        results.put("written")
    except datum.WriteError as error:
        results.put(str(error))
    except BaseException as error:
        results.put(f"unexpected: {error!r}")


def race(out, jobs):
    """What became of writers that start together, in the order of their ends."""
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(len(jobs)), context.Queue()
    processes = [
        context.Process(target=attempt, args=(out, value, options, start, results))
        for value, options in jobs
    ]
    for process in processes:
        process.start()
    found = [results.get(timeout=60) for _ in jobs]
    for process in processes:
        process.join()
    return found


def check_sound(out):
    """All that is there belongs to one dataset."""
    dataset = datum.load(out)
    assert dataset.verify().is_sound
    named = {"datum.json"}
    for shard in dataset.splits["train"].shards:
        named |= {shard.name, Index.path_for(shard.name).as_posix()}
    files = (path for path in out.rglob("*") if path.is_file())
    assert {path.relative_to(out).as_posix() for path in files} == named
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return collections.Counter(row["x"] for row in read(out))


def test_of_two_writers_of_one_target_one_wins(tmp_path):
    for number in range(ROUNDS):
        out = tmp_path / f"{number}" / "out"
        found = race(out, [(1, {}), (2, {"shards": 2})])
        assert found.count("written") == 1, found
        (other,) = (word for word in found if word != "written")
        assert AT_WORK in other or "a dataset already exists" in other
        assert check_sound(out) in ({1: 50}, {2: 50})


def test_of_two_writers_that_replace_each_leaves_a_whole(tmp_path):
    out = tmp_path / "out"
    write([{"x": 0}] * 50, out)
    for _ in range(ROUNDS):
        jobs = [(1, {"overwrite": True}), (2, {"shards": 2, "overwrite": True})]
        found = race(out, jobs)
        assert "written" in found
        assert all(word == "written" or AT_WORK in word for word in found), found
        assert check_sound(out) in ({1: 50}, {2: 50})


def test_appends_at_once_add_what_they_say(tmp_path):
    for number in range(ROUNDS):
        out = tmp_path / f"{number}" / "out"
        write([{"x": 0}] * 50, out)
        found = race(out, [(value, {"append": True}) for value in (1, 2, 3)])
        assert all(word == "written" or AT_WORK in word for word in found), found
        assert check_sound(out).total() == 50 * (1 + found.count("written"))


def test_an_append_and_a_replacement_at_once_are_one_after_the_other(tmp_path):
    for number in range(ROUNDS):
        out = tmp_path / f"{number}" / "out"
        write([{"x": 0}] * 50, out)
        found = race(out, [(1, {"append": True}), (2, {"overwrite": True})])
        assert all(word == "written" or AT_WORK in word for word in found), found
        assert check_sound(out) in ({0: 50, 1: 50}, {2: 50}, {1: 50, 2: 50})


def test_threads_of_one_process_cannot_write_one_target_at_once(tmp_path):
    def rows():
        with pytest.raises(datum.WriteError, match=AT_WORK):
            write([{"x": 2}], tmp_path / "out")
        other = threading.Thread(target=write, args=([{"x": 3}], tmp_path / "other"))
        other.start()
        other.join()
        yield {"x": 1}

    write(rows(), tmp_path / "out")
    assert [row["x"] for row in read(tmp_path / "out")] == [1]
    assert [row["x"] for row in read(tmp_path / "other")] == [3]


@pytest.mark.parametrize("options", [{}, {"shards": 3}])
def test_a_dataset_that_appears_after_the_first_look_is_not_touched(tmp_path, monkeypatch, options):
    out = tmp_path / "out"
    look = api.check_target
    expected = {}

    def look_too_early(*args, **kwargs):
        look(*args, **kwargs)
        if not expected:
            expected.update({"": ""})
            write([{"first": 1}], out, **options)
            expected.update(digests(out))

    monkeypatch.setattr(api, "check_target", look_too_early)
    with pytest.raises(datum.WriteError, match="a dataset already exists"):
        write([{"x": 1}], out)
    assert digests(out) == {name: found for name, found in expected.items() if name}


def test_a_file_that_appears_in_an_empty_target_is_not_lost(tmp_path):
    out = tmp_path / "out"
    out.mkdir()

    def rows():
        (out / "notes.txt").write_text("mine")
        yield {"x": 1}

    try:
        write(rows(), out)
    except datum.WriteError:
        assert [path.name for path in out.iterdir()] == ["notes.txt"]
    assert (out / "notes.txt").read_text() == "mine"


def test_a_writer_that_ends_does_not_take_the_folder_of_the_next(tmp_path, monkeypatch):
    """The first has removed its staging folder, but not let go of it, when the second begins."""
    remove = staging.Staging.remove
    out = tmp_path / "out"
    seconds = []

    def remove_and_let_in(self):
        remove(self)
        if not seconds:
            seconds.append(staging.open_staging(out))
            seconds[0].__enter__()

    monkeypatch.setattr(staging.Staging, "remove", remove_and_let_in)
    write([{"x": 1}], out)
    assert staging.Staging(out).folder.exists()
    seconds[0].__exit__(None, None, None)


def columns(version):
    return {"x": np.full(3000, float(version)), "y": np.arange(3000)}


def replace_again_and_again(out, versions):
    for version in range(1, versions):
        write(columns(version), out, shards=3 if version % 4 else 2, workers=1, overwrite=True)
    os._exit(0)


def test_a_reader_sees_one_version_or_is_told_that_there_is_another(tmp_path):
    out = tmp_path / "out"
    write(columns(0), out, shards=3)
    child = os.fork()
    if child == 0:
        replace_again_and_again(out, 150)
    whole, told = 0, []
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        try:
            split = datum.load(out)["train"]
            found = np.concatenate([batch["x"] for batch in split.batches(700)])
        except datum.ManifestError as error:
            told.append(str(error))
            continue
        assert len(found) == 3000
        assert len(np.unique(found)) == 1
        whole += 1
    assert whole > 0
    assert all("replaced" in message for message in told), told


def test_a_reader_of_random_records_never_mixes_versions(tmp_path):
    out = tmp_path / "out"
    write(columns(0), out, shards=3)
    split = datum.load(out)["train"]
    assert split[0]["x"] == 0
    write(columns(1), out, shards=3, overwrite=True)
    for number in (1, 1500, 2999):
        try:
            found = split[number]["x"]
        except datum.ManifestError:
            continue
        assert found == 0


def test_a_reader_keeps_reading_while_records_are_added(tmp_path):
    out = tmp_path / "out"
    write([{"x": 0}] * 100, out)
    split = datum.load(out)["train"]
    for version in range(1, 10):
        write([{"x": version}] * 100, out, append=True)
        assert [row["x"] for row in split] == [0] * 100
        later = datum.load(out)["train"]
        assert len(later) == 100 * (version + 1)
        assert later[len(later) - 1]["x"] == version
