import pytest

import datum
from datum.cli.info_page import describe_unknown, show_payloads
from datum.cli.terminal import UNICODE
from datum.format import RecordWriter


def payloads_of(path, *records):
    with RecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    dataset = datum.load(path, schema={})
    return datum.profile(dataset).splits["train"].payloads


def test_text_is_told_and_shown(tmp_path):
    lines = show_payloads(payloads_of(tmp_path / "a.tfrecord", b"hello", b"a"), 80, UNICODE)
    assert lines[0].plain == f"records  plain text · 1{UNICODE.to}5 bytes each"
    assert lines[-1].plain == "  68 65 6c 6c 6f  hello"


def test_fields_of_messages_are_a_table(tmp_path):
    found = payloads_of(tmp_path / "a.tfrecord", b"\x08\x96\x01\x12\x02hi")
    lines = [line.plain for line in show_payloads(found, 80, UNICODE)]
    assert lines[2].split() == ["field", "type", "in", "records", "example"]
    assert lines[3].split() == ["1", "varint", "1", "of", "1", "150"]
    assert lines[4].split() == ["2", "text", "1", "of", "1", "'hi'"]


@pytest.mark.parametrize("width", [100, 60, 40])
def test_bytes_fit_the_terminal(tmp_path, width):
    found = payloads_of(tmp_path / "a.tfrecord", bytes(range(256)))
    assert all(line.cell_len <= width for line in show_payloads(found, width, UNICODE)[2:])


def test_images_are_called_by_their_format(tmp_path):
    found = payloads_of(tmp_path / "a.tfrecord", b"\xff\xd8\xff\xe0....")
    assert show_payloads(found, 80, UNICODE)[0].plain.startswith("records  JPEG images")


def test_why_nothing_is_known_needs_no_path_and_no_hint():
    error = datum.SchemaError("expected Examples, got others", where="/a/path", hint="none")
    assert describe_unknown(error) == "expected Examples, got others"
