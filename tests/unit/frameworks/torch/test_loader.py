import copy
import json
import os
import pickle
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import datum
from datum._frameworks.torch import TorchLoader, make_loader
from datum._frameworks.torch.loader import (
    Passes,
    Rank,
    find_collation,
    find_worker,
    is_shared_out,
    is_worker,
)
from datum._load.loader import Loader
from datum._load.options import LoadOptions
from datum._load.stream import Place, order_split

RECORDS = 23


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rows = [
        {
            "id": i,
            "x": np.full((2, 3), i, np.float32),
            "small": np.uint16(i),
            "day": np.datetime64("2024-01-01") + i,
            "name": f"n{i}",
            "items": list(range(i % 4)),
            "deep": [[1.0] * (i % 2)] * (i % 3),
            "words": ["w"] * (i % 3),
            "weight": None if i % 4 == 3 else 1.0,
            "image": np.full((4, 5, 3), i, np.uint8),
            "any_size": np.full((2 + i % 2, 2, 1), i, np.uint8),
        }
        for i in range(RECORDS)
    ]
    path = tmp_path_factory.mktemp("rows") / "ds"
    picture = datum.Feature("uint8", (None, None, None), encoding="image")
    images = {"image": picture, "any_size": picture}
    datum.write(rows, path, schema=images, shuffle=False, shards=3, progress=False)
    return datum.load(path)


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


def test_a_loader_is_an_iterable_dataset_and_a_loader(ds):
    loader = ds.to_torch("train", batch_size=4, shuffle=True)
    assert isinstance(loader, TorchLoader)
    assert isinstance(loader, IterableDataset)
    assert isinstance(loader, Loader)
    expected = "TorchLoader('train', 23 records, batches of 4, order full, seed 0, epoch 0)"
    assert repr(loader) == expected


def test_each_feature_has_its_type(ds):
    batch = next(iter(ds.to_torch(batch_size=4)))
    assert batch["id"].tolist() == [0, 1, 2, 3]
    assert (batch["x"].dtype, batch["x"].shape) == (torch.float32, (4, 2, 3))
    assert batch["small"].dtype == torch.uint16
    assert batch["day"].tolist() == [19723, 19724, 19725, 19726]
    assert batch["name"] == ["n0", "n1", "n2", "n3"]
    assert [row.tolist() for row in batch["items"].unbind()] == [[], [0], [0, 1], [0, 1, 2]]
    assert isinstance(batch["deep"].values.values, torch.Tensor)
    assert batch["words"] == [[], ["w"], ["w", "w"], []]
    assert batch["weight"].isnan().tolist() == [False, False, False, True]
    assert (batch["image"].dtype, batch["image"].shape) == (torch.uint8, (4, 4, 5, 3))
    assert batch["image"].permute(0, 3, 1, 2).shape == (4, 3, 4, 5)
    assert [tuple(image.shape) for image in batch["any_size"]] == [(2, 2, 1), (3, 2, 1)] * 2


def test_padding_makes_dense_tensors(ds):
    batch = next(iter(ds.to_torch(batch_size=4, pad=True, columns=["items", "deep"])))
    assert batch["items"].tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 2]]
    assert batch["deep"].layout == torch.strided
    assert batch["deep"].shape[0] == 4


@pytest.mark.parametrize("shuffle", [False, True, "blocks", 8])
def test_the_order_is_that_of_numpy(ds, shuffle):
    options = dict(batch_size=4, shuffle=shuffle, seed=7, epochs=2)
    assert ids(ds.to_torch(**options)) == ids(ds.to_numpy(**options))


def test_functions_get_numpy_and_their_results_become_tensors(ds):
    def pair(batch):
        assert isinstance(batch["x"], np.ndarray)
        return batch["x"] * 2, batch["id"]

    x, number = next(iter(ds.to_torch(batch_size=4, batch_map=pair)))
    assert x[:, 0, 0].tolist() == [0, 2, 4, 6]
    assert number.tolist() == [0, 1, 2, 3]


def test_each_iteration_has_the_next_epoch(ds):
    loader = ds.to_torch(batch_size=4, shuffle=True)
    first, second = ids(loader), ids(loader)
    assert first != second
    loader.set_epoch(0)
    assert ids(loader) == first
    assert ids(loader) == second


