"""Text files of any encoding, read as UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import SourceError

__all__ = [
    "TextReader",
    "check_encoding",
    "other_encoding",
]

_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, which starts with the same bytes
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

_JUDGED = 20_000  # bytes to guess an encoding from
_FIRST_LETTERS = frozenset("éèêàâáäöüåæøœóíúç")
_LAST_LETTERS = frozenset("éèêëàáäöüåæøóíúãõñôùâ")
_SHORTENED = re.compile(r"(?:[stdm]|re|ve|ll)(?![^\W\d_])")  # don't, it's, we'll
_ELIDED = re.compile(r"(?:^|[^\W\d_]?[^\w])(?:[ldjnsmtcO]|qu)$", re.IGNORECASE)  # l'eau, O'Brien
_SIGNS = "£€°©®™½¼·•§«»"
_LETTERS = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßŒœŠšŽžð")


def check_encoding(name: str) -> str:
    """Return the canonical name of an encoding; raise SourceError if Python does not know it."""
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # raises for codecs from bytes to bytes
    except (LookupError, TypeError, ValueError):
        raise SourceError(
            f"expected an encoding that Python knows, got {name!r}", hint="'utf-8', 'cp1252'"
        ) from None
    return found.name


class TextReader:
    """Reads a file in chunks of UTF-8, each in memory of its own.

    Attributes:
        encoding: The encoding of the file: as passed, or that of its byte order mark, or UTF-8.
        crc: The checksum of all bytes read so far.
    """

    def __init__(self, path: Path, encoding: str | None) -> None:
        self.path = path
        self.encoding = encoding
        self.crc = 0

    def runs(self, file: IO[bytes], run_bytes: int) -> Iterator[tuple[NDArray[np.uint8], bool]]:
        """Yield chunks of about `run_bytes` bytes of text, and whether each is the last."""
        decoder: Any = None
        offset = 0
        for raw, is_last in _read_runs(file, run_bytes):
            self.crc = _core.crc32c(raw, self.crc)
            if offset == 0:
                self.encoding = self.encoding or _find_bom(raw) or "utf-8"
                if not self.encoding.startswith("utf-8"):
                    decoder = codecs.getincrementaldecoder(self.encoding)()
                elif raw[:3].tobytes() == codecs.BOM_UTF8:
                    raw = raw[3:]
            yield (raw if decoder is None else _decode(decoder, raw, is_last)), is_last
            offset += len(raw)


def _read_runs(file: IO[bytes], run_bytes: int) -> Iterator[tuple[NDArray[np.uint8], bool]]:
    is_last = False
    reader: Any = file
    while not is_last:
        run = np.empty(run_bytes, np.uint8)
        room = memoryview(run)
        filled = 0
        while filled < run_bytes and (count := reader.readinto(room[filled:])):
            filled += count
        is_last = filled < run_bytes
        yield run[:filled], is_last


def _decode(decoder: Any, raw: NDArray[np.uint8], is_last: bool) -> NDArray[np.uint8]:
    text = decoder.decode(raw.tobytes(), is_last)
    return np.frombuffer(bytearray(text.encode()), np.uint8)


def _find_bom(raw: NDArray[np.uint8]) -> str | None:
    start = raw[:4].tobytes()
    return next((name for bom, name in _BOMS.items() if start.startswith(bom)), None)


def other_encoding(text: NDArray[np.uint8]) -> str | None:
    """Guess the encoding of text that is not all UTF-8; None if it is damaged UTF-8.

    Characters beyond ASCII decide: in a file of another encoding next to none of them are valid
    UTF-8. Windows-1252 and Mac Roman differ in what the characters would be and in the letters
    around them.
    """
    raw = text.tobytes()
    decoded = raw.decode("utf-8", "replace")
    bad = decoded.count("\ufffd")
    good = len(decoded) - int((text < 0x80).sum()) - bad
    if good > bad:
        return None
    places = np.flatnonzero(text >= 0x80)[:_JUDGED].tolist()
    windows, mac = (_score(raw, places, encoding) for encoding in ("cp1252", "mac_roman"))
    return "mac_roman" if mac > windows else "cp1252"


def _score(raw: bytes, places: list[int], encoding: str) -> int:
    """Return how well text reads in an encoding."""
    table = bytes(range(256)).decode(encoding, "replace")
    score = 0
    for at in places:
        before = "".join(table[byte] for byte in raw[max(at - 3, 0) : at])
        after = "".join(table[byte] for byte in raw[at + 1 : at + 4])
        score += _plausibility(table[raw[at]], before, after)
    return score


def _plausibility(character: str, before: str, after: str) -> int:
    """Return how usual a character is between others, from -4 to 3."""
    left, right = before[-1:] or " ", after[:1] or " "
    if character in _LETTERS:
        return _plausibility_of_letter(character, left, right)
    is_inside = left.isalpha() and right.isalpha()
    if character in "\u2018\u2019":
        is_usual = _SHORTENED.match(after) or _ELIDED.search(before) or left.isalpha() > is_inside
        return 3 if is_usual and left.isalpha() else 1 if not is_inside else 0
    if character in "\u201c\u201d":
        return -3 if is_inside else 3
    if character == "\u2026":
        return 3 if not left.isspace() and not right.isalpha() else -1
    if character in "\u2013\u2014\u00a0":
        return 0 if is_inside else 3
    if character in _SIGNS:
        return -2 if is_inside else 1
    if character == "\ufffd":
        return -4
    return -3 if is_inside else -1


def _plausibility_of_letter(character: str, left: str, right: str) -> int:
    if left.isdigit() or right.isdigit():
        return -1
    if character.isupper():
        if left.islower():
            return -3  # a capital within a word
        return 1 if right.isalpha() else 0
    if left.isalpha():
        return 2 if right.isalpha() or character in _LAST_LETTERS else 1
    return 1 if right.isalpha() and character in _FIRST_LETTERS else 0
