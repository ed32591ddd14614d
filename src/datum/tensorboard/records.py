"""Records of any dataset as samples: image, label, boxes and mask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged
from datum.errors import SchemaError, SourceError, suggest
from datum.images import ImageError, read_header, sniff_format

__all__ = [
    "CHANNELS",
    "IMAGE_NAMES",
    "Choice",
    "ClassNames",
    "Roles",
    "Row",
    "count_names",
    "describe_label",
    "find_roles",
    "iterate_records",
    "last_part",
    "name_class",
]

# Names of images: last part in lower case, the most likely first.
IMAGE_NAMES = ("image", "images", "img", "encoded", "picture", "photo", "pixels", "x", "inputs")
CHANNELS = (1, 3, 4)  # grey, colour, colour with transparency
_PARTS = ("inputs", "targets", "weights")  # the members of a tuple in Keras


@dataclass(frozen=True, slots=True)
class Row:
    """One record, whose values are converted to NumPy on access.

    Attributes:
        columns: Values of an element of the dataset by name.
        at: Number of the record within the batch; None if the element is no batch.
    """

    columns: Mapping[str, Any]
    at: int | None = None

    def __getitem__(self, name: str) -> Any:
        """Return an array, `str` or `bytes`; None if absent."""
        value = self._pick(name)
        return None if value is None or self._is_absent(name) else _to_numpy(value)

    def _pick(self, name: str) -> Any:
        value = self.columns.get(name)
        return value if self.at is None else _pick(value, self.at)

    def _is_absent(self, name: str) -> bool:
        """Return whether the column `<name>_present` marks a feature as absent."""
        present = self._pick(f"{name}_present")
        marker = None if present is None else np.asarray(_to_numpy(present))
        return marker is not None and marker.dtype == np.bool_ and marker.ndim == 0 and not marker


def last_part(name: str) -> str:
    """Part of a name after the last slash, in lower case."""
    return name.rpartition("/")[2].lower()


def iterate_records(data: Any, *, image: str | None = None) -> Iterator[Row]:
    """Iterate over the records of a `tf.data.Dataset`, of any other iterable, or of one batch.

    An element is a dict, whose nested dicts get names such as "objects/bbox", or a tuple of dicts
    and values, where values are named inputs, targets and weights. An element is a batch if all
    values have one length, and `image`, else a value with the name of an image, else any value
    looks like several images.
    """
    try:
        elements: Iterable[Any] = iter([data] if isinstance(data, Mapping) else data)
    except TypeError:
        raise SourceError(
            f"expected a tf.data.Dataset or an iterable of records, got {type(data).__name__}"
        ) from None
    for number, element in enumerate(elements):
        columns = _name_columns(element, number)
        if _is_batch(columns, image):
            count = max(map(_length, columns.values()))
            yield from (Row(columns, at) for at in range(count))
        else:
            yield Row(columns)


def _name_columns(element: Any, number: int) -> dict[str, Any]:
    if isinstance(element, str | bytes | int | float | None):
        raise SourceError(
            f"element {number}: expected a dict or a tuple of (inputs, targets), got {element!r}",
            hint='pass a split of the dataset, ds["train"] or ds.to_tf("train")',
        )
    if isinstance(element, Mapping):
        return dict(_flatten(element))
    if not isinstance(element, tuple | list):
        return {_PARTS[0]: element}
    columns: dict[str, Any] = {}
    for at, part in enumerate(element):
        name = _PARTS[at] if at < len(_PARTS) else str(at)
        if isinstance(part, Mapping):
            found = dict(_flatten(part))
            columns |= {(f"{name}/{key}" if key in columns else key): found[key] for key in found}
        elif isinstance(part, tuple):
            columns |= {f"{name}/{place}": value for place, value in enumerate(part)}
        else:
            columns[name] = part
    return columns


def _flatten(record: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _is_batch(columns: Mapping[str, Any], image: str | None) -> bool:
    given = {name: value for name, value in columns.items() if value is not None}
    if not given or any(_rank(value) == 0 for value in given.values()):
        return False
    if len({_length(value) for value in given.values()}) > 1:
        return False
    named = [name for name in given if last_part(name) in IMAGE_NAMES]
    telling = [image] if image in given else named or list(given)
    return any(_holds_images(given[name]) for name in telling)


def _holds_images(column: Any) -> bool:
    """Return whether a column looks like several images rather than one."""
    rank = _rank(column)
    if isinstance(column, Masked):
        return _holds_images(column.values)
    if rank == 1:
        values = (_to_numpy(_pick(column, at)) for at in range(min(_length(column), 8)))
        return any(_is_image(value) for value in values)
    if rank == 3:
        return column.shape[-1] not in CHANNELS
    return rank == 4


def _is_image(value: Any) -> bool:
    if isinstance(value, bytes):
        return sniff_format(value) is not None
    return isinstance(value, np.ndarray) and value.ndim == 3 and value.shape[-1] in CHANNELS


def _rank(value: Any) -> int:
    if isinstance(value, Masked):
        return _rank(value.values)
    if isinstance(value, BytesColumn | list | tuple):
        return 1
    if hasattr(value, "dense_shape"):
        return len(value.dense_shape)
    return len(getattr(value, "shape", ()))


def _length(value: Any) -> int:
    if value is None:
        return 0
    if hasattr(value, "nrows"):  # a tf.RaggedTensor
        return int(value.nrows())
    if hasattr(value, "dense_shape"):
        return int(value.dense_shape[0])
    return len(value)


def _pick(column: Any, at: int) -> Any:
    """Value of one record of a batch."""
    if column is None or not hasattr(column, "dense_shape"):
        return None if column is None else column[at]
    indices = np.asarray(column.indices)
    return _positions(column, indices[:, 0] == at)


def _positions(sparse: Any, rows: Any = slice(None)) -> Any:
    """Positions of non-zero values of a sparse vector: the class ids of a label."""
    is_set = np.asarray(sparse.values)[rows] != 0
    return np.asarray(sparse.indices)[rows][is_set, -1]


def _to_numpy(value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value
    if hasattr(value, "dense_shape"):
        return _positions(value)
    if isinstance(value, Ragged):
        return value.to_padded()
    if hasattr(value, "to_tensor"):  # a tf.RaggedTensor of an image with rows of equal length
        value = value.to_tensor()
    if hasattr(value, "numpy"):
        value = value.numpy()
        return value if isinstance(value, bytes) else np.asarray(value)
    return np.asarray(value, object if _holds_text(value) else None)


def _holds_text(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(one, str | bytes) for one in value)


Choice = str | Literal[False] | None  # the name of a feature; False for none; None to find one

# Last parts of names in lower case; the first that exists is used.
_MASKS = ("mask", "masks", "segmentation", "segmentation_mask", "seg", "trimap", "annotation")
_LABELS = (
    "label",
    "labels",
    "class",
    "classes",
    "category",
    "categories",
    "target",
    "targets",
    "y",
)
_BOXES = ("bbox", "bboxes", "box", "boxes")
_SIDES = ("ymin", "xmin", "ymax", "xmax")


@dataclass(frozen=True, slots=True)
class Roles:
    """The names of the features to draw.

    Attributes:
        image: Name of the image.
        labels: Features in the caption.
        boxes: One feature of four sides, or four features; empty without boxes.
        box_label: Class of each box.
        mask: Class of each pixel.
    """

    image: str
    labels: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    box_label: str | None = None
    mask: str | None = None


def find_roles(
    row: Row,
    *,
    image: str | None = None,
    label: Choice | Sequence[str] = None,
    boxes: Choice = None,
    mask: Choice = None,
) -> Roles:
    """Return the named features, and find the others by names and values."""
    names = [name for name in row.columns if not _is_presence(name, row)]
    image = _check("image", image, names) if image is not None else _find_image(row, names)
    others = [name for name in names if name != image]
    if boxes is None:
        sides = _find_boxes(row, others)
    else:
        sides = _named_boxes(boxes, names) if boxes is not False else ()
    others = [name for name in others if name not in sides]
    if mask is None:
        mask = _find_mask(row, others, _size(row[image]))
    elif mask is not False:
        mask = _check("mask", mask, names)
    labels = _named_labels(label, names) if label else ()
    if label is None:
        labels = _rank_by_name([name for name in others if name != mask], _LABELS)
        labels = tuple(name for name in labels if np.ndim(row[name]) <= 1)
    box_label = _find_box_label(row, labels, sides) if sides else None
    labels = tuple(name for name in labels if name != box_label)
    return Roles(image, labels if label else labels[:1], sides, box_label, mask or None)


def _is_presence(name: str, row: Row) -> bool:
    return name.endswith("_present") and name.removesuffix("_present") in row.columns


def _rank_by_name(names: Iterable[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Names whose last part is in the list, in its order."""
    found = [name for name in names if last_part(name) in wanted]
    return tuple(sorted(found, key=lambda name: wanted.index(last_part(name))))


