"""Whether a dataset on disk is what its manifest, or its other metadata, says: every record."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from datum.errors import SchemaError
from datum.format import Parser, RecordFile, ShardInfo, Statistics
from datum.format.naming import MANIFEST_NAME
from datum.format.threads import thread_count
from datum.reading.contents import Contents
from datum.reading.progress import ByteCounter, Progress
from datum.reading.verifying.findings import Findings
from datum.reading.verifying.notes import find_notes
from datum.reading.verifying.pictures import PictureChecks
from datum.reading.verifying.records import RecordChecks, make_parser
from datum.reading.verifying.report import Problem, VerifyReport
from datum.reading.verifying.shard import Checksum, ShardFound, verify_shard
from datum.reading.verifying.statistics import compare_statistics

__all__ = ["Problem", "VerifyReport", "checksum_file", "verify_shards"]


def checksum_file(file: RecordFile) -> tuple[int, int]:
    """Size and CRC of an open file, read in pieces."""
    checksum = Checksum(file.name, file.content)
    checksum.advance()
    return checksum.nbytes, checksum.crc


def verify_shards(
    contents: Contents,
    *,
    deep: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Compare every shard with what is known of it, with its index, its CRCs, and the schema.

    `deep` also decodes every image, and compares what the manifest tells of the values.
    `progress` is called with the bytes that are done and all there are, from any thread, one call
    at a time.
    """
    started = time.monotonic()
    shards = [(name, shard) for name, info in contents.splits.items() for shard in info.shards]
    counted = ByteCounter(sum(shard.bytes for _, shard in shards), progress)
    parser, problems = _make_parser(contents)
    with _pools(thread_count(threads), deep=deep) as (pool, decoders):
        verifier = _Verifier(
            contents,
            contents.left_out,
            parser,
            deep,
            max(1, thread_count(threads) // max(1, len(shards))),
            decoders,
            counted,
        )
        try:
            found = list(pool.map(verifier.verify, shards))
        except BaseException:  # an interrupt, most likely: nobody waits for the rest
            counted.is_stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    problems += _name_swapped(shards, found)
    problems += _missing(contents)
    if deep and not problems:
        problems += _compare_splits(contents, shards, found)
    return VerifyReport(
        contents.folder,
        sum(one.shard.records for one in found),
        sum(one.shard.bytes for one in found),
        len(shards),
        tuple(problems),
        find_notes(contents),
        sum(one.lost for one in found),
        deep,
        sum(one.images for one in found),
        time.monotonic() - started,
    )


def _make_parser(contents: Contents) -> tuple[Parser | None, list[Problem]]:
    try:
        return make_parser(contents.schema), []
    except SchemaError as error:  # nothing can be read by it
        return None, [Problem("", MANIFEST_NAME, "schema", error.message.line)]


@contextmanager
def _pools(threads: int, *, deep: bool) -> Iterator[tuple[ThreadPoolExecutor, Executor | None]]:
    """Threads for shards, and others for images, which the first ones wait for."""
    with ThreadPoolExecutor(threads, "datum-verify") as pool:
        if not deep or threads == 1:
            yield pool, None
            return
        with ThreadPoolExecutor(threads, "datum-decode") as decoders:
            yield pool, decoders


@dataclass(frozen=True, slots=True)
class _Found:
    shard: ShardFound
    problems: list[Problem]
    lost: int
    images: int
    statistics: Statistics | None


@dataclass(frozen=True, slots=True)
class _Verifier:
    contents: Contents
    left_out: Mapping[str, Sequence[int]]
    parser: Parser | None
    is_deep: bool
    threads: int  # for each shard
    decoders: Executor | None
    counted: ByteCounter

    def verify(self, item: tuple[str, ShardInfo]) -> _Found:
        split, shard = item
        contents = self.contents
        findings = Findings(split, shard.name)
        is_bare = contents.writer == "tfrecord files"
        schema = contents.schema if self.parser is None else self.parser.schema
        pictures = PictureChecks(schema, pool=self.decoders, guesses=is_bare)
        checks = RecordChecks(
            self.parser,
            findings,
            malformed=self.left_out.get(shard.name, ()),
            threads=self.threads,
            pictures=pictures if self.is_deep else None,
            summarizes=self.is_deep and split in contents.statistics,
        )
        note = self.counted.of_file(shard.bytes)
        found = verify_shard(
            contents.folder / shard.name,
            shard,
            findings,
            checks,
            is_published=contents.is_published,
            on_bytes=note,
        )
        note(shard.bytes)
        lost = max(0, shard.records - found.records)
        if is_bare:  # nobody says how many there were
            lost = max(lost, findings.lost + checks.unusable)
        return _Found(found, findings.problems, lost, pictures.decoded, checks.statistics)


def _name_swapped(
    shards: Sequence[tuple[str, ShardInfo]], found: Sequence[_Found]
) -> Iterator[Problem]:
    """The problems of all shards; where one has the content of another, that is said."""
    owners = {(one.bytes, one.crc32c): one.name for _, one in shards if one.records}
    for one in found:
        owner = owners.get((one.shard.bytes, one.shard.crc))
        for problem in one.problems:
            if owner is not None and problem.kind in ("size", "file checksum"):
                yield replace(problem, text=f"{problem.text}: the content of {owner}")
            else:
                yield problem


def _missing(contents: Contents) -> Iterator[Problem]:
    """Files that the names of others tell of, and that were not there when they were loaded."""
    for damage in contents.damage:
        if damage.kind == "missing file":
            text = "expected a file, as the names of the others tell, got none"
            yield Problem("", damage.file, damage.kind, text)


def _compare_splits(
    contents: Contents, shards: Sequence[tuple[str, ShardInfo]], found: Sequence[_Found]
) -> Iterator[Problem]:
    """What the manifest tells of the values of each split, held against those that were read."""
    for split, told in contents.statistics.items():
        merged: Statistics | None = Statistics()
        for (name, _), one in zip(shards, found, strict=True):
            if name == split:
                merged = merged and one.statistics and merged.merge(one.statistics)
        if merged is not None:
            for feature, text in compare_statistics(told, merged):
                yield Problem(split, MANIFEST_NAME, "statistics", text, feature=feature)
