"""What the records of a dataset are like: distributions, classes, duplicates, and warnings."""

from datum.profiling.dataset_profile import Profile
from datum.profiling.distributions import Distribution, Histogram, ImageProfile, ValueCounts
from datum.profiling.making import profile
from datum.profiling.results import (
    Duplicates,
    FeatureProfile,
    PayloadProfile,
    ProfileWarning,
    SplitProfile,
)

__all__ = [
    "Distribution",
    "Duplicates",
    "FeatureProfile",
    "Histogram",
    "ImageProfile",
    "PayloadProfile",
    "Profile",
    "ProfileWarning",
    "SplitProfile",
    "ValueCounts",
    "profile",
]
