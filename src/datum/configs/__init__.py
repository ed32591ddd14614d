"""Settings of the paper, as attributes of objects."""

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
