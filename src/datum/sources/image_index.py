"""The images of a folder, found by the names that tables and lists give them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from datum.sources.image_part import UnusableRecordError
from datum.sources.listing import IMAGE_EXTENSIONS, FoundFile, as_text, list_files, open_folder

__all__ = ["ImageIndex"]


@dataclass(frozen=True, slots=True)
class ImageIndex:
    """Files of a folder by name, and by name without extension.

    Attributes:
        folder: where they are.
        files: all of them, by their path within the folder.
        stems: the names of images, by name without extension.
    """

    folder: Path
    files: dict[str, FoundFile]
    stems: dict[str, list[str]]

    @classmethod
    def of_folder(cls, folder: str | os.PathLike[str]) -> ImageIndex:
        """List a folder; raises SourceError if there is none."""
        path = open_folder(folder)
        files = {file.name: file for file in list_files(path)}
        stems: dict[str, list[str]] = {}
        for name in files:
            stem, dot, extension = name.rpartition(".")
            if f"{dot}{extension.lower()}" in IMAGE_EXTENSIONS:
                stems.setdefault(stem, []).append(name)
        return cls(path, files, stems)

    def find(self, name: str, extension: str | None = None) -> FoundFile:
        """The file that is meant by a name, with or without its extension, of any case.

        Raises UnusableRecordError if there is none, or more than one.
        """
        plain = PurePosixPath(name.replace("\\", "/")).as_posix()
        if extension is None:
            names = [plain] if plain in self.files else self.stems.get(plain, [])
        else:
            names = self._with_extension(plain, extension)
        if len(names) == 1:
            return self.files[names[0]]
        wanted = f"an image {plain + (extension or '')!r}"
        if names:
            listed = " and ".join(map(as_text, names))
            raise UnusableRecordError(
                f"expected {wanted}, got {listed}",
                where=self.folder,
                hint="give the `extension`",
            )
        raise UnusableRecordError(f"expected {wanted}, got no such file", where=self.folder)

    def _with_extension(self, plain: str, extension: str) -> list[str]:
        ending = extension if extension.startswith(".") or not extension else f".{extension}"
        for name in (plain + ending, plain):
            if name in self.files and name.endswith(ending):
                return [name]
        found = self.stems.get(plain, [])
        return [name for name in found if name.lower().endswith(ending.lower())]

    def path_of(self, file: FoundFile) -> Path:
        """Where a file of this folder is."""
        return Path(f"{self.folder}/{file.name}")