def test_a_loop_without_end_that_is_broken_off_is_followed_by_the_next_epoch(ds):
    plain = ds.to_torch(batch_size=4, shuffle=True)
    epochs = [ids(plain) for _ in range(4)]
    loader = ds.to_torch(batch_size=4, shuffle=True, epochs=None)
    for taken, epoch in [(3, 0), (6, 1), (7, 2)]:  # in an epoch, all of it, and one more
        given = iter(loader)
        assert next(given)["id"].tolist() == epochs[epoch][0]
        for _ in range(taken - 1):
            next(given)
    assert loader.state_dict()["epoch"] == 3


def test_lengths(ds):
    assert len(ds.to_torch(batch_size=4)) == 6
    assert len(ds.to_torch(batch_size=4, drop_remainder=True)) == 5
    assert len(ds.to_torch(batch_size=4, epochs=3)) == 18
    assert len(ds.to_torch(batch_size=4, host=(1, 2))) == 3
    assert len(DataLoader(ds.to_torch(batch_size=4), batch_size=None)) == 6
    with pytest.raises(TypeError, match="which has no end"):
        len(ds.to_torch(batch_size=4, epochs=None))


def test_what_takes_it_for_a_dataloader_is_told_the_way(ds):
    with pytest.raises(AttributeError, match=r"no attribute 'dataset'\n.*batch_size=None"):
        _ = ds.to_torch().dataset
    assert not hasattr(ds.to_torch(), "sampler")


def test_a_dataloader_without_workers_gives_the_same(ds):
    loader = ds.to_torch(batch_size=4, shuffle=True, epochs=2)
    expected = ids(loader)
    loader.set_epoch(0)
    assert ids(DataLoader(loader, batch_size=None)) == expected


def test_ranks_get_their_parts(ds, monkeypatch):
    whole = ids(ds.to_torch(batch_size=8, shuffle=True, remainder="wrap"))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    parts = []
    for rank in range(2):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        parts.append(ids(ds.to_torch(batch_size=4, shuffle=True)))
    assert [a + b for a, b in zip(*parts, strict=True)] == whole
    alone = ids(ds.to_torch(batch_size=8, shuffle=True, host=(0, 1)))
    assert alone[:-1] == whole[:-1]


# Functions.
def test_tensors_that_a_function_made_are_stacked(ds):
    def make(record):
        x = torch.ones(2, 3) * int(record["id"])
        return {
            "id": record["id"],
            "half": x.to(torch.bfloat16),
            "pair": (x.clone().requires_grad_(), torch.tensor(1)),
            "lengths": torch.arange(int(record["id"]) % 3),
        }

    batch = next(iter(ds.to_torch(batch_size=4, columns=["id"], map=make)))
    assert (batch["half"].dtype, batch["half"].shape) == (torch.bfloat16, (4, 2, 3))
    assert batch["pair"][0].requires_grad
    assert batch["pair"][0].shape == (4, 2, 3)
    assert batch["pair"][1].tolist() == [1] * 4
    assert batch["lengths"].layout == torch.jagged
    (given,) = DataLoader(
        ds.to_torch("train[:4]", batch_size=4, columns=["id"], map=make),
        batch_size=None,
        num_workers=1,
    )
    assert torch.equal(given["half"], batch["half"])
    assert torch.equal(given["pair"][0], batch["pair"][0])


class Jitter:
    """As those of torchvision: it draws from the generator of the program."""

    def __call__(self, record):
        return {"id": record["id"], "x": torch.rand(3) + torch.randint(5, (3,))}


def draw(record, generator):
    return {"id": record["id"], "x": torch.rand(3, generator=generator)}


@pytest.mark.parametrize("function", [Jitter(), draw], ids=["global", "given"])
def test_random_tensors_repeat_with_any_number_of_threads_and_workers(ds, function):
    def found(threads, workers=0, method=None, resume=0):
        loader = ds.to_torch(
            batch_size=4, shuffle=True, columns=["id"], map=function, threads=threads
        )
        if resume:
            loader.load_state_dict(loader.state_dict(batches=resume))
        given = DataLoader(
            loader, batch_size=None, num_workers=workers, multiprocessing_context=method
        )
        return [batch["x"].tolist() for batch in given]

    torch.manual_seed(7)
    before = torch.get_rng_state()
    expected = [
        batch["x"].tolist()
        for batch in ds.to_torch(
            batch_size=4, shuffle=True, columns=["id"], map=function, threads=1
        )
    ]
    assert torch.equal(torch.get_rng_state(), before)
    assert found(4) == expected
    assert found(2, resume=3) == expected[3:]
    assert found(2, workers=2, method="fork") == expected


