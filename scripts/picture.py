"""Draws docs/pictures/info.svg, the picture of `datum info` in the README: scripts/picture.py"""

import io
import os
import re
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console
from sklearn.datasets import load_digits

import datum
from datum.cli.info_page import render

COLUMNS = 98
OUT = Path(__file__).parents[1] / "docs/pictures/info.svg"


def main() -> None:
    digits = load_digits()
    rows = [
        {
            "image": Image.fromarray((image * 15).astype("uint8")),
            "label": int(label),
            "ink": float(image.mean() / 16),
            "dark_pixels": int((image > 8).sum()),
        }
        for image, label in zip(digits.images, digits.target, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        datum.write(rows, "handwriting", splits={"train": 0.8, "val": 0.2}, progress=False)
        page = render(datum.profile("handwriting", sample="quick"), title="handwriting")
        console = Console(record=True, width=COLUMNS, file=io.StringIO())
        console.print("[bold]$[/] datum info handwriting\n")
        console.print(page, soft_wrap=True, highlight=False)
    OUT.write_text(with_own_fonts(console.export_svg(title="datum info handwriting")))


def with_own_fonts(svg: str) -> str:
    """The picture with the fonts of whoever looks at it, instead of some from the network."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")


if __name__ == "__main__":
    main()
