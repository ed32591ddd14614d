"""A split is a map-style dataset of PyTorch and a data source of Grain, as it is."""

import numpy as np
import pytest

import datum
from datum import Feature

RECORDS = 103


@pytest.fixture(scope="module", params=[None, "gzip"])
def split(request, tmp_path_factory):
    """`x` counts from 0; the other features follow from it."""
    x = np.arange(RECORDS)
    source = {
        "x": x,
        "vector": np.stack([x, -x], axis=1).astype(np.float32),
        "name": [f"record {number}" for number in x],
    }
    folder = tmp_path_factory.mktemp("random_access") / "out"
    datum.write(source, folder, shards=3, shuffle=False, compression=request.param, progress=False)
    return datum.load(folder)["train"]


def check_batches(batches, torch, expected):
    """Each record once, its features beside one another, as tensors and lists of text."""
    seen = []
    for batch in batches:
        assert isinstance(batch["x"], torch.Tensor)
        assert (batch["x"].dtype, batch["vector"].dtype) == (torch.int64, torch.float32)
        numbers = batch["x"].tolist()
        assert batch["vector"].tolist() == [[number, -number] for number in numbers]
        assert batch["name"] == [f"record {number}" for number in numbers]
        seen += numbers
    assert sorted(seen) == expected
    return seen


# PyTorch.


@pytest.fixture(scope="module")
def torch():
    import torch
    import torch.utils.data

    return torch


@pytest.mark.parametrize(("workers", "method"), [(0, None), (2, "fork"), (2, "spawn")])
def test_a_data_loader_takes_a_split(split, torch, workers, method):
    assert split[7]["x"] == 7  # so that workers inherit open files where they can
    batches = torch.utils.data.DataLoader(
        split,
        batch_size=10,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context=method,
        persistent_workers=workers > 0,  # a spawned process takes seconds to start
        generator=torch.Generator().manual_seed(1),
    )
    assert len(batches) == 11
    first = check_batches(batches, torch, list(range(RECORDS)))
    second = check_batches(batches, torch, list(range(RECORDS)))
    assert list(range(RECORDS)) != first != second


def test_any_order_of_workers_is_that_of_none(split, torch):
    def order(workers):
        loader = torch.utils.data.DataLoader(
            split,
            batch_size=8,
            shuffle=True,
            num_workers=workers,
            generator=torch.Generator().manual_seed(7),
        )
        return [batch["x"].tolist() for batch in loader]

    assert order(0) == order(2)


def test_samplers_of_all_kinds_ask_for_records(split, torch):
    data = torch.utils.data
    weights = [1.0 if number < 5 else 0.0 for number in range(RECORDS)]
    drawn = data.WeightedRandomSampler(weights, 40)
    loader = data.DataLoader(split, batch_size=7, sampler=drawn)
    assert {number for batch in loader for number in batch["x"].tolist()} <= set(range(5))
    backwards = data.DataLoader(split, batch_size=50, sampler=range(RECORDS - 1, -1, -1))
    assert [n for batch in backwards for n in batch["x"].tolist()] == [*range(RECORDS)][::-1]
    in_batches = data.DataLoader(split, batch_sampler=[[3, 1], [4], [1, 5, 9]])
    assert [batch["x"].tolist() for batch in in_batches] == [[3, 1], [4], [1, 5, 9]]
    alone = data.DataLoader(split, batch_size=None, sampler=[5, 3])
    assert [int(record["x"]) for record in alone] == [5, 3]


def test_ranks_share_a_split(split, torch):
    seen = []
    for rank in range(3):
        sampler = torch.utils.data.DistributedSampler(split, num_replicas=3, rank=rank)
        for batch in torch.utils.data.DataLoader(split, batch_size=8, sampler=sampler):
            seen += batch["x"].tolist()
    assert set(seen) == set(range(RECORDS))


