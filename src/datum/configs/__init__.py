"""The paper's settings, as attributes of an object."""

from datum.configs.config_base import ConfigBase
from datum.configs.tfr_configs import (
    BucketConfigs,
    DatasetConfigs,
    Role,
    TFRReadConfigs,
    TFRWriteConfigs,
    options_for,
)

__all__ = [
    "BucketConfigs",
    "ConfigBase",
    "DatasetConfigs",
    "Role",
    "TFRReadConfigs",
    "TFRWriteConfigs",
    "options_for",
]
