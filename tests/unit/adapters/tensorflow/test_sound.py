import numpy as np
import pytest

from datum.adapters.tensorflow import sound as module
from datum.adapters.tensorflow.sound import SoundOrder
from datum.reading.order import Order


@pytest.mark.parametrize("mode", ["none", "full", "blocks"])
@pytest.mark.parametrize("lost", [[], [0], [49], [3, 4, 5, 17], list(range(50))])
def test_the_others_come_in_the_order_they_had(mode, lost, monkeypatch):
    monkeypatch.setattr(module, "LOOKED_AT", 7)
    order = Order(50, mode, seed=3, window=16)
    sound = SoundOrder(order, np.array(lost, np.int64))
    assert sound.records == 50 - len(lost)
    for epoch in (0, 1, 0):
        whole = order.numbers(epoch, np.arange(50))
        expected = [n for n in whole.tolist() if n not in lost]
        assert sound.numbers(epoch, np.arange(sound.records)).tolist() == expected
        if len(expected) > 9:
            some = np.array([9, 2])
            assert sound.numbers(epoch, some).tolist() == [expected[9], expected[2]]