# Workers, as they look from inside.
@pytest.fixture
def be_worker(monkeypatch):
    def be(index, count):
        info = SimpleNamespace(id=index, num_workers=count, seed=7 + index)
        monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: info)

    return be


def test_workers_take_turns(ds, be_worker):
    expected = ids(ds.to_torch(batch_size=4, shuffle=True))
    for index in range(3):
        be_worker(index, 3)
        assert ids(ds.to_torch(batch_size=4, shuffle=True)) == expected[index::3]


def test_workers_that_last_agree_on_the_epoch_after_a_pass_that_was_broken_off(ds, be_worker):
    plain = ds.to_torch(batch_size=4, shuffle=True)
    epochs = [ids(plain) for _ in range(3)]
    took = [0, 1, 3, 4]  # none, some, all without asking for more, all
    for index in range(2):
        for count in took:
            be_worker(index, 2)
            loader = ds.to_torch(batch_size=4, shuffle=True)
            given = iter(loader)
            for _ in range(count):
                next(given, None)
            del given
            epoch = 1 if count else 0  # asked for nothing, it has not begun
            assert ids(loader) == epochs[epoch][index::2]
            assert ids(loader) == epochs[epoch + 1][index::2]


def test_a_worker_starts_where_it_is_told_although_it_has_begun(ds, be_worker):
    be_worker(1, 2)
    loader = ds.to_torch(batch_size=4, shuffle=True)
    expected = ids(loader)
    loader.set_epoch(0)
    given = iter(loader)
    next(given)
    state = loader.state_dict()
    next(given)
    loader.load_state_dict(state)
    assert ids(loader) == expected[1:]


def test_a_worker_warns_of_what_it_skips(tmp_path, be_worker):
    datum.write({"id": range(50)}, tmp_path / "ds", shuffle=False, progress=False)
    (shard,) = (tmp_path / "ds").glob("*.tfrecord")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    loader = datum.load(tmp_path / "ds").to_torch(batch_size=4, on_error="skip")
    list(loader)
    assert loader.report.skipped == 1
    be_worker(0, 1)
    with pytest.warns(UserWarning, match="split 'train': 49 records in 13 batches, 1 skipped"):
        list(loader)


# Pinned memory.
@pytest.fixture
def pinned(monkeypatch):
    """The shapes of tensors that are pinned; none is in truth."""
    shapes = []

    def pin(tensor):
        shapes.append(tuple(tensor.shape))
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    return shapes


@pytest.mark.parametrize(
    ("asked", "has_gpu", "in_worker", "is_pinned"),
    [
        (None, False, False, False),
        (None, True, False, True),
        (None, True, True, False),
        (True, False, False, True),
        (True, True, True, False),
        (False, True, False, False),
    ],
)
def test_memory_is_pinned(ds, pinned, monkeypatch, be_worker, asked, has_gpu, in_worker, is_pinned):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    if in_worker:
        be_worker(0, 1)
    loader = ds.to_torch(batch_size=4, columns=["id", "name"], pin_memory=asked)
    batch = next(iter(loader))
    assert batch["id"].tolist() == [0, 1, 2, 3]
    assert pinned == ([(4,)] if is_pinned else [])


def test_an_option_that_is_no_yes_or_no_is_refused(ds):
    with pytest.raises(TypeError, match="expected `pin_memory` to be True, False or None"):
        ds.to_torch(pin_memory="yes")
    with pytest.raises(TypeError, match="did you mean `batch_size`"):
        ds.to_torch(batchsize=4)


