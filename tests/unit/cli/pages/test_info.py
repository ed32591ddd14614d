import io

import numpy as np
import pytest
from rich.console import Console

import datum
from datum.cli.info_page import describe_look, render


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "out"
    columns = {"x": np.random.default_rng(0).normal(size=200), "label": np.arange(200) % 3}
    splits = {"train": 0.8, "val": 0.2}
    datum.write(columns, path, splits=splits, progress=False)
    return datum.profile(path)


def printed(page, width=100, encoding="utf-8"):
    file = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    console = Console(file=file, width=width, force_terminal=False)
    console.print(page, soft_wrap=True, highlight=False)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def test_the_page_tells_who_wrote_it_and_what_it_holds(profile):
    text = printed(render(profile, title="name"))
    first = text.splitlines()[0]
    assert first.startswith("name  Datum dataset (format 1) · 200 records · ")
    assert first.endswith(" · 2 shards · not compressed")
    assert "✓ nothing to warn of" in text
    assert "looked at all 200 records in 0." in text
    assert "next: datum head name · datum stats name · datum info name --spec tf" in text


@pytest.mark.parametrize("width", [200, 100, 80, 60, 40])
def test_no_line_is_longer_than_the_terminal_is_wide(profile, width):
    lines = printed(render(profile, title="name"), width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def test_a_terminal_of_ascii_gets_ascii(profile):
    text = printed(render(profile, title="name"), encoding="ascii")
    assert "ok nothing to warn of" in text
    assert "?" not in text


def test_only_so_many_features_are_shown(profile):
    text = printed(render(profile, features=1))
    assert "… 1 more feature: --all shows them" in text


def test_classes_may_be_left_out(profile):
    assert "balanced" in printed(render(profile))
    assert "balanced" not in printed(render(profile, classes=0))


def test_a_path_with_blanks_is_quoted_where_it_is_to_be_typed(profile):
    assert "datum head 'my data'" in printed(render(profile, title="my data"))


def test_the_page_can_be_made_into_a_picture(profile):
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(render(profile, title="digits"))
    assert "digits" in console.export_svg(title="datum info")


def test_of_a_sample_it_is_told_what_is_known_of_all(profile, tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", progress=False)
    text = describe_look(datum.profile(tmp_path / "out", sample=10))
    assert text.startswith("looked at 10 of 1,000 records in 0.")
    assert "(counts, ranges and means are of all, from the manifest): --full" in text


def test_more_labels_than_fit_are_named(tmp_path):
    rows = [{f"{name}_label": n % 2 for name in "abcde"} | {"id": n} for n in range(50)]
    datum.write(rows, tmp_path / "out", progress=False)
    text = printed(render(datum.profile(tmp_path / "out")))
    assert "… more labels: d_label, e_label" in text
