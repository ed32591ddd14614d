"""Uploads to S3 that a killed process left unfinished; obstore can neither list nor abort them.

Their parts are stored, and paid for, but no listing of objects shows them. Azure drops such parts
by itself after a week; for Google Cloud Storage a lifecycle rule does.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from defusedxml import ElementTree

from datum._storage.connect import StoreOptions
from datum._storage.location import Location

__all__ = ["UnfinishedUpload", "abort_upload", "find_uploads"]

_TIMEOUT_S = 20
_EMPTY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class UnfinishedUpload:
    """An upload in parts that was begun.

    Attributes:
        path: of the object that it is for, below the place that was searched.
        key: the path of that object in its bucket.
        upload: the name that the store gave the upload.
    """

    path: str
    key: str
    upload: str


def find_uploads(location: Location, options: StoreOptions) -> Iterator[UnfinishedUpload]:
    """The unfinished uploads below a place; none where they cannot be asked for.

    That is the case for stores other than S3, and without an access key in the options.
    """
    if location.store != "s3" or "secret_access_key" not in options:
        return
    prefix = f"{location.path}/" if location.path else ""
    marker: dict[str, str] = {}
    while True:
        asked = {"uploads": "", "prefix": prefix, **marker}
        answer = ElementTree.fromstring(_request("GET", location, options, "", asked))
        found = {_local_name(child.tag): child.text or "" for child in answer}
        for child in answer:
            if _local_name(child.tag) == "Upload":
                facts = {_local_name(one.tag): one.text or "" for one in child}
                key = facts["Key"]
                if key.startswith(prefix):
                    yield UnfinishedUpload(key.removeprefix(prefix), key, facts["UploadId"])
        if found.get("IsTruncated") != "true" or not found.get("NextKeyMarker"):
            return
        marker = {
            "key-marker": found["NextKeyMarker"],
            "upload-id-marker": found.get("NextUploadIdMarker", ""),
        }


def abort_upload(location: Location, options: StoreOptions, upload: UnfinishedUpload) -> None:
    """Drop the parts of an upload."""
    _request("DELETE", location, options, upload.key, {"uploadId": upload.upload})


def _local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


def _request(
    method: str,
    location: Location,
    options: Mapping[str, Any],
    key: str,
    query: Mapping[str, str],
) -> bytes:
    """Send a signed request; OSError if it fails."""
    region = str(options.get("region", "us-east-1"))
    endpoint = str(options.get("endpoint") or f"https://s3.{region}.amazonaws.com")
    parts = urllib.parse.urlsplit(endpoint)
    path = urllib.parse.quote(f"{parts.path.rstrip('/')}/{location.bucket}/{key}", safe="/-_.~")
    path = path.rstrip("/") if not key else path
    asked = "&".join(
        f"{urllib.parse.quote(name, safe='-_.~')}={urllib.parse.quote(value, safe='-_.~')}"
        for name, value in sorted(query.items())
    )
    headers = _sign(method, parts.netloc, path, asked, region, options)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=_TIMEOUT_S)
    try:
        connection.request(method, f"{path}?{asked}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status >= 300:
            raise OSError(f"status {answer.status}")
        return body
    except http.client.HTTPException as error:
        raise OSError(str(error)) from None
    finally:
        connection.close()


def _sign(
    method: str, host: str, path: str, query: str, region: str, options: Mapping[str, Any]
) -> dict[str, str]:
    """The headers of a request, signed as AWS has it (Signature Version 4)."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": _EMPTY, "x-amz-date": now}
    if "session_token" in options:
        headers["x-amz-security-token"] = str(options["session_token"])
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{_EMPTY}"
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    signed = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"
    key = f"AWS4{options['secret_access_key']}".encode()
    for part in (*scope.split("/"), signed):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={options['access_key_id']}/{scope},"
        f" SignedHeaders={names}, Signature={key.hex()}"
    )
    return headers