# State.
def test_a_state_goes_on_with_the_next_batch(ds):
    options = dict(batch_size=4, shuffle=True, epochs=2)
    expected = ids(ds.to_torch(**options))
    loader = ds.to_torch(**options)
    for at, _ in enumerate(loader, 1):
        state = json.loads(json.dumps(loader.state_dict()))
        other = ds.to_torch(**options)
        other.load_state_dict(state)
        assert len(other) == len(expected)
        assert other.remaining == len(expected) - at
        assert ids(other) == expected[at:]


def test_a_state_saves_beside_a_checkpoint(ds, tmp_path):
    loader = ds.to_torch(batch_size=4, shuffle=True)
    given = iter(loader)
    next(given)
    model = torch.nn.Linear(2, 1)
    torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, tmp_path / "c.pt")
    rest = ids(given)
    saved = torch.load(tmp_path / "c.pt", weights_only=True)
    other = ds.to_torch(batch_size=4, shuffle=True)
    other.load_state_dict(saved["loader"])
    assert ids(other) == rest


def test_a_state_of_other_records_or_another_order_is_refused(ds, tmp_path):
    datum.write({"id": range(RECORDS)}, tmp_path / "other", progress=False)
    state = datum.load(tmp_path / "other").to_torch(batch_size=4).state_dict()
    with pytest.raises(datum.StateError, match="expected state of the same records"):
        ds.to_torch(batch_size=4).load_state_dict(state)
    with pytest.raises(datum.StateError, match="expected state of the same `seed`"):
        ds.to_torch(seed=1).load_state_dict(ds.to_torch(seed=2).state_dict())
    with pytest.raises(datum.StateError, match="expected a state from `state_dict`"):
        ds.to_torch().load_state_dict({"epoch": 1})


def test_a_loader_that_travels_goes_on_where_it_was(ds):
    loader = ds.to_torch(batch_size=4, shuffle=True, pin_memory=False)
    list(loader)
    other = pickle.loads(pickle.dumps(loader))
    assert other.pin_memory is False
    assert ids(other) == ids(loader)


# Mixing.
def test_loaders_are_mixed(ds):
    options = dict(batch_size=6, shuffle=True, columns=["id"], pin_memory=False)
    a, b = (ds.to_torch(split, **options) for split in ("train[:10]", "train[10:]"))
    mixed = datum.mix({a: 0.5, b: 0.5}, seed=3)
    assert isinstance(mixed, TorchLoader)
    assert mixed.pin_memory is False
    splits = {ds["train[:10]"]: 0.5, ds["train[10:]"]: 0.5}
    whole = datum.mix(splits, seed=3).to_torch(**options)
    assert ids(mixed) == ids(whole)
    assert repr(mixed).startswith("TorchLoader('train[:10]+train[10:]', 23 records")


def test_loaders_of_several_frameworks_are_not_mixed(ds):
    with pytest.raises(ValueError, match="expected loaders of one framework"):
        datum.mix({ds.to_torch(): 0.5, ds.to_numpy(): 0.5})


def test_make_loader_takes_records_in_an_order(ds):
    options = LoadOptions(batch_size=4)
    assert ids(make_loader(order_split(ds["train"], options), options)) == ids(
        ds.to_torch(batch_size=4)
    )


def following(place):
    return Place(place.epoch + 1, 0)


def begin(passes, base, worker):
    place = passes.next_start(base, worker, following)
    passes.take(base, worker, place)
    return place.epoch


def test_workers_with_one_seed_make_one_pass_in_any_order():
    passes = Passes()
    assert [begin(passes, 11, worker) for worker in (1, 0, 2)] == [0, 0, 0]
    assert [begin(passes, 22, worker) for worker in (0, 1)] == [1, 1]
    assert [begin(passes, 22, worker) for worker in (1, 0)] == [2, 2]  # they last, or have the same
    assert begin(passes, 33, 0) == 3  # the others were not there yet when it was broken off


def test_workers_that_come_at_the_same_time_find_the_same():
    passes = Passes()
    begin(passes, 11, 0)
    places = [passes.next_start(22, worker, following) for worker in range(3)]
    for worker, place in enumerate(places):
        passes.take(22, worker, place)
    assert [place.epoch for place in places] == [1, 1, 1]
    assert begin(passes, 33, 0) == 2


