"""Records of which no features are known: what their bytes look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from datum import DatumError
from datum.cli.words.figures import cut, describe_range, one_line
from datum.cli.words.grid import Column, lay_out
from datum.cli.words.signs import Signs

if TYPE_CHECKING:
    from datum.profiling import PayloadProfile

__all__ = ["describe_unknown", "show_payloads"]

ROW_BYTES = 16
_KINDS = {
    "text": "plain text",
    "json": "JSON",
    "protobuf": "protobuf messages, but not tf.train.Example",
    "bytes": "bytes of no kind that is known",
    "empty": "empty",
}


def show_payloads(payloads: PayloadProfile, width: int, signs: Signs) -> list[Text]:
    """What the records seem to be, their fields if they are messages, and the first one's bytes."""
    kind = _KINDS.get(payloads.kind, f"{payloads.kind.upper()} images")
    sizes = payloads.sizes
    facts = [f"{kind}"]
    if sizes.count:
        facts.append(f"{describe_range(sizes.lowest, sizes.highest, signs)} bytes each")
    between = f" {signs.between} "
    lines = [Text.assemble(("records", "bold"), "  ", (between.join(facts), ""))]
    if payloads.fields:
        lines += _show_fields(payloads, width, signs)
    if payloads.first:
        lines += [Text(), Text("first record", "dim"), *_show_bytes(payloads.first, width)]
    return lines


def _show_fields(payloads: PayloadProfile, width: int, signs: Signs) -> list[Text]:
    fields = payloads.fields
    columns = [
        Column("field", [str(number) for number, *_ in fields], "right", "bold"),
        Column("type", [kind for _, kind, *_ in fields], style="cyan"),
        Column("in records", [f"{records:,} of {payloads.seen:,}" for *_, records, _ in fields]),
        Column("example", [one_line(example) for *_, example in fields]),
    ]
    room = width - sum(column.width + 2 for column in columns[:-1])
    examples = [cut(str(cell), max(8, room), signs) for cell in columns[-1].cells]
    return [Text(), *lay_out([*columns[:-1], Column("example", examples)])]


def _show_bytes(data: bytes, width: int) -> list[Text]:
    """As hexadecimal numbers, and as text where they are any."""
    size = ROW_BYTES if width >= 3 * ROW_BYTES + 2 + ROW_BYTES else ROW_BYTES // 2
    rows = [data[at : at + size] for at in range(0, len(data), size)]
    texts = ["".join(chr(byte) if 32 <= byte < 127 else "." for byte in row) for row in rows]
    return lay_out(
        [
            Column("", [row.hex(" ") for row in rows], style="dim"),
            Column("", texts),
        ],
        indent="  ",
    )


def describe_unknown(error: DatumError) -> str:
    """Why no features are known; the path stands above it already."""
    return error.problem