def _check(option: str, name: Any, names: Sequence[str]) -> str:
    if name in names:
        return str(name)
    hint = suggest(name, names, f"there are {', '.join(map(repr, names))}")
    raise SchemaError(
        f"`{option}`: expected the name of a feature, got {name!r}", hint=hint, feature=str(name)
    )


def _find_image(row: Row, names: Sequence[str]) -> str:
    named = _rank_by_name(names, IMAGE_NAMES)
    fitting = [name for name in named if row[name] is None or _may_be_image(row[name], at_least=2)]
    if fitting:
        return fitting[0]
    found = [name for name in names if _may_be_image(row[name]) and last_part(name) not in _MASKS]
    if len(found) == 1:
        return found[0]
    if found:
        got, hint = ", ".join(map(repr, found)), f"image={found[0]!r} takes the first"
    else:
        got = ", ".join(f"{name!r} ({_describe(row[name])})" for name in names) or "no features"
        hint = "an image is height x width x 1, 3 or 4 channels, or an encoded file"
    raise SchemaError(f"expected one feature that is an image, got {got}", hint=hint)


def _may_be_image(value: Any, *, at_least: int = 3) -> bool:
    if isinstance(value, bytes):
        return sniff_format(value) is not None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufV":
        return False
    return at_least <= value.ndim <= 3 and (value.ndim == 2 or value.shape[-1] in CHANNELS)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return "absent" if value is None else type(value).__name__


