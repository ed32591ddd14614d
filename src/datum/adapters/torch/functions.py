"""What PyTorch has for functions of the user: stacked tensors, and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datum._optional import require
from datum.loading.mapping import FrameworkTools
from datum.loading.randomness import GlobalGenerator

__all__ = ["TOOLS"]

torch: Any = require("torch", purpose="`to_torch`")


def _stack(values: Sequence[Any]) -> Any:
    """One tensor, as `torch.stack` makes it: any dtype and device, and with gradients."""
    first = values[0]
    if not isinstance(first, torch.Tensor):
        return None
    if any(not isinstance(v, torch.Tensor) or v.shape != first.shape for v in values):
        return None
    return torch.stack(list(values))


def _make_generator(seed: int) -> Any:
    return torch.Generator().manual_seed(seed)


# States as bytes, which can be compared. Only that of the CPU: seeding others starts their devices.
def _get_state() -> bytes:
    state: bytes = torch.default_generator.get_state().numpy().tobytes()
    return state


def _set_state(state: bytes) -> None:
    torch.default_generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _seed(number: int) -> None:
    torch.default_generator.manual_seed(number)


TOOLS = FrameworkTools(_stack, _make_generator, (GlobalGenerator(_get_state, _set_state, _seed),))
