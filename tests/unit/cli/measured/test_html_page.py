"""The page of `datum bench`: well-formed, escaped, complete in itself."""

import re
from html.parser import HTMLParser

import pytest

from datum._inspect.measure.measurement import Advice, Bottleneck, Speed
from datum.cli.bench_page import make_page
from tests.unit.measure.made import make_measurement

VOID = {"br", "meta"}


class Checker(HTMLParser):
    """Knows what is open, and what text there is."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)


def parsed(found):
    checker = Checker()
    checker.feed(make_page(found))
    checker.close()
    assert checker.open == []
    return checker


def test_the_page_is_well_formed_and_has_all_figures():
    page = parsed(make_measurement())
    text = "".join(page.texts)
    for words in (
        "datum bench: photos",
        "12,345 records",
        "Decoding takes 90 % of the time: 900 µs.",
        "90 %, 900 µs",
        "2,000 records/s",
        "no such <format>",
        "Not installed: jax",
        "12x measured",
        "ds.to_numpy(..., cache=True)",
        "The disk gives 500 MB/s",
        "Note: the machine is busy.",
    ):
        assert words in text, words
    assert page.tags.count("table") == 2
    assert page.tags.count("h1") == page.tags.count("title") == 1


def test_bars_are_as_wide_as_their_shares():
    page = make_page(make_measurement())
    assert re.findall(r'style="width: ([\d.]+)%', page) == [
        "0.20",
        "9.80",
        "90.00",
        "100.00",
        "50.00",
    ]


def test_nothing_is_fetched_or_run():
    page = parsed(make_measurement())
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    names = {name for _, name, _ in page.attributes}
    assert names == {"lang", "charset", "name", "content", "class", "style"}
    assert "url(" not in make_page(make_measurement())
    assert "http" not in make_page(make_measurement())


def test_it_suits_phones_and_the_dark():
    page = make_page(make_measurement())
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize("evil", ['<script>alert("x")</script>', "a & b < c > 'd' \"e\""])
def test_what_comes_from_the_data_is_escaped(evil):
    found = make_measurement(
        path=evil,
        split=evil,
        options={**make_measurement().options, "columns": [evil]},
        speeds=(Speed("tf", evil, evil, problem=evil),),
        missing=(evil,),
        bottleneck=Bottleneck("decode", 0.9, evil),
        advice=(Advice("kind", evil, evil, 2.0, "measured"),),
        notes=(evil,),
    )
    page = parsed(found)
    assert "script" not in page.tags
    assert "".join(page.texts).count(evil) >= 8


def test_names_that_are_no_utf8_do_not_break_it():
    make_page(make_measurement(path="caf\udce9")).encode("utf-8")


def test_stages_alone_make_a_page():
    page = parsed(make_measurement(speeds=(), advice=(), bottleneck=None, missing=(), notes=()))
    assert page.tags.count("table") == 1
    assert "What to change" not in "".join(page.texts)


def test_nothing_to_change_is_said():
    assert "Nothing stands out." in "".join(parsed(make_measurement(advice=())).texts)
