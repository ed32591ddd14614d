import re
from pathlib import Path

import datum.profiling
from datum.profiling.kinds import KINDS


def test_every_kind_is_told_somewhere_and_every_kind_told_is_listed():
    told = set()
    for path in Path(datum.profiling.__file__).parent.glob("*warnings.py"):
        told |= set(re.findall(r'ProfileWarning\(\s*"([a-z-]+)"', path.read_text()))
    assert told == set(KINDS)
