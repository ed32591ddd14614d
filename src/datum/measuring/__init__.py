"""What a pipeline spends its time on, measured stage by stage on this machine."""

from datum.measuring.measurement import Measurement
from datum.measuring.request import measure

__all__ = ["Measurement", "measure"]
