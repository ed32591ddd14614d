"""A table whose column of image paths is named by the user."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from datum.errors import SourceError, suggest
from datum.sources.adopt import as_source, table_folder
from datum.sources.image_columns import ImageColumn, ImageColumns, wrap_part
from datum.sources.source import Part

__all__ = ["ImageTable"]


@dataclass(frozen=True, slots=True)
class ImageTable:
    """Images whose paths stand in a column; all other columns are features.

    `datum.write` finds such columns by itself where their files exist; this names the column, and
    the folder that its paths start from. Gives image, the other columns, and filename, the path as
    the table has it, which is also the key where no path occurs twice.

    Attributes:
        table: the path of a CSV, Parquet, Feather, JSON or JSON Lines file, a pandas DataFrame, an
            Arrow table, a dict of columns, or rows.
        path_column: the name of the column with the paths.
        root: The folder that paths are relative to, and must stay within, links followed: a path
            that leads out of it is a bad record. By default paths are relative to the folder of
            the table's file, or else the current folder, and may lead anywhere.
        split: what the split is called, if the table has none of its own.
    """

    table: Any
    _: KW_ONLY
    path_column: str
    root: str | os.PathLike[str] | None = None
    split: str = "train"

    def parts(self) -> dict[str, Part]:
        """The records of each split."""
        source = as_source(self.table)
        parts = dict(source.parts())
        if len(parts) == 1:
            parts = {self.split: next(iter(parts.values()))}
        root = Path(self.root or table_folder(self.table) or ".")
        return {split: self._with_images(split, part, root) for split, part in parts.items()}

    def _with_images(self, split: str, part: Part, root: Path) -> Part:
        names = list(part.schema or ())
        column = self.path_column
        if part.schema is not None and column not in names:
            hint = suggest(column, names, f"there are {', '.join(names)}")
            raise SourceError(f"expected a column {column!r} of paths, got none", hint=hint)
        for taken in ("image", "filename"):
            if taken in names and taken != column:
                raise SourceError(
                    f"expected no column {taken!r} beside {column!r}: it is what the images, or"
                    " their paths, are called",
                    hint="rename it, or leave it out",
                )
        chosen = ImageColumn(column, "image", "filename", {split: root})
        return wrap_part(split, part, ImageColumns((chosen,), is_confined=self.root is not None))
