"""Who iterates over a loader."""

from torch.utils.data import DataLoader, IterableDataset

from datum.frameworks.torch.loader import find_collation, is_shared_out


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
