"""Results of a profile: plain values that describe the records of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datum._read.contents import Writer
from datum._write.report import FloatReport
from datum.errors import (
    Call,
    ManifestError,
    Option,
    Text,
    WriteError,
    count_of,
    format_bytes,
    inert,
    shell_word,
)
from datum.format import Compression, Manifest, Statistics
from datum.format.manifest import MANIFEST_NAME
from datum.format.statistics import MAX_DISTINCT, Counts, FeatureStatistics, Range
from datum.schema import Feature

__all__ = [
    "KINDS",
    "QUANTILES",
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
    "describe_feature",
    "percent",
    "plain",
    "save_statistics",
]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values between neighbouring edges; there is one more edge than counts.

    A bin includes its lower edge; the last bin also includes its upper edge.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"edges": list(self.edges), "counts": list(self.counts)}


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of numbers: elements, lengths or sizes; times count their unit.

    Attributes:
        count: Number of finite values.
        lowest, highest, mean: Of the finite values; None without any.
        std: Standard deviation.
        quantiles: Quantiles by share.
        zeros: Number of zeros.
        nan: Number of NaN values, not in `count`.
        infinite: Number of infinite values, not in `count`.
        histogram: Histogram of the values.
        is_exact: Whether `count`, extremes, `mean`, `nan` and `infinite` cover all records, from
            this call or from the manifest; the rest covers the records read.
    """

    count: int
    lowest: Any = None
    highest: Any = None
    mean: float | None = None
    std: float | None = None
    quantiles: Mapping[float, float] = field(default_factory=dict)
    zeros: int = 0
    nan: int = 0
    infinite: int = 0
    histogram: Histogram | None = None
    is_exact: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "count": self.count,
            "min": self.lowest,
            "max": self.highest,
            "mean": self.mean,
            "std": self.std,
            "quantiles": {f"{share:g}": value for share, value in self.quantiles.items()},
            "zeros": self.zeros,
            "nan": self.nan,
            "inf": self.infinite,
            "exact": self.is_exact,
            "histogram": self.histogram and self.histogram.to_json(),
        }


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """Frequencies of values.

    Attributes:
        distinct: Number of distinct values; an estimate, unless `is_counted`.
        values: Values and counts, the most frequent first; all of them, if `is_complete`.
        total: Number of values counted.
        names: Names of classes, including those that never occur.
        is_counted: Whether `distinct` was counted rather than estimated.
        is_complete: Whether `values` lists all values.
        is_exact: Whether the counts cover all records.
        is_known: Whether `distinct` covers all records though the counts do not; it is then a lower
            bound, unless `is_counted`.
    """

    distinct: int
    values: tuple[tuple[Any, int], ...]
    total: int
    names: Mapping[Any, str] = field(default_factory=dict)
    is_counted: bool = True
    is_complete: bool = True
    is_exact: bool = True
    is_known: bool = False

    def name_of(self, value: Any) -> str:
        """Return the name of a class, or the value as text.

        >>> ValueCounts(1, ((0, 5),), 5, names={0: "cat"}).name_of(0)
        'cat'
        """
        if value in self.names:
            return self.names[value]
        if isinstance(value, bytes):
            return value.decode(errors="backslashreplace")
        return str(value)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        values = [
            {"value": plain(value), "count": count}
            | ({"name": self.names[value]} if value in self.names else {})
            for value, count in self.values
        ]
        return {
            "distinct": self.distinct,
            "distinct_exact": self.is_counted,
            "total": self.total,
            "complete": self.is_complete,
            "exact": self.is_exact,
            "values": values,
        }


@dataclass(frozen=True, slots=True)
class ImageProfile:
    """Encoded images, from their headers.

    Attributes:
        formats: Count of images by format.
        channels: Count of images by number of channels.
        width, height, pixels: Distributions over readable images.
        unreadable: Number of values that are damaged or no images.
    """

    formats: Mapping[str, int]
    channels: Mapping[int, int]
    width: Distribution
    height: Distribution
    pixels: Distribution
    unreadable: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "formats": dict(self.formats),
            "channels": {str(key): count for key, count in self.channels.items()},
            "width": self.width.to_json(),
            "height": self.height.to_json(),
            "pixels": self.pixels.to_json(),
            "unreadable": self.unreadable,
        }


