"""Generators that a program shares: seeded, watched, and set back."""

# ruff: noqa: NPY002

import pickle
import random

import numpy as np

from datum._load.functions import GlobalRandomness, make_seed


def draw():
    return random.random(), np.random.rand()


def test_numbers_follow_from_the_seed_and_others_are_left_as_they_were():
    random.seed(1)
    np.random.seed(1)
    expected = [draw() for _ in range(2)]
    random.seed(1)
    np.random.seed(1)
    randomness = GlobalRandomness()
    first = draw()
    with randomness.seeded(make_seed(3)):
        inside = draw()
    assert [first, draw()] == expected
    with randomness.seeded(make_seed(3)):
        assert draw() == inside
    with randomness.seeded(make_seed(4)):
        assert draw() != inside


def test_it_is_found_out_whether_anything_was_drawn():
    for function, is_drawn in ((draw, True), (random.random, True), (list, False)):
        randomness = GlobalRandomness()
        assert randomness.is_drawn is None
        with randomness.seeded(5):
            function()
        randomness.settle()
        assert randomness.is_drawn is is_drawn


def test_in_another_process_it_is_about_the_generators_there():
    randomness = pickle.loads(pickle.dumps(GlobalRandomness()))
    with randomness.seeded(5):
        one = draw()
    with GlobalRandomness().seeded(5):
        assert draw() == one
