"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from datum.format.threads import thread_count
from datum.format.wording import count_of, format_bytes

__all__ = ["Machine", "find_machine"]

_CPU_FILE = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, and the programs on it that matter.

    Attributes:
        cpu: what the processor calls itself.
        cores: how many this process may use.
        memory_bytes: that there are; None where the system does not tell.
        system: the operating system.
        versions: of Python and of the frameworks that were measured.

    >>> str(Machine("a processor", 2, 16 * 10**9, "Linux"))
    'a processor, 2 cores, 16.0 GB of memory, Linux'
    """

    cpu: str
    cores: int
    memory_bytes: int | None
    system: str
    versions: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        memory = [f"{format_bytes(self.memory_bytes)} of memory"] if self.memory_bytes else []
        return ", ".join([self.cpu, count_of(self.cores, "core"), *memory, self.system])


def find_machine(versions: Mapping[str, str]) -> Machine:
    """This machine."""
    told = {"Python": platform.python_version(), **versions}
    return Machine(_cpu(), thread_count(None), _memory(), platform.system(), told)


def _cpu() -> str:
    try:
        for line in _CPU_FILE.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass  # there is no such file on other systems
    return platform.processor() or platform.machine() or "unknown processor"


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
