import json
import subprocess
import sys

import numpy as np
import pytest

import datum
from datum._write.encoders import rebuild_encoder
from datum.errors import ManifestError, MissingDependencyError, SchemaError, SourceError

text = pytest.importorskip("sklearn.feature_extraction.text")
labels = pytest.importorskip("sklearn.preprocessing")

TEXTS = ["a small red house", "a red car, a fast car", "Ein kleines Haus", "tall tree red"]
KINDS = ["house", "car", "house", "tree"]


def split_words(line):
    return line.split()


def write(path, values, encoder, **options):
    rows = [{"x": value, "n": n} for n, value in enumerate(values)]
    datum.write(rows, path, encoders={"x": encoder}, shuffle=False, progress=False, **options)
    return datum.load(path)


def dense(found):
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


@pytest.mark.parametrize(
    "encoder",
    [
        text.CountVectorizer(),
        text.CountVectorizer(ngram_range=(1, 2), binary=True, dtype=np.int32, stop_words=["a"]),
        text.CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), max_df=0.9, min_df=1),
        text.CountVectorizer(vocabulary=["red", "car"]),
        text.TfidfVectorizer(),
        text.TfidfVectorizer(use_idf=False, norm="l1", sublinear_tf=True),
        text.TfidfVectorizer(dtype=np.float32, smooth_idf=False),
        text.HashingVectorizer(n_features=32, alternate_sign=False),
    ],
    ids=str,
)
def test_a_vectorizer_comes_back(encoder, tmp_path):
    ds = write(tmp_path / "out", TEXTS, encoder)
    found = ds.encoders["x"]
    expected = encoder if hasattr(encoder, "n_features") else encoder.fit(TEXTS)
    asked = [*TEXTS, "a house that is new"]
    np.testing.assert_array_equal(dense(found.transform(asked)), dense(expected.transform(asked)))
    assert type(found) is type(encoder)
    if not hasattr(encoder, "n_features"):
        names = expected.get_feature_names_out().tolist()
        assert found.get_feature_names_out().tolist() == names
        assert [sorted(row) for row in found.inverse_transform(found.transform(["red car"]))] == [
            sorted(row) for row in expected.inverse_transform(expected.transform(["red car"]))
        ]


@pytest.mark.parametrize(
    ("encoder", "values"),
    [
        (labels.LabelEncoder(), KINDS),
        (labels.LabelEncoder(), [7, 3, 7, -1]),
        (labels.LabelEncoder(), [0.5, 2.5, 0.5, 1.0]),
        (labels.LabelBinarizer(), KINDS),
        (labels.LabelBinarizer(neg_label=-1, pos_label=2), ["no", "yes", "no", "no"]),
        (labels.LabelBinarizer(sparse_output=True), KINDS),
    ],
    ids=str,
)
def test_an_encoder_of_labels_comes_back_and_tells_what_numbers_mean(encoder, values, tmp_path):
    found = write(tmp_path / "out", values, encoder).encoders["x"]
    expected = encoder.fit(values)
    numbers = found.transform(values)
    np.testing.assert_array_equal(dense(numbers), dense(expected.transform(values)))
    assert list(found.inverse_transform(numbers)) == values
    assert found.get_params() == encoder.get_params()


@pytest.mark.parametrize(
    "encoder",
    [
        labels.OneHotEncoder(),
        labels.OneHotEncoder(sparse_output=False, drop="first"),
        labels.OneHotEncoder(sparse_output=False, drop=["car"], dtype=np.float32),
        labels.OneHotEncoder(handle_unknown="ignore"),
        labels.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2),
        labels.OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=2),
    ],
    ids=str,
)
def test_a_one_hot_encoder_comes_back(encoder, tmp_path):
    found = write(tmp_path / "out", KINDS, encoder).encoders["x"]
    table = np.array(KINDS, object).reshape(-1, 1)
    expected = encoder.fit(table)
    np.testing.assert_array_equal(dense(found.transform(table)), dense(expected.transform(table)))
    assert (
        found.inverse_transform(found.transform(table)).tolist()
        == expected.inverse_transform(expected.transform(table)).tolist()
    )


def test_several_columns_with_rare_categories_come_back(tmp_path):
    rows = [["a", 1], ["a", 1], ["b", 2], ["a", 3], ["c", 1]]
    encoder = labels.OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist")
    found = write(tmp_path / "out", rows, encoder).encoders["x"]
    table = np.array(rows, object)
    np.testing.assert_array_equal(
        dense(found.transform(table)), dense(encoder.fit(table).transform(table))
    )


def test_encoders_are_a_mapping_that_makes_each_when_asked(tmp_path):
    encoders = write(tmp_path / "out", TEXTS, text.CountVectorizer()).encoders
    assert list(encoders) == ["x"]
    assert "n" not in encoders
    assert repr(encoders) == "Encoders({'x': CountVectorizer})"
    assert encoders["x"] is encoders["x"]
    with pytest.raises(KeyError):
        encoders["n"]


