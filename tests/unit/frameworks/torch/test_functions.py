"""What PyTorch has for functions of the user."""

import torch

from datum.frameworks.torch.tensors import TOOLS
from datum.loading.randomness import GlobalRandomness


def test_only_tensors_of_one_shape_are_stacked():
    stacked = TOOLS.stack([torch.ones(2, dtype=torch.bfloat16)] * 3)
    assert (stacked.dtype, stacked.shape) == (torch.bfloat16, (3, 2))
    assert TOOLS.stack([torch.ones(2), torch.ones(3)]) is None
    assert TOOLS.stack([torch.ones(2), [1.0, 1.0]]) is None
    assert TOOLS.stack([1, 2]) is None


def test_a_generator_follows_from_its_seed():
    one, same, other = (torch.rand(3, generator=TOOLS.make_generator(n)) for n in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_draws_from_the_generator_of_the_program_are_seen_and_set_back():
    randomness = GlobalRandomness(*TOOLS.generators)
    before = torch.get_rng_state()
    with randomness.seeded(3):
        drawn = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    randomness.settle()
    assert randomness.is_drawn
    with randomness.seeded(3):
        assert torch.equal(torch.rand(3), drawn)
