import inspect

import pytest

import datum
from datum._frameworks.tensorflow.options import TfKeywords, TfOptions
from datum._load.options import LoadKeywords, LoadOptions
from datum._options import fields_of, help_of
from datum.configs import BucketConfigs
from datum.schema import Feature, Schema

SCHEMA = Schema(
    {"image": Feature("uint8", (None, None, 3), encoding="image"), "label": Feature("int64")}
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "`batch_size` of 1 or more, got 0"),
        ({"batch_size": True}, "`batch_size` of 1 or more, got True"),
        ({"epochs": -1}, "`epochs` of 1 or more, got -1"),
        ({"echo": 0}, "`echo` of 1 or more"),
        ({"shuffle": -5}, "`shuffle` of 0 or more"),
        ({"prefetch": -2}, "`prefetch` of 0 or more"),
        ({"num_parallel_calls": 0}, "`num_parallel_calls` of 1 or more"),
        ({"engine": "fast"}, "`engine` to be 'auto' or 'graph' or 'native', got 'fast'"),
        ({"on_error": "ignore"}, "`on_error` to be 'raise' or 'skip', got 'ignore'"),
        ({"bucket_op": BucketConfigs()}, "a `bucket_fn` with `bucket_op`"),
        ({"bucket_fn": len}, "hint: bucket_op=datum.configs.BucketConfigs"),
        (
            {"bucket_fn": len, "bucket_op": BucketConfigs(), "batch_size": None},
            "a `batch_size` with `bucket_fn`",
        ),
        ({"epochs": 0}, "hint: epochs=None has no end"),
        ({"seed": -1}, "`seed` of 0 or more"),
    ],
)
def test_an_option_out_of_range_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TfOptions(**options)


@pytest.mark.parametrize("name", ["prefetch", "num_parallel_calls"])
def test_autotune_leaves_the_number_to_tf_data(name):
    assert getattr(TfOptions(**{name: -1}), name) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 1.5}, "`batch_size` to be a whole number, got 1.5"),
        ({"seed": "a"}, "`seed` to be a whole number, got 'a'"),
        ({"pad": 1.5}, "`pad` to be True, False, a length, a datum.Pad, or a dict by feature"),
        ({"decode": "image"}, "`decode` to be True, False, or a dict by feature"),
        ({"decode": ["image"]}, "`decode` to be True, False, or a dict by feature"),
        ({"drop_remainder": "yes"}, "`drop_remainder` to be True or False, got 'yes'"),
        ({"cache": 3}, "`cache` to be True, False, or a file name, got 3"),
        ({"read": {"seed": 1}}, "`read` to be a datum.configs.TFRReadConfigs"),
        ({"map": "resize"}, "`map` to be a function, got 'resize'"),
        (
            {"bucket_fn": len, "bucket_op": [1, 2]},
            "`bucket_op` to be a datum.configs.BucketConfigs",
        ),
    ],
)
def test_an_option_of_another_kind_is_refused(options, message):
    with pytest.raises(TypeError, match=message):
        TfOptions(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["labl"]},
        {"columns": "labl"},
        {"decode": {"labl": False}},
        {"pad": {"labl": 0}},
        {"supervised": ("image", "labl")},
    ],
)
def test_a_misspelt_feature_is_refused_and_the_nearest_named(options):
    with pytest.raises(ValueError, match="hint: did you mean 'label'"):
        TfOptions(**options).selected(SCHEMA)


@pytest.mark.parametrize(
    "supervised", [True, ("image",), "image", ("image", 3), ("a", "b", "c", "d")]
)
def test_supervised_names_inputs_and_targets(supervised):
    with pytest.raises(TypeError, match="inputs, the targets"):
        TfOptions(supervised=supervised)


def test_only_what_is_asked_for_is_read():
    assert list(TfOptions(columns=["label"]).selected(SCHEMA)) == ["label"]
    assert list(TfOptions(supervised=("label", "label")).selected(SCHEMA)) == ["label"]
    both = TfOptions(supervised=("label", "label"), map=lambda record: record)
    assert list(both.selected(SCHEMA)) == ["image", "label"]


def test_names_that_a_callback_makes_are_its_own_affair():
    TfOptions(supervised=("pixels", "label"), map=lambda record: record).selected(SCHEMA)


def test_at_least_one_column_is_read():
    with pytest.raises(ValueError, match="at least one feature, got none"):
        TfOptions(columns=[]).selected(SCHEMA)


@pytest.mark.parametrize(
    ("declared", "keywords"), [(TfOptions, TfKeywords), (LoadOptions, LoadKeywords)]
)
def test_options_and_the_keywords_of_editors_agree(declared, keywords):
    assert set(fields_of(declared)) == set(keywords.__annotations__) == set(help_of(declared))


def test_to_tf_shows_every_option_with_its_default_and_help():
    parameters = inspect.signature(datum.Dataset.to_tf).parameters
    for name, option in fields_of(TfOptions).items():
        assert parameters[name].default == option.default
        assert f"    {name}: " in datum.Dataset.to_tf.__doc__
    assert not {"threads", "batch_tokens", "buckets"} & set(parameters)


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("bucket_fun", "did you mean `bucket_fn`"),
        ("buckets", "`bucket_fn` and `bucket_op` set a batch size"),
        ("batch_tokens", "`bucket_fn` and `bucket_op` set a batch size"),
        ("threads", "to_tf: got an unknown option `threads`"),
    ],
)
def test_an_unknown_option_is_refused_with_a_way_out(keyword, hint):
    with pytest.raises(TypeError, match=hint):
        TfOptions.of({keyword: 1}, caller="to_tf")


def test_a_padded_batch_needs_its_mask_among_the_supervised_names():
    padded = {"remainder": "pad"}
    with pytest.raises(ValueError, match="expected 'batch_mask' among the names"):
        TfOptions(supervised=("image", "label"), **padded).selected(SCHEMA)
    masked = TfOptions(supervised=("image", "label", "batch_mask"), **padded)
    assert list(masked.selected(SCHEMA)) == ["image", "label"]
