import io

from rich.console import Console
from rich.text import Text

from datum.cli.formatting import Column, Sized, lay_out
from datum.cli.terminal import UNICODE


def plain(columns, **options):
    return [line.plain for line in lay_out(columns, **options)]


def test_columns_stand_below_each_other():
    names = Column("name", ["a", "long name"])
    sizes = Column("size", ["5", "1,000"], "right")
    assert plain([names, sizes]) == ["name        size", "a              5", "long name  1,000"]


def test_columns_without_titles_have_no_heading():
    assert plain([Column("", ["a"]), Column("", ["b"])], indent="  ") == ["  a  b"]


def test_no_line_ends_in_blanks():
    assert plain([Column("a", ["x"]), Column("b", [""])])[1] == "x"


def test_wide_characters_take_their_room():
    assert plain([Column("", ["寿司", "a"]), Column("", ["|", "|"])]) == ["寿司  |", "a     |"]


def test_cells_keep_their_own_style():
    (line,) = lay_out(
        [Column("", [Text("x", "red")], style="green"), Column("", ["y"], style="blue")]
    )
    assert [str(span.style) for span in line.spans] == ["red", "blue"]


def test_brackets_are_no_markup():
    assert plain([Column("", ["[red]x[/]"])]) == ["[red]x[/]"]


def test_what_is_sized_is_told_width_and_signs():
    seen = []

    def make(width, signs):
        seen.append((width, signs))
        return [Text("line")]

    console = Console(width=33, file=io.TextIOWrapper(io.BytesIO(), "utf-8"))
    with console.capture() as captured:
        console.print(Sized(make))
    assert captured.get() == "line\n"
    assert seen == [(33, UNICODE)]
