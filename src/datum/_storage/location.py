"""Places: the URLs of objects, and the folder of files that are kept on this computer."""

from __future__ import annotations

import os
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from datum.errors import StorageError, suggest

__all__ = ["Location", "cache_folder", "is_url", "local_path"]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "http": "http",
    "https": "http",
    "file": "file",
}


def is_url(path: object) -> bool:
    """Whether a path is a URL, of a store that is known or not.

    >>> is_url("s3://bucket/data"), is_url("data/train"), is_url(Path("s3://bucket"))
    (True, False, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


def local_path(url: str) -> Path | None:
    """The path that a `file://` URL names; None of another URL.

    >>> str(local_path("file:///data/my%20photos"))
    '/data/my photos'
    """
    location = Location.parse(url)
    return Path("/" + location.path) if location.store == "file" else None


@dataclass(frozen=True)
class Location:
    """A place in a store: an object, or the prefix of several. Its text has no secrets.

    Attributes:
        scheme: of the URL, as it was given.
        bucket: the bucket, the container, or the host of a server with its port.
        path: the path within the bucket, without slashes at its ends.
    """

    scheme: str
    bucket: str
    path: str

    @classmethod
    def parse(cls, url: str) -> Location:
        """Read a URL.

        >>> print(Location.parse("s3://bucket/photos/"))
        s3://bucket/photos
        """
        found = _URL.match(url)
        scheme = found[1].lower() if found else ""
        if found is None or scheme not in _SCHEMES:
            shown = url.split("?")[0] if found is None else f"{scheme}://..."
            known = "s3://, gs://, az://, https://, http:// or file://"
            near = (
                suggest(scheme, _SCHEMES, shown=lambda name: f"{name}://", cutoff=0.5)
                if found
                else ""
            )
            raise StorageError(f"expected a URL of {known}", where=shown, hint=near)
        rest, sign, _ = found[2].partition("?")
        bucket, _, path = rest.partition("/")
        bucket, path = _without_user(scheme, bucket), path.strip("/")
        if scheme in ("http", "https", "file"):
            path = urllib.parse.unquote(path)
        location = cls(scheme, bucket, path)
        if sign:
            raise StorageError(
                "expected a URL without `?`: signed URLs and tokens in them open one object alone",
                where=location,
                hint='pass a token by `storage`, such as storage={"sas_token": ...} for Azure',
            )
        if not bucket and scheme != "file":
            raise StorageError("expected the name of a bucket after `//`", where=location)
        return location

    @property
    def store(self) -> str:
        """The kind of store: s3, gs, az, http or file."""
        return _SCHEMES[self.scheme]

    def join(self, path: str) -> Location:
        """The place of a path below this one."""
        joined = "/".join(part.strip("/") for part in (self.path, path) if part.strip("/"))
        return Location(self.scheme, self.bucket, joined)

    def __truediv__(self, path: str) -> Location:
        return self.join(path)

    @property
    def name(self) -> str:
        """The last part of the path, or the bucket if there is none."""
        return self.path.rpartition("/")[2] or self.bucket

    def __str__(self) -> str:
        path = self.path
        if self.store in ("http", "file"):
            path = urllib.parse.quote(path)
        return f"{self.scheme}://{self.bucket}" + (f"/{path}" if path else "")


def _without_user(scheme: str, host: str) -> str:
    """The host without `user:password@`; of Azure `container@account...` stays."""
    if "@" not in host or scheme in ("abfs", "abfss"):
        return host
    bare = host.rpartition("@")[2]
    raise StorageError(
        "expected a URL without a user and a password",
        where=f"{scheme}://{bare}",
        hint='storage={"client_options": {"default_headers": {"authorization": "Basic ..."}}}',
    )


def cache_folder() -> Path | None:
    """Where files are kept: `$DATUM_CACHE`, `$XDG_CACHE_HOME/datum` or `~/.cache/datum`.

    None where there is no such place. The folder need not exist.
    """
    named = os.environ.get("DATUM_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        if named:
            return Path(named).expanduser()
        if not base.is_absolute():  # to be ignored then, by its specification
            base = Path("~/.cache").expanduser()
    except RuntimeError:  # of a user who has no home
        return None
    return base / "datum"
