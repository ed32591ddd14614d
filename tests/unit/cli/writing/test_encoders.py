"""Encoders as they are written in a shell."""

import sys

import pytest

from datum import MissingDependencyError
from datum.cli.write_options import encoders_of, read_encoders


def test_classes_by_feature():
    found = read_encoders(["a=LabelEncoder,b=OneHotEncoder", "c=LabelBinarizer"])
    assert {name: type(one).__name__ for name, one in found.items()} == {
        "a": "LabelEncoder",
        "b": "OneHotEncoder",
        "c": "LabelBinarizer",
    }


def test_calls_have_parameters():
    (found,) = read_encoders(["t = CountVectorizer(max_features=5, ngram_range=(1, 2))"]).values()
    assert (found.max_features, found.ngram_range) == (5, (1, 2))


def test_tables_have_a_class_and_parameters():
    table = {
        "t": {"class": "TfidfVectorizer", "ngram_range": [1, 2], "lowercase": False},
        "l": "LabelEncoder",
        "h": "HashingVectorizer(n_features=8)",
    }
    found = encoders_of(table, where="f.toml: encoders")
    assert (found["t"].ngram_range, found["t"].lowercase) == ((1, 2), False)
    assert type(found["l"]).__name__ == "LabelEncoder"
    assert found["h"].n_features == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t=CountVectoriser", r"got 'CountVectoriser'\nhint: did you mean CountVectorizer"),
        ("t=Something", r"expected a class of scikit-learn.*\nhint: there are CountVectorizer"),
        ("t=CountVectorizer(max_feature=5)", r"got 'max_feature'\nhint: did you mean 'max_feature"),
        ("t=CountVectorizer(5)", "expected a class and its parameters"),
        ("t=CountVectorizer(__import__('os'))", "expected a class and its parameters"),
        ("t=CountVectorizer(min_df=open('x'))", "expected a class and its parameters"),
        ("t=CountVectorizer(", "expected a class and its parameters"),
        ("t", "--encoders: expected name=value"),
    ],
)
def test_what_is_no_encoder_is_told(text, message):
    with pytest.raises(ValueError, match=message):
        read_encoders([text])


def test_tables_that_are_none_are_told():
    with pytest.raises(ValueError, match="expected encoders by feature"):
        encoders_of(7, where="o")
    with pytest.raises(ValueError, match=r"expected the name of a class.*\nhint: \[encoders.t\]"):
        encoders_of({"t": {"kind": "LabelEncoder"}}, where="o")


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.preprocessing", None)
    with pytest.raises(MissingDependencyError, match="pip install scikit-learn"):
        read_encoders(["a=LabelEncoder"])