def test_what_the_main_process_says_counts_for_the_next_pass():
    passes = Passes()
    assert passes.begun_by_workers() is None
    begin(passes, 11, 0)
    assert passes.begun_by_workers() == Place()
    passes.set_next(Place(5, 30))
    assert passes.begun_by_workers() is None
    assert [passes.next_start(11, worker, following) for worker in (0, 1)] == [Place(5, 30)] * 2
    assert [begin(passes, 22, worker) for worker in (0, 1)] == [5, 5]
    passes.begin(Place(8))  # it reads itself
    assert begin(passes, 33, 0) == 9


def test_a_copy_goes_its_own_way():
    passes = Passes()
    begin(passes, 11, 0)
    for other in (copy.deepcopy(passes), pickle.loads(pickle.dumps(passes))):
        assert begin(other, 22, 0) == 1
    assert begin(passes, 33, 0) == 1


def test_processes_that_are_no_workers_go_their_own_way():
    passes = Passes()
    begin(passes, 11, 0)
    for _ in range(2):
        sent = bytes(ForkingPickler.dumps(passes))  # as to a process that is spawned
        assert begin(pickle.loads(sent), 22, 0) == 1
        child = os.fork()
        if child == 0:
            os._exit(begin(passes, 22, 0) * 10 + begin(passes, 33, 0))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12
    assert begin(passes, 22, 0) == 1


def test_one_process_warns():
    passes = Passes()
    assert [passes.is_first_to_warn() for _ in range(3)] == [True, False, False]


class Watched(IterableDataset):
    def __iter__(self):
        self.found = (find_collation() is not None, is_shared_out())
        return iter([1, 2])

    def __len__(self):
        self.found = (False, is_shared_out())
        return 2


class IterableDatasetShard:
    """Of the name that Accelerate's has."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        yield from self.dataset

    def __len__(self):
        return len(self.dataset)


def test_a_dataloader_that_makes_batches_is_seen():
    watched = Watched()
    for options, is_collated in (
        ({"batch_size": None}, False),
        ({"batch_size": 2}, True),
        ({"batch_size": 2, "collate_fn": list}, False),
    ):
        next(iter(DataLoader(watched, **options)))
        assert watched.found == (is_collated, False)
    iter(watched)
    assert watched.found == (False, False)


def test_what_gives_each_process_its_part_is_seen():
    watched = Watched()
    for use in (lambda given: next(iter(given)), len):
        use(IterableDatasetShard(watched))
        assert watched.found == (False, True)
        use(watched)
        assert watched.found == (False, False)


@pytest.fixture
def be_rank(monkeypatch):
    """Makes this process one of a group, or of none."""

    def be(index=None, count=None):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: index is not None)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: index)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: count)

    return be


def test_outside_of_a_dataloader_there_is_one_worker():
    assert find_worker() == (0, 1)
    assert not is_worker()


def test_a_worker_of_a_dataloader_knows_its_index(monkeypatch):
    info = SimpleNamespace(id=1, num_workers=3)
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: info)
    assert find_worker() == (1, 3)
    assert is_worker()


def test_without_a_process_group_there_is_one_rank():
    assert Rank()() == (0, 1)


def test_the_rank_is_found_when_it_is_asked_for(be_rank):
    rank = Rank()
    assert rank() == (0, 1)
    be_rank(2, 4)
    assert rank() == (2, 4)
    be_rank()
    assert rank() == (0, 1)


def test_a_process_without_a_group_has_the_rank_of_the_one_it_was_started_by(be_rank):
    be_rank(2, 4)
    data = pickle.dumps(Rank())
    be_rank()
    assert pickle.loads(data)() == (2, 4)
    assert pickle.loads(pickle.dumps(pickle.loads(data)))() == (2, 4)


def test_a_group_of_its_own_comes_first(be_rank):
    be_rank(2, 4)
    data = pickle.dumps(Rank())
    be_rank(0, 2)
    assert pickle.loads(data)() == (0, 2)


def test_a_rank_that_travels_before_there_is_a_group_is_found_there(be_rank):
    rank = pickle.loads(pickle.dumps(Rank()))
    be_rank(1, 2)
    assert rank() == (1, 2)


def test_a_build_without_torch_distributed_has_one_rank(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    monkeypatch.delattr(torch.distributed, "is_initialized")
    assert Rank()() == (0, 1)