def test_an_append_applies_the_stored_encoder(tmp_path):
    write(tmp_path / "out", TEXTS, text.TfidfVectorizer())
    before = datum.load(tmp_path / "out").metadata
    added = [{"x": "red red unknown", "n": 9}, {"x": None, "n": 10}]
    for encoders in (None, {"x": text.TfidfVectorizer()}):
        datum.write(
            added, tmp_path / "out", append=True, encoders=encoders, shuffle=False, progress=False
        )
    ds = datum.load(tmp_path / "out")
    assert ds.metadata == before
    expected = text.TfidfVectorizer().fit(TEXTS).transform(["red red unknown"]).toarray()[0]
    for at in (4, 6):
        np.testing.assert_array_equal(ds["train"][at]["x"].to_dense(), expected.astype(np.float32))
        assert ds["train"][at + 1]["x"] is None


def test_an_append_learns_no_new_labels(tmp_path):
    write(tmp_path / "out", KINDS, labels.LabelEncoder())
    with pytest.raises(SourceError, match="expected one of 3 classes, got 'boat'"):
        datum.write([{"x": "boat", "n": 1}], tmp_path / "out", append=True, progress=False)
    encoders = {"x": labels.LabelBinarizer()}
    with pytest.raises(SchemaError, match="expected a LabelEncoder, as the dataset has"):
        datum.write([{"x": "car", "n": 1}], tmp_path / "out", append=True, encoders=encoders)


def test_what_is_encoded_already_is_appended_as_it_is(tmp_path):
    ds = write(tmp_path / "out", KINDS, labels.LabelEncoder())
    write(tmp_path / "more", KINDS, labels.LabelEncoder())
    datum.write(datum.load(tmp_path / "more"), tmp_path / "out", append=True, progress=False)
    codes = [{"x": 2, "n": 5}]
    datum.write(codes, tmp_path / "out", append=True, encoders={"x": None}, progress=False)
    ds = datum.load(tmp_path / "out")
    assert sorted(int(row["x"]) for row in ds["train"]) == [0, 0, 1, 1, 1, 1, 2, 2, 2]


def test_functions_are_not_stored_but_may_be_given_again(tmp_path):
    encoder = text.CountVectorizer(tokenizer=split_words, token_pattern=None)
    ds = write(tmp_path / "out", TEXTS, encoder)
    assert ds.metadata["x"]["unstored_parameters"] == ["tokenizer"]
    with pytest.raises(SchemaError, match="got objects as tokenizer of CountVectorizer") as raised:
        ds.encoders["x"]
    assert "encoders={'x': CountVectorizer(tokenizer=...)}" in str(raised.value)
    added = [{"x": "red, car", "n": 1}]
    with pytest.raises(SchemaError, match="to append, pass a CountVectorizer"):
        datum.write(added, tmp_path / "out", append=True, progress=False)
    datum.write(added, tmp_path / "out", append=True, encoders={"x": encoder}, progress=False)
    assert datum.load(tmp_path / "out")["train"][4]["x"].values.tolist() == [1]


@pytest.mark.parametrize(
    "found",
    [
        {"encoder": "CountVectorizer", "parameters": {}},
        {"encoder": "CountVectorizer", "parameters": {"colour": 1}, "vocabulary": {"a": 0}},
        {"encoder": "LabelEncoder", "parameters": {}, "classes": 3},
        {"encoder": "OneHotEncoder", "parameters": {}, "categories": [[]]},
    ],
)
def test_metadata_that_does_not_describe_an_encoder_is_refused(found):
    with pytest.raises(ManifestError, match=f"expected what describes a {found['encoder']}"):
        rebuild_encoder("x", found)


def test_an_encoder_of_another_class_is_never_made():
    with pytest.raises(SchemaError, match="expected one of CountVectorizer, .*, got Pipeline"):
        rebuild_encoder("x", {"encoder": "Pipeline"})


def test_without_scikit_learn_the_error_says_what_to_install(tmp_path):
    write(tmp_path / "out", KINDS, labels.LabelEncoder())
    code = (
        "import sys; sys.modules['sklearn'] = None; import datum\n"
        f"ds = datum.load({str(tmp_path / 'out')!r}); assert list(ds.encoders) == ['x']\n"
        "try:\n    ds.encoders['x']\n"
        "except datum.MissingDependencyError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "hint: pip install scikit-learn"
    assert issubclass(MissingDependencyError, ImportError)


def test_nothing_is_pickled(tmp_path):
    ds = write(tmp_path / "out", TEXTS, text.TfidfVectorizer())
    stored = json.loads((tmp_path / "out" / "datum.json").read_text())
    assert stored["metadata"]["x"]["idf"] == ds.encoders["x"].idf_.tolist()
