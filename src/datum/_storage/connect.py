"""Connections to object stores: their options, credentials, time limits and secrets."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from datum._optional import require
from datum._storage.failures import first_line
from datum._storage.location import Location
from datum.errors import StorageError, nearest

__all__ = ["StoreOptions", "connect", "credentials_hint", "hide_secrets", "storage_options"]

_SECRET = re.compile(
    "key|secret|token|password|passwd|credential|authorization|cookie|service_account",
    re.IGNORECASE,
)
_HIDDEN = "<hidden>"
# A stalled connection ends after `read_timeout`, a request after `timeout`, and no request is
# sent again once `retry_timeout` has passed since the first.
_CLIENT = {"connect_timeout": "5s", "read_timeout": "20s", "timeout": "300s"}
_RETRY: dict[str, Any] = {
    "max_retries": 10,
    "retry_timeout": 60,
    "backoff": {"init_backoff": 0.2, "max_backoff": 15, "base": 2},
}


class StoreOptions(Mapping[str, Any]):
    """Options of a store, by obstore's names. No text and no pickle of them has a secret.

    >>> StoreOptions({"region": "eu-west-1", "secret_access_key": "x"})
    StoreOptions({'region': 'eu-west-1', 'secret_access_key': '<hidden>'})
    """

    def __init__(
        self, options: Mapping[str, Any] | None = None, *, lost: tuple[str, ...] = ()
    ) -> None:
        self._options = dict(options or {})
        self.lost = lost  # the names of secrets that a pickle did not keep

    def __getitem__(self, name: str) -> Any:
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def revealed(self) -> dict[str, Any]:
        """Everything, secrets as well: for a process that this one starts, never for a file."""
        return dict(self._options)

    def redacted(self) -> dict[str, Any]:
        """The options that may be shown and kept; those that are secret are left out."""
        return _without_secrets(self._options)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no text may have."""
        return tuple(sorted(_secret_values(self._options), key=len, reverse=True))

    def __repr__(self) -> str:
        return f"StoreOptions({_with_secrets_hidden(self._options)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        lost = tuple(sorted(filter(_is_secret, self))) + self.lost
        return _restore_options, (self.redacted(), lost)


def _restore_options(options: dict[str, Any], lost: tuple[str, ...]) -> StoreOptions:
    return StoreOptions(options, lost=lost)


def _is_secret(name: str) -> bool:
    # Names of files that have a secret are none.
    return _SECRET.search(name) is not None and not name.lower().endswith(("_file", "_uri"))


def _without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_secrets(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
        if not _is_secret(name)
    }