def _size(value: Any) -> tuple[int, ...]:
    """Height and width of an image; empty for other values."""
    if isinstance(value, bytes):
        try:
            header = read_header(value)
        except ImageError:
            return ()
        return header.height, header.width
    return np.shape(value)[:2] if np.ndim(value) in (2, 3) else ()


def _find_mask(row: Row, names: Sequence[str], size: tuple[int, ...]) -> str | None:
    named = _rank_by_name(names, _MASKS)
    found = [name for name in named if _is_mask(row[name], size, "biuf")]
    others = [name for name in names if name not in named]
    found += _rank_by_name((n for n in others if _is_mask(row[n], size, "biu")), _LABELS)
    if found:
        return found[0]
    found = [name for name in others if _is_mask(row[name], size, "iu")]
    return found[0] if len(found) == 1 else None


def _is_mask(value: Any, size: tuple[int, ...], kinds: str) -> bool:
    """Return whether a value has one class id per pixel of the image."""
    if not size or _size(value) != size:
        return False
    if isinstance(value, bytes):
        header = read_header(value)
        return header.channels == 1 or header.has_palette
    return value.dtype.kind in kinds and value.shape[2:] in ((), (1,))


def _find_boxes(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if last_part(name) == _SIDES[0]:
            sides = tuple(name[: -len(_SIDES[0])] + side for side in _SIDES)
            if set(sides) <= set(names):
                return sides
    for name in _rank_by_name(names, _BOXES):
        shape = np.shape(row[name])
        if len(shape) in (1, 2) and shape[-1] in (0, 4):
            return (name,)
    return ()


def _named_boxes(name: str, names: Sequence[str]) -> tuple[str, ...]:
    sides = tuple(f"{name}/{side}" for side in _SIDES)
    return sides if set(sides) <= set(names) else (_check("boxes", name, names),)


def _named_labels(label: str | Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    given = (label,) if isinstance(label, str) else tuple(label)
    return tuple(_check("label", name, names) for name in given)


def _find_box_label(row: Row, labels: Sequence[str], sides: Sequence[str]) -> str | None:
    """Label with one value per box; of several, the one whose name is closest to theirs."""
    first = row[sides[0]]
    count = 0 if first is None else np.size(first) // (4 if len(sides) == 1 else 1)
    fitting = [name for name in labels if _is_list(row[name], count)]
    fitting.sort(key=lambda name: (-_shared(name, sides[0]), not name.endswith("s")))
    return fitting[0] if fitting else None


def _is_list(value: Any, count: int) -> bool:
    """Return whether a value is a list of `count` ids or names."""
    return np.shape(value) == (count,) and np.asarray(value).dtype.kind != "f"


def _shared(name: str, other: str) -> int:
    """Number of equal leading parts of two names."""
    pairs = zip(name.split("/")[:-1], other.split("/"), strict=False)
    same = [a == b for a, b in pairs]
    return same.index(False) if False in same else len(same)


MAX_NAMES = 8  # of one label; a caption has no room for more
_MIN_SHARE = 0.05  # least share of a class shown of a mixed label

Names = Sequence[str] | None


@dataclass(frozen=True, slots=True)
class ClassNames:
    """Class names by feature, or the same for all."""

    of_features: Mapping[str, Sequence[str]]
    of_all: Names = None

    @classmethod
    def read(cls, given: Any) -> ClassNames:
        """Make them from a list, a dict of lists, or the `metadata` of a dataset."""
        if given is None:
            return cls({})
        if not isinstance(given, Mapping):
            return cls({}, _as_names(given, "class_names"))
        found = {}
        for feature, names in given.items():
            if isinstance(names, Mapping):
                names = names.get("class_names")
            if names is not None:
                found[str(feature)] = _as_names(names, f"class_names[{feature!r}]")
        return cls(found)

    def of(self, feature: str) -> Names:
        """Return the class names of a feature; in tuples without names, of the only one or "label".

        >>> ClassNames.read({"label": ["cat", "dog"]}).of("targets")
        ['cat', 'dog']
        """
        if feature in self.of_features:
            return self.of_features[feature]
        if feature == "targets" and len(self.of_features) == 1:
            return next(iter(self.of_features.values()))
        return self.of_features.get("label", self.of_all) if feature == "targets" else self.of_all


def _as_names(given: Any, where: str) -> list[str]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise SchemaError(f"`{where}`: expected a list of names, got {given!r}")
    return [
        name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in given
    ]


def name_class(value: Any, names: Names = None) -> str:
    """Return the name of an id, the id as text without a name, or a text unchanged.

    >>> name_class(1, ["cat", "dog"]), name_class(7, ["cat", "dog"]), name_class(b"bird")
    ('dog', '7', 'bird')
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, bool | np.bool_) and names is None:
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        if not float(value).is_integer():
            return f"{value:.4g}"
        value = int(value)
    is_id = isinstance(value, int | np.integer | np.bool_)
    if is_id and names is not None and 0 <= value < len(names):
        return names[int(value)]
    return str(value)


def describe_label(value: Any, names: Names = None) -> str:
    """Describe a label: one class, several, or shares of classes.

    A vector of zeros and ones, as long as the names or at least three values long, marks classes.
    A vector of fractions holds shares of classes. Other numbers are ids.

    >>> describe_label([0, 1, 0], ["cat", "dog", "cow"]), describe_label([0.7, 0.3, 0.0])
    ('dog', '0 0.70, 1 0.30')
    >>> describe_label([2, 0], ["cat", "dog", "cow"]), describe_label(2.5)
    ('cow, cat', '2.5')
    """
    if value is None:
        return "no label"
    array = np.asarray(value, object if isinstance(value, str | bytes) else None)
    if array.dtype.kind in "SU":
        array = array.astype(object)
    if array.ndim == 0:
        return name_class(array.item(), names)
    if array.ndim != 1 or array.dtype.kind not in "biufO":
        return f"{array.dtype} of shape {array.shape}"
    if array.dtype.kind != "O" and _marks_classes(array, names):
        return _join([name_class(at, names) for at in np.flatnonzero(array).tolist()])
    if array.dtype.kind == "f" and len(array) > 1 and _holds_shares(array):
        return _join_shares(array, names)
    return _join([name_class(one, names) for one in array[: MAX_NAMES + 1].tolist()], len(array))


def count_names(names: Iterable[str]) -> str:
    """Count names, the most frequent first.

    >>> count_names(["cell", "platelet", "cell"])
    '2 cell, 1 platelet'
    """
    counts = sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0]))
    return _join([f"{count} {name}" for name, count in counts])


def _marks_classes(array: NDArray[Any], names: Names) -> bool:
    is_long_enough = len(array) == len(names) if names is not None else len(array) > 2
    return is_long_enough and bool(np.isin(array, (0, 1)).all())


def _holds_shares(array: NDArray[Any]) -> bool:
    return bool(((array >= 0) & (array <= 1)).all() and (array % 1 != 0).any())


def _join_shares(array: NDArray[Any], names: Names) -> str:
    order = np.argsort(-array, kind="stable")
    order = order[: max(1, int((array >= _MIN_SHARE).sum()))]
    return _join([f"{name_class(at, names)} {array[at]:.2f}" for at in order.tolist()])


def _join(words: Sequence[str], count: int | None = None) -> str:
    count = len(words) if count is None else count
    if not words:
        return "none"
    more = f" and {count - MAX_NAMES} more" if count > MAX_NAMES else ""
    return ", ".join(words[:MAX_NAMES]) + more