def test_subsets_and_joined_splits_are_datasets_too(split, torch):
    data = torch.utils.data
    subset = data.Subset(split, [9, 4, 2])
    loader = data.DataLoader(subset, batch_size=3)
    assert [batch["x"].tolist() for batch in loader] == [[9, 4, 2]]
    joined = data.ConcatDataset([split[:5], split[90:]])
    assert check_batches(data.DataLoader(joined, batch_size=4), torch, [*range(5), *range(90, 103)])
    first, second = data.random_split(split, [100, 3])
    assert (len(first), len(second)) == (100, 3)


def test_tensors_are_numbers_of_records(split, torch):
    assert split[torch.tensor(5)]["x"] == 5
    assert [record["x"] for record in split[torch.tensor([5])]] == [5]
    assert [record["x"] for record in split[torch.tensor([5, -1])]] == [5, RECORDS - 1]
    assert [record["x"] for record in split[[torch.tensor(5), torch.tensor(2)]]] == [5, 2]
    with pytest.raises(TypeError, match="mask"):
        split[torch.ones(RECORDS, dtype=torch.bool)]


def test_the_arrays_of_a_record_can_be_tensors_that_are_written_to(split, torch):
    record = split[3]
    tensor = torch.from_numpy(record["vector"])
    tensor += 1
    assert record["vector"].tolist() == [4, -2]
    assert split[3]["vector"].tolist() == [3, -3]


# Grain.


@pytest.fixture(scope="module")
def grain():
    import grain

    return grain


def test_a_split_is_a_data_source(split, grain):
    assert isinstance(split, grain.sources.RandomAccessDataSource)


def test_a_map_dataset_takes_a_split(split, grain):
    numbers = grain.MapDataset.source(split).shuffle(seed=3).map(lambda record: int(record["x"]))
    assert sorted(numbers) == list(range(RECORDS))
    assert list(numbers) != list(range(RECORDS))
    batches = grain.MapDataset.source(split).batch(10, drop_remainder=True)
    assert len(batches) == 10
    assert batches[1]["x"].tolist() == list(range(10, 20))
    assert batches[1]["vector"].shape == (10, 2)
    read = grain.ReadOptions(num_threads=4, prefetch_buffer_size=16)
    ahead = grain.MapDataset.source(split).to_iter_dataset(read)
    assert [record["x"] for record in ahead] == list(range(RECORDS))


def make_data_loader(grain, split):
    return grain.DataLoader(
        data_source=split,
        sampler=grain.samplers.IndexSampler(
            num_records=len(split), shuffle=True, seed=5, num_epochs=1
        ),
        operations=[grain.transforms.Batch(batch_size=10)],
        worker_count=0,
    )


def test_a_data_loader_of_grain_takes_a_split_and_resumes(split, grain):
    batches = [batch["x"].tolist() for batch in make_data_loader(grain, split)]
    assert sorted(x for batch in batches for x in batch) == list(range(RECORDS))
    iterator = iter(make_data_loader(grain, split))
    for _ in range(4):
        next(iterator)
    state = iterator.get_state()
    resumed = iter(make_data_loader(grain, split))
    resumed.set_state(state)
    assert [batch["x"].tolist() for batch in resumed] == batches[4:]


# Pictures.


def test_pictures_come_decoded_and_text_as_text(tmp_path, torch):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
    schema = {"image": Feature("uint8", (4, 5, 3), encoding="image"), "label": Feature("int64")}
    rows = [{"image": one, "label": label} for label, one in enumerate(pixels)]
    datum.write(rows, tmp_path / "out", schema=schema, shuffle=False, progress=False)
    split = datum.load(tmp_path / "out")["train"]
    (batch,) = torch.utils.data.DataLoader(split, batch_size=6)
    assert batch["image"].dtype == torch.uint8
    assert np.array_equal(batch["image"].numpy(), pixels)
    assert batch["label"].tolist() == list(range(6))