def _with_secrets_hidden(options: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in options.items():
        if _is_secret(name):
            shown[name] = _HIDDEN
        else:
            shown[name] = _with_secrets_hidden(value) if isinstance(value, Mapping) else value
    return shown


def _secret_values(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secret_values(value)
        elif _is_secret(name) and len(str(value)) > 3:
            yield str(value)


# Connections.

# Options by their names in obstore, with the variables of the environment that give them.
_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "s3": {
        "access_key_id": ("AWS_ACCESS_KEY_ID",),
        "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
        "session_token": ("AWS_SESSION_TOKEN",),
        "region": (
            "AWS_REGION",
            "AWS_DEFAULT_REGION",
        ),
        "endpoint": (
            "AWS_ENDPOINT_URL_S3",
            "AWS_ENDPOINT_URL",
            "AWS_ENDPOINT",
        ),
        "skip_signature": ("AWS_SKIP_SIGNATURE",),
        "virtual_hosted_style_request": ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST",),
        "checksum_algorithm": ("AWS_CHECKSUM_ALGORITHM",),
        "conditional_put": ("AWS_CONDITIONAL_PUT",),
        "container_authorization_token_file": ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",),
        "container_credentials_full_uri": ("AWS_CONTAINER_CREDENTIALS_FULL_URI",),
        "container_credentials_relative_uri": ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",),
        "disable_bulk_delete": ("AWS_DISABLE_BULK_DELETE",),
        "disable_tagging": ("AWS_DISABLE_TAGGING",),
        "imdsv1_fallback": ("AWS_IMDSV1_FALLBACK",),
        "metadata_endpoint": ("AWS_METADATA_ENDPOINT",),
        "request_payer": ("AWS_REQUEST_PAYER",),
        "s3_express": ("AWS_S3_EXPRESS",),
        "server_side_encryption": ("AWS_SERVER_SIDE_ENCRYPTION",),
        "sse_bucket_key_enabled": ("AWS_SSE_BUCKET_KEY_ENABLED",),
        "sse_customer_key_base64": ("AWS_SSE_CUSTOMER_KEY_BASE64",),
        "sse_kms_key_id": ("AWS_SSE_KMS_KEY_ID",),
        "unsigned_payload": ("AWS_UNSIGNED_PAYLOAD",),
        "role_arn": ("AWS_ROLE_ARN",),
        "role_session_name": ("AWS_ROLE_SESSION_NAME",),
        "web_identity_token_file": ("AWS_WEB_IDENTITY_TOKEN_FILE",),
    },
    "gs": {
        "application_credentials": ("GOOGLE_APPLICATION_CREDENTIALS",),
        "base_url": ("GOOGLE_BASE_URL",),
        "bearer_token": ("GOOGLE_BEARER_TOKEN",),
        "service_account": (
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
        ),
        "service_account_key": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        "skip_signature": ("GOOGLE_SKIP_SIGNATURE",),
    },
    "az": {
        "account_name": (
            "AZURE_STORAGE_ACCOUNT_NAME",
            "AZURE_STORAGE_ACCOUNT",
        ),
        "account_key": (
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
        ),
        "sas_key": (
            "AZURE_STORAGE_SAS_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
        ),
        "token": ("AZURE_STORAGE_TOKEN",),
        "client_id": (
            "AZURE_STORAGE_CLIENT_ID",
            "AZURE_CLIENT_ID",
        ),
        "client_secret": (
            "AZURE_STORAGE_CLIENT_SECRET",
            "AZURE_CLIENT_SECRET",
        ),
        "tenant_id": (
            "AZURE_STORAGE_TENANT_ID",
            "AZURE_TENANT_ID",
        ),
        "authority_host": (
            "AZURE_STORAGE_AUTHORITY_HOST",
            "AZURE_AUTHORITY_HOST",
        ),
        "endpoint": (
            "AZURE_STORAGE_ENDPOINT",
            "AZURE_ENDPOINT",
        ),
        "skip_signature": ("AZURE_SKIP_SIGNATURE",),
        "use_emulator": ("AZURE_STORAGE_USE_EMULATOR",),
        "use_azure_cli": ("AZURE_USE_AZURE_CLI",),
        "federated_token_file": ("AZURE_FEDERATED_TOKEN_FILE",),
        "msi_endpoint": (
            "AZURE_MSI_ENDPOINT",
            "AZURE_IDENTITY_ENDPOINT",
        ),
        "msi_resource_id": ("AZURE_MSI_RESOURCE_ID",),
        "object_id": ("AZURE_OBJECT_ID",),
        "disable_tagging": ("AZURE_DISABLE_TAGGING",),
    },
}
_OTHER_NAMES = {"endpoint_url": "endpoint", "sas_token": "sas_key", "default_region": "region"}
_EVERYWHERE = ("client_options", "retry_config")


def storage_options(location: Location, storage: Mapping[str, Any] | None = None) -> StoreOptions:
    """All options of a store: those given, and those of the environment that are not given.

    Args:
        location: a place in the store.
        storage: options by obstore's names; one that there is not is a StorageError that names
            the nearest.
    """
    known = _OPTIONS.get(location.store, {})
    options = {
        name: os.environ[variable]
        for name, variables in known.items()
        for variable in reversed(variables)  # the first counts
        if os.environ.get(variable)
    }
    names = {variable.lower(): name for name, among in known.items() for variable in among}
    for given, value in (storage or {}).items():
        name = _OTHER_NAMES.get(given, names.get(given.lower(), given))
        if name not in known and name not in _EVERYWHERE:
            raise _unknown_option(location, given)
        options[name] = value
    return StoreOptions(options, lost=storage.lost if isinstance(storage, StoreOptions) else ())


_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def connect(location: Location, options: StoreOptions) -> Any:
    """The store of obstore for a place, with a time limit on everything it does."""
    purpose = f"{location.scheme}://"
    stores = require("obstore.store", purpose=purpose)
    errors = require("obstore.exceptions", purpose=purpose)
    _check_credentials(location, options)
    try:
        return _make_store(stores, location, options)
    except errors.UnknownConfigurationKeyError as error:
        raise _unknown_option(location, _quoted(str(error))) from None
    except (errors.BaseError, ValueError, TypeError) as error:
        text = hide_secrets(first_line(error), options)
        hint = f"check the URL and `storage`, or {credentials_hint(location)}".removesuffix(", or ")
        raise StorageError(f"cannot be opened: {text}", where=location, hint=hint) from None


def _make_store(stores: Any, location: Location, options: StoreOptions) -> Any:
    config = options.revealed()
    client = {**_CLIENT, **config.pop("client_options", {})}
    retry = _durations({**_RETRY, **config.pop("retry_config", {})})
    if location.store == "http" or _is_loopback(config):
        client.setdefault("allow_http", True)
    elif _endpoint(config).scheme == "http" and not client.get("allow_http"):
        raise StorageError(
            "expected an https:// endpoint, got http:// to another computer",
            where=location,
            hint='storage={"client_options": {"allow_http": True}} allows it',
            kind="options",
        )
    if location.store in ("file", "http") and config:
        raise _unknown_option(location, next(iter(config)))
    if location.store == "file":
        return stores.LocalStore(Path("/" + location.path), mkdir=True)
    common: dict[str, Any] = {"client_options": client, "retry_config": retry}
    if location.store == "http":
        return stores.HTTPStore(str(location), **common)
    common |= {"prefix": location.path or None, "config": config}
    if location.store == "s3":
        config.setdefault("checksum_algorithm", "sha256")  # which the store compares, part by part
        return stores.S3Store(location.bucket, **common)
    if location.store == "gs":
        return stores.GCSStore(location.bucket, **common)
    container, _, host = location.bucket.partition("@")
    if host:
        config.setdefault("account_name", host.partition(".")[0])
    return stores.AzureStore(container, **common)


def _endpoint(config: Mapping[str, Any]) -> urllib.parse.SplitResult:
    return urllib.parse.urlsplit(str(config.get("endpoint") or config.get("base_url") or ""))


def _is_loopback(config: Mapping[str, Any]) -> bool:
    endpoint = _endpoint(config)
    return endpoint.scheme == "http" and endpoint.hostname in _LOOPBACK


def _durations(retry: Mapping[str, Any]) -> dict[str, Any]:
    """Retry options as obstore takes them; numbers are seconds."""

    def convert(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return _durations(value)
        is_time = name.endswith(("_timeout", "_backoff")) and isinstance(value, int | float)
        return timedelta(seconds=value) if is_time else value

    return {name: convert(name, value) for name, value in retry.items()}


def _unknown_option(location: Location, name: str) -> StorageError:
    known = (*_OPTIONS.get(location.store, ()), *_EVERYWHERE)
    near = nearest(name, known)
    return StorageError(
        f"`storage` has no option {name!r}",
        where=location,
        hint=f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}",
        kind="options",
    )


def _quoted(text: str) -> str:
    """The name that an error of obstore is about."""
    found = re.search(r"[Kk]ey:? ['\"`]?([A-Za-z0-9_]+)", text)
    return found[1] if found else first_line(text)


# Credentials.


@dataclass(frozen=True)
class _Cloud:
    """Where a cloud's credentials come from.

    Attributes:
        name: of the cloud.
        options: those of which any brings credentials, or says that none are needed.
        metadata: the server that gives credentials to a machine within the cloud.
        hint: what to do without any.
    """

    name: str
    options: tuple[str, ...]
    metadata: str
    hint: str


_AWS = _Cloud(
    "AWS",
    (
        "access_key_id",
        "skip_signature",
        "web_identity_token_file",
        "container_credentials_full_uri",
        "container_credentials_relative_uri",
        "metadata_endpoint",
    ),
    "169.254.169.254",
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or for a public bucket pass"
    ' storage={"skip_signature": True}',
)
_GOOGLE = _Cloud(
    "Google Cloud",
    (
        "service_account",
        "service_account_key",
        "bearer_token",
        "application_credentials",
        "skip_signature",
    ),
    "metadata.google.internal",
    "set GOOGLE_APPLICATION_CREDENTIALS to a key file, run `gcloud auth application-default"
    ' login`, or for a public bucket pass storage={"skip_signature": True}',
)
_AZURE = _Cloud(
    "Azure",
    (
        "account_key",
        "sas_key",
        "token",
        "client_secret",
        "federated_token_file",
        "use_azure_cli",
        "use_emulator",
        "skip_signature",
        "msi_endpoint",
    ),
    "169.254.169.254",
    "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_KEY), or"
    ' for a public container pass storage={"skip_signature": True}',
)
_CLOUDS = {"s3": _AWS, "gs": _GOOGLE, "az": _AZURE}
_ADC = Path("~/.config/gcloud/application_default_credentials.json")


def _check_credentials(location: Location, options: StoreOptions) -> None:
    """Say at once that there are no credentials, where obstore would look for a minute."""
    cloud = _CLOUDS.get(location.store)
    if cloud is None or any(name in options for name in cloud.options):
        return
    if cloud is _GOOGLE and _ADC.expanduser().is_file():
        return
    if not options.lost:
        with contextlib.suppress(OSError):
            socket.create_connection((cloud.metadata, 80), timeout=1).close()
            return
    if options.lost:
        problem = f"{', '.join(options.lost)}: secrets are not kept when a dataset is pickled"
    else:
        problem = f"expected credentials of {cloud.name}, got none"
    raise StorageError(problem, where=location, hint=cloud.hint, kind="credentials")


def credentials_hint(location: Location) -> str:
    """How credentials for a place are given; empty where none are."""
    cloud = _CLOUDS.get(location.store)
    return "" if cloud is None else cloud.hint


def hide_secrets(text: str, options: StoreOptions) -> str:
    """A text without the secrets of options."""
    for secret in options.secrets:
        text = text.replace(secret, _HIDDEN)
    return text
