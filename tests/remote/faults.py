"""A proxy on this computer, before an object store, that fails as it is told.

It passes requests on and counts them. A `Fault` says what becomes of an answer, and of how many.
"""

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.remote.servers import Server

CHUNK = 64 * 1024


@dataclass
class Fault:
    """What becomes of answers.

    Attributes:
        kind: "status" answers by itself; "reset" and "stall" break off within the body; "short"
            ends the body early, as if that were all; "flip" changes a byte; "whole" answers a
            request for a range with 200, as a server does that knows none.
        status: of "status".
        body: of "status".
        headers: of "status", such as Retry-After.
        count: how many answers it is for; None for all.
        paths: only requests that this pattern is found in, such as "GET .*tfrecord".
        after: bytes of the body that pass before "reset" and "stall"; which byte flips.
    """

    kind: str
    status: int = 503
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    count: int | None = None
    paths: str = ""
    after: int = 10


@dataclass
class Seen:
    """A request that went through.

    Attributes:
        line: its method and path.
        range: the range asked for; empty of none.
        body_bytes: how large the body of the answer was, as far as it was sent.
    """

    line: str
    range: str
    body_bytes: int = 0


class Faults:
    """The proxy; it runs on a thread of its own until the block ends.

    Args:
        server: the store behind it.
        latency_s: added to every answer.
        bytes_per_s: of all answers together; None for as fast as it goes.
    """

    def __init__(
        self, server: Server, *, latency_s: float = 0, bytes_per_s: float | None = None
    ) -> None:
        self._behind = server.port
        self._original = server
        self.latency_s = latency_s
        self.bytes_per_s = bytes_per_s
        self.active: list[Fault] = []
        self.seen: list[Seen] = []
        self._free_at = 0.0  # when the line is free again, by the clock of the loop
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        self.server = self._original.through(self.port)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    @contextlib.contextmanager
    def failing(self, fault: Fault) -> Iterator[Fault]:
        """Answers fail so within the block."""
        self.active.append(fault)
        try:
            yield fault
        finally:
            self.active.remove(fault)

    async def _start(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(
                ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
            ):
                while await self._serve(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether another may follow on the connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        line, headers = _parse(head)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = line.split(" ")
        request = f"{method} {path}"
        fault = self._choose(request)
        await asyncio.sleep(self.latency_s)
        if fault is not None and fault.kind == "status":
            self.seen.append(Seen(request, headers.get("range", "")))
            writer.write(_answer(fault, method))
            await writer.drain()
            return True
        back, forth = await asyncio.open_connection("127.0.0.1", self._behind)
        try:
            forth.write(re.sub(rb"(?im)^connection:.*\r\n", b"", head) + body)
            await forth.drain()
            answer = await back.readuntil(b"\r\n\r\n")
            _, given = _parse(answer)
            has_body = method != "HEAD" and not answer.startswith(
                (b"HTTP/1.1 204", b"HTTP/1.1 304")
            )
            length = int(given["content-length"]) if "content-length" in given else None
            if not has_body:
                length = 0
            return await self._pass_on(back, writer, answer, length, fault, request, headers)
        finally:
            forth.close()

    async def _pass_on(
        self,
        back: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer: bytes,
        length: int | None,
        fault: Fault | None,
        request: str,
        headers: dict[str, str],
    ) -> bool:
        if fault is not None and fault.kind == "short" and length:
            new = b"Content-Length: %d\r\n" % (length // 2)
            answer = re.sub(rb"(?im)^content-length:.*\r\n", new, answer)
            length //= 2
        if fault is not None and fault.kind == "whole":
            answer = re.sub(rb"^HTTP/1.1 206[^\r]*", b"HTTP/1.1 200 OK", answer)
            answer = re.sub(rb"(?im)^content-range:.*\r\n", b"", answer)
        seen = Seen(request, headers.get("range", ""))
        self.seen.append(seen)
        writer.write(answer)
        sent = 0
        while length is None or sent < length:
            data = await back.read(CHUNK if length is None else min(CHUNK, length - sent))
            if not data:
                break
            if fault is not None and sent <= fault.after < sent + len(data):
                at = fault.after - sent
                if fault.kind == "flip":
                    data = data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
                elif fault.kind in ("reset", "stall"):
                    writer.write(data[:at])
                    await writer.drain()
                    if fault.kind == "stall":
                        await asyncio.sleep(3600)
                    writer.transport.abort()
                    return False
            await self._wait_for_line(len(data))
            writer.write(data)
            await writer.drain()
            sent += len(data)
            seen.body_bytes = sent
        return length is not None

    async def _wait_for_line(self, count: int) -> None:
        if self.bytes_per_s is None:
            return
        now = self._loop.time()
        self._free_at = max(now, self._free_at) + count / self.bytes_per_s
        await asyncio.sleep(self._free_at - now)

    def _choose(self, request: str) -> Fault | None:
        for fault in self.active:
            if fault.count != 0 and re.search(fault.paths, request):
                if fault.count is not None:
                    fault.count -= 1
                return fault
        return None


def _parse(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, {name.lower(): value.strip() for name, _, value in pairs}


def _answer(fault: Fault, method: str) -> bytes:
    body = fault.body.encode()
    headers = {"Content-Length": str(len(body)), **fault.headers}
    lines = [f"HTTP/1.1 {fault.status} Fault", *(f"{n}: {v}" for n, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + (b"" if method == "HEAD" else body)
