"""Options that give a value to each of several names."""

import pytest

from datum.cli.arguments import parse_pairs


@pytest.mark.parametrize(
    ("texts", "pairs"),
    [
        ([], {}),
        (["train=0.9,val=0.1"], {"train": "0.9", "val": "0.1"}),
        (["train=0.9", "val=0.1"], {"train": "0.9", "val": "0.1"}),
        ([" train = 0.9 , val = 0.1 "], {"train": "0.9", "val": "0.1"}),
        (["val=train[:10%]+test"], {"val": "train[:10%]+test"}),
        (["a=1,2,b=3"], {"a": "1,2", "b": "3"}),
        (["a=x == y"], {"a": "x == y"}),
        (["val=train[:10%],train=train[10%:]"], {"val": "train[:10%]", "train": "train[10%:]"}),
    ],
)
def test_pairs_are_read_from_one_or_several_texts(texts: list[str], pairs: dict[str, str]) -> None:
    assert parse_pairs(texts) == pairs


@pytest.mark.parametrize("text", ["train", "=0.9", "train=", "train=0.9,val", "", ","])
def test_what_is_no_pair_is_an_error_that_names_the_option(text: str) -> None:
    if text == "train=0.9,val":  # a value may hold a comma: the reader of the value will object
        assert parse_pairs([text]) == {"train": "0.9,val"}
        return
    with pytest.raises(ValueError, match=r"--splits: expected name=value, got .*\nhint: "):
        parse_pairs([text], option="--splits")


def test_a_name_given_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="--splits: expected 'a' once, got it twice"):
        parse_pairs(["a=1", "b=2,a=3"], option="--splits")
