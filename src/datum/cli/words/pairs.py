"""Options that give a value to each of several names: `train=0.9,val=0.1`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from datum.errors import Message

__all__ = ["parse_pairs"]

# A comma parts two pairs only where a name and `=` follow, so that values may hold commas:
# "a=1,2,b=3" is {"a": "1,2", "b": "3"}.
_BETWEEN = re.compile(r",(?=\s*[^\s,=\[\]+]+\s*=(?!=))")


def parse_pairs(texts: Iterable[str], *, option: str = "option") -> dict[str, str]:
    """The values by name of an option that may be given several times, and hold several pairs.

    Spaces around names and values do not count. A pair without `=`, an empty side and a name given
    twice are a ValueError that calls the option by the name `option`.

    >>> parse_pairs(["train=0.9,val=0.1", "test=train[:10%]"])
    {'train': '0.9', 'val': '0.1', 'test': 'train[:10%]'}
    """
    pairs: dict[str, str] = {}
    for text in texts:
        for pair in _BETWEEN.split(text):
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not (name and equals and value):
                raise ValueError(
                    Message(
                        f"{option}: expected name=value, got {pair.strip()!r}",
                        hint="part several by commas, as in train=0.9,val=0.1",
                    )
                )
            if name in pairs:
                raise ValueError(f"{option}: expected {name!r} once, got it twice")
            pairs[name] = value
    return pairs