def plain(value: Any) -> Any:
    """Convert to a JSON value; bytes become text."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


# By severity: lost or wrong data first, mere slowness last.
KINDS: Mapping[str, str] = {
    "damage": "damaged shards",
    "leakage": "records in two splits",
    "empty-split": "splits without records",
    "unreadable-images": "images that cannot be read",
    "not-finite": "NaN and infinities",
    "unseen-label": "labels that training never sees",
    "empty-class": "classes without records",
    "imbalance": "class imbalance",
    "order": "records in the order of their labels",
    "duplicates": "duplicate records",
    "missing": "missing values",
    "constant": "constant features",
    "empty-text": "empty texts",
    "image-size": "odd image sizes",
    "small-shards": "tiny shards",
    "large-shards": "huge shards",
    "uneven-shards": "uneven shards",
}


@dataclass(frozen=True, slots=True)
class FeatureProfile:
    """Profile of one feature.

    Attributes:
        feature: Type, shape and encoding.
        present, missing: Number of records with and without it.
        is_exact: Whether these cover all records.
        numbers: Distribution of numeric elements; of complex numbers, their magnitudes.
        lengths: Distribution of lengths, if they differ; of sparse features, of value counts.
        sizes: Distribution of sizes in bytes of strings or image files.
        empty: Number of empty strings.
        counts: Frequencies of values, if they are few or short.
        images: Formats and sizes of images, also in features of bytes.
        filled: Share of a sparse array that holds values.
        examples: Some texts or byte strings, shortened.
        repeated: Share of records whose value equals that of the record before.
        is_label: Whether it is the class of a record or of objects in it, by its class names or by
            its own name.
    """

    feature: Feature
    present: int
    missing: int
    is_exact: bool = True
    numbers: Distribution | None = None
    lengths: Distribution | None = None
    sizes: Distribution | None = None
    empty: int = 0
    counts: ValueCounts | None = None
    images: ImageProfile | None = None
    filled: float | None = None
    examples: tuple[str | bytes, ...] = ()
    repeated: float | None = None
    is_label: bool = False

    @property
    def missing_share(self) -> float:
        """Share of records without it."""
        return self.missing / max(1, self.present + self.missing)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        found: dict[str, Any] = self.feature.to_json()
        found |= {"present": self.present, "missing": self.missing, "exact": self.is_exact}
        found["label"] = self.is_label
        for name in ("numbers", "lengths", "sizes", "counts", "images"):
            part = getattr(self, name)
            if part is not None:
                found["bytes" if name == "sizes" else name] = part.to_json()
        if self.sizes is not None:
            found["empty"] = self.empty
            found["examples"] = [plain(value) for value in self.examples]
        if self.filled is not None:
            found["filled"] = self.filled
        return found


@dataclass(frozen=True, slots=True)
class PayloadProfile:
    """Records without known features.

    Attributes:
        sizes: Distribution of payload sizes in bytes.
        kind: Apparent type: "text", "json", "protobuf", an image format, or "bytes".
        fields: Fields of protobuf messages: (number, type, number of records, an example).
        first: Start of the first payload.
        seen: Number of payloads read.
    """

    sizes: Distribution
    kind: str
    fields: tuple[tuple[int, str, int, str], ...]
    first: bytes
    seen: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values; bytes become hexadecimal."""
        fields = [
            {"field": number, "type": kind, "records": records, "example": example}
            for number, kind, records, example in self.fields
        ]
        return {
            "kind": self.kind,
            "seen": self.seen,
            "bytes": self.sizes.to_json(),
            "fields": fields,
            "first": self.first.hex(),
        }


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Records with the same bytes as another.

    Attributes:
        split: Split of the records.
        other: Split of their twins, the same or an earlier one.
        records: Number of records; within a split, without the first of each.
        examples: Pairs of record numbers: in `split`, and of the twin in `other`.
        is_exact: Whether all records of both splits were compared.
    """

    split: str
    other: str
    records: int
    examples: tuple[tuple[int, int], ...] = ()
    is_exact: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "split": self.split,
            "other": self.other,
            "records": self.records,
            "examples": [list(pair) for pair in self.examples],
            "exact": self.is_exact,
        }


@dataclass(frozen=True, slots=True)
class ProfileWarning:
    """A property of the data that may hurt training.

    Attributes:
        kind: One of the kinds of warnings, such as "imbalance".
        text: Description.
        hint: Suggested remedy.
        feature: Feature concerned, if any.
        split: Split concerned, if any.
        figure: Extent in short, for lists of warnings of one kind.
    """

    kind: str
    text: str
    hint: str
    feature: str | None = None
    split: str | None = None
    figure: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "kind": self.kind,
            "feature": self.feature,
            "split": self.split,
            "text": self.text,
            "hint": self.hint,
            "figure": self.figure,
        }

    @property
    def title(self) -> str:
        """Title of its kind."""
        return KINDS[self.kind]

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.split, self.feature)))
        return inert(f"{where}: {self.text}" if where else self.text)


@dataclass(frozen=True, slots=True)
class SplitProfile:
    """Profile of one split.

    Attributes:
        records, bytes, shards: Totals of the split.
        seen: Number of records read.
        features: Profiles by feature.
        payloads: Profile of the payloads, if no features are known.
    """

    records: int
    bytes: int
    shards: int
    seen: int
    features: Mapping[str, FeatureProfile]
    payloads: PayloadProfile | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        found: dict[str, Any] = {
            "records": self.records,
            "bytes": self.bytes,
            "shards": self.shards,
            "seen": self.seen,
            "features": {name: one.to_json() for name, one in self.features.items()},
        }
        if self.payloads is not None:
            found["payloads"] = self.payloads.to_json()
        return found


SHOWN_VALUES = 3


def percent(share: float) -> str:
    """Format a share in percent.

    >>> percent(0.125), percent(0.0001)
    ('12.5 %', '<0.1 %')
    """
    return "<0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def describe_feature(profile: FeatureProfile) -> str:
    """Describe the type and values of a feature."""
    feature = profile.feature
    shape = " x ".join("?" if n is None else str(n) for n in feature.shape)
    parts = [f"{feature.dtype} {shape}".rstrip()]
    if profile.missing:
        parts.append(f"{percent(profile.missing_share)} missing")
    if profile.images is not None:
        parts.append(_describe_images(profile.images))
    if profile.numbers is not None and profile.numbers.count:
        parts.append(_describe_range(profile.numbers))
    if profile.lengths is not None and profile.lengths.count:
        parts.append(f"lengths {profile.lengths.lowest:,} to {profile.lengths.highest:,}")
    if profile.sizes is not None and profile.sizes.count:
        parts.append(f"{profile.sizes.lowest:,} to {profile.sizes.highest:,} bytes")
    if profile.counts is not None and profile.counts.is_counted:
        parts.append(count_of(profile.counts.distinct, "value"))
    return ", ".join(parts)


def _describe_range(numbers: Distribution) -> str:
    mean = "" if numbers.mean is None else f", mean {numbers.mean:.6g}"
    return f"{_number(numbers.lowest)} to {_number(numbers.highest)}{mean}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _describe_images(images: ImageProfile) -> str:
    formats = ", ".join(images.formats) or "unreadable"
    if not images.width.count:
        return formats
    sides = (
        str(side.lowest) if side.lowest == side.highest else f"{side.lowest}-{side.highest}"
        for side in (images.width, images.height)
    )
    return f"{formats} of {' x '.join(sides)} pixels"


@dataclass(frozen=True, slots=True)
class Profile:
    """Result of `datum.profile`; its text is a summary.

    Attributes:
        path: Folder of the dataset.
        writer: Origin of its description: "datum", "tfds", "older datum" or, for none,
            "tfrecord files".
        version: Version of the format, if Datum wrote it.
        compression: Compression of the shards; None also if they differ.
        splits: Profiles by split.
        features: Profiles by feature over all splits. Samples are weighted by the records of their
            split.
        duplicates: Duplicate records.
        warnings: Properties that may hurt training, the most serious first.
        seconds: Duration of the call.
        floats: Features that were rounded to float32 when written.
    """

    path: Path
    writer: Writer
    version: int | None
    compression: Compression | None
    splits: Mapping[str, SplitProfile]
    features: Mapping[str, FeatureProfile]
    duplicates: tuple[Duplicates, ...]
    warnings: tuple[ProfileWarning, ...]
    seconds: float
    floats: FloatReport = field(default_factory=FloatReport)

    @property
    def records(self) -> int:
        """Records of all splits."""
        return sum(split.records for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """Size on disk."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def shards(self) -> int:
        """Number of shards."""
        return sum(split.shards for split in self.splits.values())

    @property
    def seen(self) -> int:
        """Number of records read."""
        return sum(split.seen for split in self.splits.values())

    @property
    def is_complete(self) -> bool:
        """Whether all records were read."""
        return self.seen == self.records

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `json.dumps`; non-finite numbers stay floats."""
        return {
            "path": str(self.path),
            "writer": self.writer,
            "version": self.version,
            "compression": self.compression,
            "records": self.records,
            "bytes": self.bytes,
            "shards": self.shards,
            "seen": self.seen,
            "complete": self.is_complete,
            "seconds": self.seconds,
            "splits": {name: split.to_json() for name, split in self.splits.items()},
            "features": {name: one.to_json() for name, one in self.features.items()},
            "duplicates": [one.to_json() for one in self.duplicates],
            "warnings": [warning.to_json() for warning in self.warnings],
            "rounded": list(self.floats.rounded),
        }

    def save(self) -> Path:
        """Save the statistics to the manifest, for later profiles that read only a sample.

        Nothing else changes. Raises WriteError unless the profile covers all records and features,
        and without a manifest, which `Dataset.save_manifest` writes.
        """
        return save_statistics(self)

    def __str__(self) -> str:
        seen = "all" if self.is_complete else f"{self.seen:,} of {self.records:,}"
        lines = [f"{self.path}: {count_of(self.records, 'record')}, {seen} read"]
        width = max(map(len, self.splits), default=0)
        for name, split in self.splits.items():
            records, shards = count_of(split.records, "record"), count_of(split.shards, "shard")
            lines.append(f"  {name:<{width}}  {records}, {shards}, {format_bytes(split.bytes)}")
        width = max(map(len, self.features), default=0)
        lines += ["features:"] if self.features else []
        lines += [
            f"  {name:<{width}}  {describe_feature(one)}" for name, one in self.features.items()
        ]
        lines += self.floats.lines()
        lines += ["warnings:"] if self.warnings else []
        return "\n".join(map(inert, [*lines, *(f"  {one}" for one in self.warnings)]))


def save_statistics(profile: Profile) -> Path:
    """Save the statistics of a profile to the manifest of its dataset; nothing else changes.

    Raises WriteError unless the profile covers all records and features of its splits, and without
    a manifest.
    """
    path = profile.path / MANIFEST_NAME
    if profile.writer != "datum":
        raise WriteError(
            "the dataset has no manifest to store statistics in",
            where=profile.path,
            hint=[
                Text(Call(f"datum.load({str(profile.path)!r}).save_manifest()"), " writes one"),
                Text(
                    Call(
                        f"datum.reshard({str(profile.path)!r}, 'copy')",
                        shell=f"datum reshard {shell_word(profile.path)} copy",
                    ),
                    " makes a copy that has one",
                ),
            ],
        )
    manifest = Manifest.load(path)
    for name, split in profile.splits.items():
        _check(profile, name, split, manifest)
    counted = {name: _statistics(split).to_json() for name, split in profile.splits.items()}
    replace(manifest, statistics={**manifest.statistics, **counted}).save(path)
    return path


def _check(profile: Profile, name: str, split: SplitProfile, manifest: Manifest) -> None:
    info = manifest.splits.get(name)
    if info is None or info.records != split.records:
        raise ManifestError(
            f"expected a profile of whole splits, as they are now, got {name!r}",
            where=profile.path,
            hint="profile the dataset again, without a part of a split",
        )
    missing = [feature for feature in manifest.schema if feature not in split.features]
    if split.seen != split.records or missing:
        got = f"no {missing[0]!r}" if missing else f"{split.seen:,} of {split.records:,} records"
        raise WriteError(
            f"expected a profile of all records and features, got {got}",
            where=profile.path,
            hint=Text("leave out ", Option("sample"), " and ", Option("columns")),
        )


def _statistics(split: SplitProfile) -> Statistics:
    features = {name: _of_feature(one) for name, one in split.features.items()}
    return Statistics(split.records, features)


def _of_feature(one: FeatureProfile) -> FeatureStatistics:
    has_counts = not one.feature.shape and not one.feature.dtype.startswith(("float", "bfloat"))
    return FeatureStatistics(
        one.present,
        one.missing,
        numbers=None if one.feature.dtype.startswith("complex") else _range(one.numbers),
        lengths=_range(one.lengths),
        bytes=_range(one.sizes),
        counts=_counts(one.counts) if has_counts and one.counts is not None else None,
    )


def _range(found: Distribution | None) -> Range | None:
    if found is None:
        return None
    total = (found.mean or 0.0) * found.count
    is_whole = isinstance(found.lowest, int)
    return Range(
        found.count,
        found.lowest,
        found.highest,
        round(total) if is_whole else total,
        found.nan,
        found.infinite,
    )


def _counts(found: ValueCounts) -> Counts:
    if not found.is_complete or found.distinct > MAX_DISTINCT:
        return Counts({}, MAX_DISTINCT)
    return Counts(dict(found.values))
