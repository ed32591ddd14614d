import threading

import pytest

from datum._read.shards import ByteCounter, StoppedError, WatchedFile, end_of
from datum.format import RecordWriter


def test_bytes_of_all_files_are_summed_up():
    seen = []
    counter = ByteCounter(30, lambda *given: seen.append(given))
    first, second = counter.of_file(10), counter.of_file(20)
    first(4)
    second(20)
    first(10)
    assert seen == [(4, 30), (24, 30), (30, 30)]


def test_more_than_a_file_has_and_steps_back_do_not_count():
    seen = []
    note = ByteCounter(10, lambda done, total: seen.append(done)).of_file(10)
    for done in (5, 3, 99):
        note(done)
    assert seen == [5, 5, 10]


def test_nobody_has_to_listen():
    ByteCounter(1, None).of_file(1)(1)


def test_those_who_read_are_told_to_give_up():
    counter = ByteCounter(10, None)
    note = counter.of_file(10)
    counter.is_stopped = True
    with pytest.raises(StoppedError):
        note(1)


def test_calls_come_one_at_a_time():
    inside, most = 0, 0

    def progress(done, total):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        inside -= 1

    counter = ByteCounter(4000, progress)
    notes = [counter.of_file(1000) for _ in range(4)]
    threads = [threading.Thread(target=lambda n=n: [*map(n, range(1000))]) for n in notes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_file_tells_how_far_it_is_read(tmp_path, compression):
    path = tmp_path / "a"
    with RecordWriter(path, compression=compression) as writer:
        for n in range(3000):
            writer.write(b"%d" % n)
    seen = []
    with WatchedFile(path, seen.append) as file:
        assert sum(map(len, file.chunks(1000))) == 3000
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size
    assert (len(set(seen)) > 2) == (compression is None)


def test_the_end_of_a_run_is_that_of_its_last_record(tmp_path):
    with RecordWriter(tmp_path / "a") as writer:
        writer.write(b"abc")
        writer.write(b"")
    with WatchedFile(tmp_path / "a", lambda done: None) as file:
        assert [end_of(records) for records in file.chunks(1)] == [19, 35]
