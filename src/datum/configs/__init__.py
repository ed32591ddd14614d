"""The paper's settings, as attributes of an object."""

from datum.configs.config_base import ConfigBase
from datum.configs.options import Role, options_for
from datum.configs.reading import BucketConfigs, DatasetConfigs, TFRReadConfigs
from datum.configs.writing import TFRWriteConfigs

__all__ = [
    "BucketConfigs",
    "ConfigBase",
    "DatasetConfigs",
    "Role",
    "TFRReadConfigs",
    "TFRWriteConfigs",
    "options_for",
]
