"""Annotations of Pascal VOC."""

import os

import pytest

from datum.sources import voc
from datum.sources.image_files import UnusableRecordError
from datum.sources.voc import Annotation, VocObject, read_annotation

BOX = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3.5</xmax><ymax>4</ymax></bndbox>"
SIZE = "<size><width>20</width><height>10</height><depth>3</depth></size>"


def read(tmp_path, content):
    path = tmp_path / "a.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_annotation(path)


def annotation(*objects, size=SIZE):
    return f"<annotation>{size}{''.join(objects)}</annotation>"


def test_objects_are_read(tmp_path):
    flags = "<pose>Left</pose><truncated>1</truncated><difficult>0</difficult>"
    content = annotation(f"<object><name> cat </name>{flags}{BOX}</object>")
    assert read(tmp_path, content) == Annotation(
        20.0, 10.0, [VocObject("cat", "Left", True, False, 1.0, 2.0, 3.5, 4.0)]
    )


def test_what_is_missing_has_a_default(tmp_path):
    found = read(tmp_path, annotation(f"<object><name>cat</name>{BOX}</object>", size=""))
    assert (found.width, found.height) == (0, 0)
    assert found.objects == [VocObject("cat", "Unspecified", False, False, 1, 2, 3.5, 4)]
    assert read(tmp_path, annotation(size="<size/>")) == Annotation(0.0, 0.0, [])


def test_parts_of_objects_are_no_objects(tmp_path):
    part = f"<part><name>head</name>{BOX}</part>"
    found = read(tmp_path, annotation(f"<object><name>person</name>{BOX}{part}</object>"))
    assert [item.name for item in found.objects] == ["person"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected XML, got a damaged file"),
        ("<annotation>", "expected XML, got a damaged file"),
        (b"\xff\xfe\x00", "expected XML, got a damaged file"),
        (annotation("<object><name/></object>"), "expected a name of every object"),
        (annotation("<object><name>a</name></object>"), "object 'a': expected a bndbox"),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', 'x')}</object>"),
            "xmax: expected a number, got 'x'",
        ),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', 'nan')}</object>"),
            "xmax: expected a number, got 'nan'",
        ),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', '1e999')}</object>"),
            "xmax: expected a number",
        ),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', '0')}</object>"),
            "expected xmin <= xmax and ymin <= ymax, got 1, 2, 0, 4",
        ),
        (annotation(size="<size><width>wide</width></size>"), "width: expected a number"),
    ],
)
def test_a_damaged_annotation_is_refused_with_its_reason(tmp_path, content, reason):
    with pytest.raises(UnusableRecordError, match=reason) as caught:
        read(tmp_path, content)
    assert caught.value.where == str(tmp_path / "a.xml")


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 20))


@pytest.mark.parametrize(
    "declaration",
    [
        f'<!ENTITY l0 "lol">{LAUGHS}',
        '<!ENTITY l19 SYSTEM "file:///etc/passwd">',
        '<!ENTITY % outer SYSTEM "http://127.0.0.1:1/x.dtd"> %outer;',
    ],
    ids=["bomb", "file", "network"],
)
def test_entities_are_refused_at_once(tmp_path, declaration):
    content = f"<!DOCTYPE a [{declaration}]><annotation>&l19;</annotation>"
    with pytest.raises(UnusableRecordError, match="expected XML without entities"):
        read(tmp_path, content)


def test_deep_nesting_is_read_or_refused(tmp_path):
    content = "<annotation>" + "<a>" * 100_000 + "</a>" * 100_000 + "</annotation>"
    try:
        assert read(tmp_path, content).objects == []
    except UnusableRecordError as error:
        assert "expected XML" in str(error)  # noqa: PT017 - either is fine, a crash is not


def test_a_huge_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(voc, "MAX_XML_BYTES", 10)
    with pytest.raises(UnusableRecordError, match="expected at most 10 bytes of XML"):
        read(tmp_path, annotation())


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.xml")
    with pytest.raises(UnusableRecordError, match="expected a regular file, got a pipe"):
        read_annotation(tmp_path / "a.xml")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_of_endless_tags_is_refused_before_it_is_parsed(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(voc, "MAX_TAGS", 100)
    many = annotation("<a/>" * 101)
    with pytest.raises(UnusableRecordError, match="expected at most 100 tags of XML, got more"):
        read(tmp_path, many.encode(encoding))
    assert read(tmp_path, annotation("<a/>" * 80, size="").encode(encoding)).objects == []
