"""Ten handwritten digits as rows, for the other examples."""

import numpy as np

# The first ten of the UCI "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak,
# CC BY 4.0), from scikit-learn: a label, then 8 rows of 8 pixels from 0 to g (16).
DIGITS = """
0 005d9100 00dfaf50 03f20b80 04c00880 05800980 04b01c70 02e5ac00 006da000
1 000cd500 000bg900 003fg600 07fgg200 001gg300 001gg600 001gg600 000bga00
2 0004fc00 003gfe00 008d8g00 0016fb00 018df100 09gg5000 03dggb50 0003bg90
3 007fd100 08d6f400 021dd000 002fb100 0001cc10 00001a80 00845e90 007dd900
4 0001b000 00078000 001d6220 007f0980 05ga0g60 04fgdg10 0003fa00 0002g400
5 00ca0000 00egge00 00dgfa10 00bgg700 00047g70 00004g90 0054cg40 009gga00
6 000cd000 005g8000 00dg3000 00ed0000 00fc7200 00dgdg30 007gbf80 0019fb30
7 0078dgf1 00774bc0 00008d10 0488ff60 02bff400 000g5000 009f1000 00d50000
8 009e8100 00ceec00 009a0f40 003gce20 004gg200 03g8ad20 01f13g80 00bgfb10
9 00bc0000 02gggd00 03gcae00 01g1cf00 00dg9f20 000309b0 00009f40 009cd300
"""


def read_digits() -> list[dict[str, object]]:
    """Rows with a label, an image and a word."""
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    rows = []
    for line in DIGITS.split("\n"):
        if line:
            label, *pixels = line.split()
            image = np.array([[int(value, 17) for value in row] for row in pixels], np.uint8)
            rows.append({"label": int(label), "image": image, "name": names[int(label)]})
    return rows


if __name__ == "__main__":
    print(*(row["name"] for row in read_digits()))
