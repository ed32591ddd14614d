import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from datum.errors import SourceError
from datum.sources import IndexedPart, PythonRows, Source, StreamedPart


def part_of(source, **options):
    (part,) = PythonRows(source, **options).parts().values()
    return part


def rows_of(part):
    return [row for block in part.blocks() for row in block.data]


class Dataset:
    """As those of PyTorch are."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        item = self.items[number]
        if isinstance(item, Exception):
            raise item
        return item


class BatchedDataset(Dataset):
    calls = 0

    def __getitems__(self, numbers):
        self.calls += 1
        return [self[number] for number in numbers]


def make_rows(count=3):
    return [{"x": i} for i in range(count)]


def test_a_source_has_one_split():
    source = PythonRows(make_rows(), split="all")
    assert isinstance(source, Source)
    assert list(source.parts()) == ["all"]


@pytest.mark.parametrize(
    "make", [lambda: iter(make_rows()), lambda: (row for row in make_rows()), lambda: make_rows]
)
def test_iterables_and_functions_are_streamed(make):
    part = part_of(make())
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    assert rows_of(part) == make_rows()
    assert part.schema is None
    assert part.fingerprint is None


def test_blocks_are_numbered_from_the_start():
    blocks = list(part_of(iter(make_rows(10_000))).blocks())
    assert [len(block) for block in blocks] == [4096, 4096, 1808]
    assert np.concatenate([block.numbers for block in blocks]).tolist() == list(range(10_000))


def test_an_iterator_is_gone_through_once():
    part = part_of(iter(make_rows()))
    assert not part.is_repeatable
    assert rows_of(part) == make_rows()
    with pytest.raises(SourceError, match="hint: pass a function that returns a new iterator"):
        rows_of(part)


def test_a_function_is_called_each_time():
    part = part_of(make_rows)
    assert part.is_repeatable
    assert rows_of(part) == rows_of(part) == make_rows()


def test_keys_come_with_streamed_rows():
    (block,) = part_of(iter([("a", {"x": 1}), ("b", {"x": 2})])).blocks()
    assert block.keys == ["a", "b"]


def test_what_the_iterator_raises_names_the_record_and_keeps_its_cause():
    def rows():
        yield from make_rows(5000)
        raise KeyError("gone")

    with pytest.raises(SourceError, match="record 5000: the source raised KeyError") as caught:
        rows_of(part_of(rows))
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_the_function_raises_is_told():
    def broken():
        raise ZeroDivisionError("no")

    with pytest.raises(SourceError, match="record 0: the source raised ZeroDivisionError: no"):
        rows_of(part_of(broken))


def test_interrupts_pass():
    def rows():
        yield {"x": 1}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows_of(part_of(rows))


async def coroutine():
    return []


async def asynchronous():
    yield {"x": 1}


@pytest.mark.parametrize("source", [coroutine, asynchronous])
def test_asynchronous_rows_are_refused(source):
    with pytest.raises(SourceError, match="got an asynchronous one"):
        rows_of(part_of(source))


@pytest.mark.parametrize("result", [None, 5, "text", {"x": [1]}])
def test_a_function_must_return_rows(result):
    with pytest.raises(SourceError, match="expected an iterable of rows"):
        rows_of(part_of(lambda: result))


def test_a_list_is_read_by_numbers():
    part = part_of(make_rows(5))
    assert isinstance(part, IndexedPart)
    assert len(part) == 5
    assert part.read(np.array([4, 0])).data == [{"x": 4}, {"x": 0}]
    assert part.read(np.arange(1, 4)).data == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert not part.is_slow_python


def test_the_keys_of_a_list_are_known_beforehand():
    part = part_of([("a", {"x": 1}), ("b", {"x": 2}), 7])
    assert list(part.keys)[:2] == ["a", "b"]
    assert len(part.keys) == 3
    block = part.read(np.array([1, 2]))
    assert block.keys == ["b"]
    assert [reject.record for reject in block.rejects] == [2]


@pytest.mark.parametrize("kind", [Dataset, BatchedDataset])
def test_a_map_style_dataset_is_read_by_numbers(kind):
    dataset = kind([("image", 0), ("picture", 1)])
    part = part_of(dataset)
    assert part.is_slow_python
    assert part.read(np.array([1, 0])).data == [{"x": "picture", "y": 1}, {"x": "image", "y": 0}]
    assert part_of(dataset, names=["image", "label"]).read(np.array([0])).data == [
        {"image": "image", "label": 0}
    ]
    assert getattr(dataset, "calls", 2) == 2


def test_a_map_style_dataset_with_keys_is_streamed():
    part = part_of(Dataset([("a", {"x": 1}), ("b", {"x": 2})]))
    assert not isinstance(part, IndexedPart)
    (block,) = part.blocks()
    assert block.keys == ["a", "b"]


@pytest.mark.parametrize("kind", [Dataset, BatchedDataset])
def test_an_item_that_cannot_be_read_is_rejected_and_others_go_on(kind):
    part = part_of(kind([{"x": 0}, OSError("broken file"), {"x": 2}]))
    block = part.read(np.array([2, 1, 0]))
    assert block.data == [{"x": 2}, {"x": 0}]
    assert block.numbers.tolist() == [2, 0]
    assert [str(reject) for reject in block.rejects] == [
        "record 1: the source raised OSError: broken file"
    ]


def test_a_dataset_meant_to_be_iterated_is_streamed():
    class IterableDataset(Dataset):
        def __iter__(self):
            return iter(self.items)

    class Mine(IterableDataset):
        pass

    part = part_of(Mine(make_rows()))
    assert not isinstance(part, IndexedPart)
    assert rows_of(part) == make_rows()


def test_class_names_are_taken_from_datasets_that_know_them():
    hugging = Dataset(make_rows())
    hugging.features = {"label": SimpleNamespace(names=["cat", "dog"]), "x": SimpleNamespace()}
    assert part_of(hugging).metadata == {"label": {"class_names": ["cat", "dog"]}}
    vision = Dataset([(1, 0)])
    vision.classes = ["cat", "dog"]
    assert part_of(vision).metadata == {"y": {"class_names": ["cat", "dog"]}}
    named = part_of(vision, names=["image", "label"])
    assert named.metadata == {"label": {"class_names": ["cat", "dog"]}}


def test_a_part_of_a_dataset_can_be_sent_to_another_process():
    part = pickle.loads(pickle.dumps(part_of(Dataset(make_rows()))))
    assert part.read(np.array([1])).data == [{"x": 1}]


def test_an_endless_source_is_not_read_ahead():
    part = part_of({"x": i} for i in itertools.count())
    blocks = part.blocks()
    assert len(next(blocks)) == 4096
    blocks.close()


@pytest.mark.parametrize("source", [7, None, object(), Dataset])
def test_what_has_no_rows_is_refused(source):
    with pytest.raises(SourceError, match="expected"):
        part_of(source)


def test_names_are_a_list():
    with pytest.raises(SourceError, match="expected a list as `names`, got 'xy'"):
        PythonRows([], names="xy")


def test_no_rows_are_no_records():
    assert rows_of(part_of(iter([]))) == []
    assert len(part_of([])) == 0
