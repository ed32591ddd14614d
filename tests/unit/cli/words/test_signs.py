from dataclasses import fields

from rich.console import Console

from datum.cli.terminal import ASCII, UNICODE, signs_for


def test_ascii_signs_are_ascii():
    assert all(getattr(ASCII, part.name).isascii() for part in fields(ASCII))


def test_a_console_that_holds_ascii_alone_gets_them():
    options = Console().options
    options.encoding = "ascii"
    assert signs_for(options) is ASCII
    options.encoding = "utf-8"
    assert signs_for(options) is UNICODE
