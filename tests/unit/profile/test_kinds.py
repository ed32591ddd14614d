import re
from pathlib import Path

import datum._inspect.profile
from datum._inspect.profile.results import KINDS


def test_every_kind_is_told_somewhere_and_every_kind_told_is_listed():
    told = set()
    for path in Path(datum._inspect.profile.__file__).parent.glob("*warnings.py"):
        told |= set(re.findall(r'ProfileWarning\(\s*"([a-z-]+)"', path.read_text()))
    assert told == set(KINDS)
