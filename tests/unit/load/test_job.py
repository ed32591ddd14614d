"""What goes wrong in a batch, told to the one who takes it."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from datum.errors import CorruptRecordError
from datum.schema import Feature
from tests.unit.load.memory_source import (
    SCHEMA,
    MemorySource,
    load,
    make_rows,
    open_pipeline,
    plan,
)


@pytest.fixture
def source() -> MemorySource:
    return MemorySource(make_rows(40), SCHEMA)


def test_an_error_of_the_source_is_raised_by_take_of_its_batch(source: MemorySource) -> None:
    def fail(ticket: int) -> None:
        if ticket == 1:
            raise CorruptRecordError("memory: record 3: broken")

    source.before_take = fail
    for options in ({}, {"map": lambda record: record}):
        pipeline = open_pipeline(source, **options)
        for numbers in ([1], [2], [3]):
            pipeline.submit(plan(numbers))
        assert pipeline.take().batch["x"] == [1]
        with pytest.raises(CorruptRecordError, match="record 3: broken"):
            pipeline.take()
        pipeline.close()
        source.submitted.clear()


@pytest.mark.parametrize("threads", [0, 3])
def test_the_error_of_the_first_record_is_the_one_raised(threads: int) -> None:
    source = MemorySource([{"x": n} for n in range(300)], {"x": Feature("int64")})

    def change(record: dict) -> dict:
        if record["x"] in (70, 75, 200):
            raise KeyError(int(record["x"]))
        return record

    with pytest.raises(KeyError) as caught:
        load(source, list(range(300)), threads=threads, map=change)
    assert caught.value.args == (70,)
    assert "memory: record 70 at byte 700" in caught.value.__notes__[0]


def test_after_an_error_the_next_batch_is_sound(source: MemorySource) -> None:
    pipeline = open_pipeline(source, map=lambda r: r if r["x"] != 3 else None)
    for numbers in ([3], [4]):
        pipeline.submit(plan(numbers))
    with pytest.raises(ValueError, match="expected `map` to return what takes the place, got None"):
        pipeline.take()
    assert pipeline.take().batch["x"] == [4]
    pipeline.close()


def test_an_error_of_batch_map_keeps_its_type(source: MemorySource) -> None:
    def fail(batch: dict) -> dict:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        load(source, [1, 2], batch_map=fail)
    assert caught.value.__notes__ == ["in `batch_map`, epoch 0, batch at 0"]


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="counts no references")
def test_an_error_is_freed_once_it_is_dropped(source: MemorySource) -> None:
    class MyError(Exception):
        pass

    def fail(record: dict) -> dict:
        raise MyError

    pipeline = open_pipeline(source, map=fail)
    pipeline.submit(plan([1]))
    gc.disable()  # whatever holds it in a cycle would keep the whole batch
    try:
        pipeline.take()
    except MyError as error:
        held = weakref.ref(error)
    finally:
        gc.enable()
    assert held() is None
    pipeline.close()
