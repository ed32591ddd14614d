"""What went wrong at an object store, and the next step."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Failure", "diagnose", "first_line"]


@dataclass(frozen=True)
class Failure:
    """What an error of obstore means.

    Attributes:
        kind: one word; see `StorageError`.
        problem: what is wrong.
        hint: the next step; {credentials} stands for how the cloud's credentials are given.
    """

    kind: str
    problem: str
    hint: str


# obstore tells some failures by the class of its errors, the others by words in their text.
_BY_CLASS = {
    "UnauthenticatedError": "credentials",
    "PermissionDeniedError": "denied",
    "FileNotFoundError": "missing",
    "NotFoundError": "missing",
    "AlreadyExistsError": "exists",
    "PreconditionError": "changed",
}
_BY_WORDS = {
    "missing": ("NoSuchBucket", "ContainerNotFound", "status: 404"),
    "region": ("BareRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint"),
    "credentials": ("169.254.169.254", "latest/api/token", "metadata.google.internal"),
    "no ranges": ("NotPartial", "RangeNotSupported"),
    "range": ("status: 416", "StartTooLarge"),
    "name": ("dns error", "failed to lookup address"),
    "timeout": ("kind: Timeout", "TimedOut"),
    "short": ("kind: Interrupted", "IncompleteBody"),
    "connection": ("kind: Connect", "kind: Request"),
    "unavailable": ("status: 429", "status: 5"),
    "denied": ("Permission denied",),
    "unsupported": ("NotSupported", "NotImplemented", "status: 405"),
}
_NETWORK = "check the network and the endpoint (in `storage`, or AWS_ENDPOINT_URL and its like)"
_WORDS = {  # the problem and the hint; {said} is what the server said, {tries} how often
    "region": (
        "the bucket is in another region",
        'set AWS_REGION, or pass storage={{"region": ...}}: that of the bucket',
    ),
    "credentials": ("expected credentials, got none that the store takes", "{credentials}"),
    "denied": ("access denied ({said})", "check what these credentials may do, or {credentials}"),
    "missing": ("no such {what}", "check the URL"),
    "exists": ("there is an object already", "choose another place"),
    "changed": ("the object has been replaced meanwhile", "load the dataset again"),
    "no ranges": (
        "the server ignores ranges: it sent all of the object for a part of it",
        "use a server that answers Range requests, or download the dataset first",
    ),
    "range": (
        "the object ends before the part that was asked for",
        "the object is not the one that the manifest means; verify the dataset",
    ),
    "name": ("the name of the host is not known", _NETWORK),
    "timeout": (
        "no answer in time{tries}",
        'try again, or wait longer: storage={{"client_options": {{"read_timeout": "60s"}}}}',
    ),
    "short": (
        "the connection ended in the middle of the answer",
        "try again; a proxy on the way may cut off long answers",
    ),
    "connection": ("cannot connect to the store{tries}", _NETWORK),
    "unavailable": (
        "the store is unavailable or too busy{tries} ({said})",
        'try again later, or wait longer: storage={{"retry_config": {{"retry_timeout": 300}}}}',
    ),
    "unsupported": (
        "the store cannot do this ({said})",
        "use S3, Google Cloud Storage or Azure to list and to write",
    ),
    "unknown": ("the store failed ({said})", "try again; look at the status of the store"),
}


def diagnose(error: Exception, *, credentials: str) -> Failure:
    """Tell what an error of obstore means.

    Args:
        error: of obstore, or of the system.
        credentials: how the credentials of this store are given.
    """
    text = str(error)
    kind = _BY_CLASS.get(type(error).__name__) or _find_kind(text)
    is_bucket = "NoSuchBucket" in text or "ContainerNotFound" in text
    facts = {
        "said": _server_words(text),
        "tries": _tries(text),
        "what": "bucket" if is_bucket else "object",
        "credentials": credentials or "check the URL",
    }
    problem, hint = _WORDS[kind]
    return Failure(kind, problem.format(**facts), hint.format(**facts))


def _find_kind(text: str) -> str:
    for kind, words in _BY_WORDS.items():
        if any(word in text for word in words):
            return kind
    return "unknown"


def _tries(text: str) -> str:
    found = re.search(r"after ([0-9]+) retries", text)
    return f" in {int(found[1]) + 1} tries" if found and int(found[1]) else ""


def _server_words(text: str) -> str:
    """What the server said: its code and message, or its status, or the reason alone."""
    code = re.search(r"<Code>([^<]{1,80})</Code>", text)
    message = re.search(r"<Message>([^<\n]{1,200})", text)
    if code:
        return code[1] + (f": {message[1]}" if message else "")
    status = re.search(r"status code: ([0-9]{3}[A-Za-z ]*)", text)
    if status:
        return status[1].strip()
    return re.sub(r"https?://\S+", "...", first_line(text)).rpartition(" - ")[2][:200]


def first_line(text: object) -> str:
    """The first line of a text; the rest of obstore's errors is for those who debug it."""
    return str(text).strip().partition("\n")[0]
