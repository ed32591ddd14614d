"""Functions given to a framework they are not made for: refused by the call, with what to write."""

import functools
import inspect
import re
import textwrap

import numpy as np
import pytest
from PIL import Image

import datum
from datum import transforms

pytest.importorskip("tensorflow")

MADE = {
    "caffe": transforms.caffe("image"),
    "cast": transforms.cast("label", "float32"),
    "normalize": transforms.normalize("image"),
    "one_hot": transforms.one_hot("label", 2),
    "random_flip": transforms.random_flip("image", masks="mask", boxes=transforms.BOXES),
    "resize": transforms.resize("image", 20, 24, antialias=True, masks="mask"),
    "scale": transforms.scale("image", -1, 1),
}
DECODERS = {
    "center_crop": transforms.center_crop(24, 20),
    "decode_image": transforms.decode_image(),
    "random_crop": transforms.random_crop(24, 20),
}
NEUTRAL = {
    "compose": transforms.compose(transforms.select("image", "label")),
    "select": transforms.select("label"),
    "supervised": transforms.supervised("image", "label"),
}
LOADERS = ("to_numpy", "to_torch", "to_jax")


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "photos"
    y, x = np.mgrid[:48, :64]
    rows = [
        {
            "image": Image.fromarray(np.stack([x * 4, y * 5, x + y + n], -1).astype(np.uint8)),
            "mask": ((x > 20) & (y > 10)).astype(np.uint8)[..., None],
            "label": n % 2,
            "xmin": np.float32(0.25),
            "xmax": np.float32(1.0),
            "ymin": np.float32(0.5),
            "ymax": np.float32(0.75),
        }
        for n in range(6)
    ]
    datum.write(rows, path, shuffle=False, progress=False)
    return datum.load(path)


def refusal(call, **options):
    with pytest.raises(TypeError) as caught:
        call("train", **options)
    return str(caught.value)


def pasted(message):
    """The function of a hint, and the option it is for."""
    option, code = re.search(r"for (\w+)=prepare:\n(.*)", message, re.DOTALL).groups()
    names = {}
    exec(textwrap.dedent(code), names)
    return {option: names["prepare"]}


def batch_of(ds, **options):
    return next(iter(ds.to_numpy("train", batch_size=6, **options)))


def test_every_transform_is_looked_at():
    functions = {name for name in transforms.__all__ if inspect.isfunction(vars(transforms)[name])}
    assert functions == {*MADE, *DECODERS, *NEUTRAL}


@pytest.mark.parametrize("option", ["map", "batch_map"])
@pytest.mark.parametrize("name", [*MADE, *DECODERS])
def test_what_is_for_graphs_is_refused_elsewhere(ds, name, option):
    messages = {refusal(getattr(ds, to), **{option: (MADE | DECODERS)[name]}) for to in LOADERS}
    (message,) = messages
    assert message.startswith(f"expected `{option}` to work on NumPy arrays, got datum.transforms.")
    assert f"datum.transforms.{name}, which works on the tensors of TensorFlow's `to_tf`" in message
    if name != "decode_image":
        batch_of(ds, **pasted(message))


@pytest.mark.parametrize("name", [*MADE, *DECODERS])
def test_decoders_for_graphs_are_refused_elsewhere(ds, name):
    (message,) = {
        refusal(getattr(ds, to), decode={"image": (MADE | DECODERS)[name]}) for to in LOADERS
    }
    assert f"expected `decode` to work on NumPy arrays, got datum.transforms.{name}" in message
    if name == "decode_image":
        assert "hint: decode={'image': True}" in message
        assert batch_of(ds, decode={"image": True})["image"].shape == (6, 48, 64, 3)
    else:
        batch_of(ds, **pasted(message))


@pytest.mark.parametrize("name", ["caffe", "cast", "normalize", "one_hot", "resize", "scale"])
def test_what_is_hinted_at_does_the_same(ds, name):
    ours = batch_of(ds, **pasted(refusal(ds.to_numpy, map=MADE[name])))
    theirs = next(iter(ds.to_tf("train", batch_size=6, map=MADE[name], engine="graph")))
    assert ours.keys() == theirs.keys()
    for feature, values in ours.items():
        expected = theirs[feature].numpy()
        assert values.dtype == expected.dtype
        np.testing.assert_allclose(values, expected, atol=2 if name == "resize" else 1e-5)


def test_a_batch_is_prepared_as_its_records_are(ds):
    one_by_one = batch_of(ds, **pasted(refusal(ds.to_numpy, map=MADE["normalize"])))
    hinted = pasted(refusal(ds.to_numpy, batch_map=MADE["normalize"]))
    assert list(hinted) == ["batch_map"]
    np.testing.assert_array_equal(batch_of(ds, **hinted)["image"], one_by_one["image"])


def test_windows_that_are_hinted_at_are_of_the_size_and_place(ds):
    message = refusal(ds.to_numpy, decode={"image": DECODERS["center_crop"]})
    ours = batch_of(ds, **pasted(message))["image"]
    theirs = next(iter(ds.to_tf("train", batch_size=6, decode={"image": DECODERS["center_crop"]})))
    assert ours.shape == theirs["image"].shape
    assert np.abs(ours - theirs["image"].numpy().astype(int)).mean() < 3
    message = refusal(ds.to_numpy, decode={"image": DECODERS["random_crop"]})
    drawn = batch_of(ds, shuffle=True, **pasted(message))["image"]
    assert drawn.shape == (6, 24, 20, 3)
    again = batch_of(ds, shuffle=True, **pasted(message))["image"]
    np.testing.assert_array_equal(drawn, again)  # they follow from the seed of the loader
    assert len({image.tobytes() for image in drawn}) == 6


def test_flips_that_are_hinted_at_take_masks_and_boxes_along(ds):
    batch = batch_of(ds, **pasted(refusal(ds.to_numpy, map=MADE["random_flip"])))
    plain = batch_of(ds)
    is_flipped = batch["xmin"] == 0.0
    assert set(is_flipped.tolist()) == {True, False}
    for n, flipped in enumerate(is_flipped.tolist()):
        step = -1 if flipped else 1
        np.testing.assert_array_equal(batch["image"][n], plain["image"][n][:, ::step])
        np.testing.assert_array_equal(batch["mask"][n], plain["mask"][n][:, ::step])
        assert batch["xmax"][n] == (0.75 if flipped else 1.0)


def test_boxes_move_with_an_image_that_keeps_its_ratio(ds):
    fit = transforms.resize("image", 40, 40, keep_ratio=True, masks="mask", boxes=transforms.BOXES)
    ours = batch_of(ds, **pasted(refusal(ds.to_numpy, map=fit)))
    theirs = next(iter(ds.to_tf("train", batch_size=6, map=fit)))
    for feature, values in ours.items():
        assert values.shape == theirs[feature].shape
        if feature != "image":  # antialias is another
            np.testing.assert_allclose(values, theirs[feature], atol=1e-6, err_msg=feature)


def double(record):
    """What a user wrote, for any framework."""
    return {**record, "label": record["label"] * 2}


def test_what_is_composed_is_told_and_written_out(ds):
    prepare = transforms.compose(
        transforms.scale("image"), double, transforms.supervised(["image"], "label")
    )
    message = refusal(ds.to_torch, batch_map=prepare)
    assert "got datum.transforms.compose of scale, which works on the tensors" in message
    assert "    record = double(record)\n" in message
    assert "({'image': record['image']}, record['label'])" in message


def test_what_needs_no_tensors_works_everywhere(ds):
    for option in ("map", "batch_map"):
        assert list(batch_of(ds, **{option: NEUTRAL["select"]})) == ["label"]
        assert list(batch_of(ds, **{option: NEUTRAL["compose"]})) == ["image", "label"]
        images, labels = batch_of(ds, **{option: NEUTRAL["supervised"]})
        assert images.shape == (6, 48, 64, 3)
        assert labels.tolist() == [0, 1] * 3


def test_a_wrapped_transform_that_converts_is_not_refused(ds):
    flip = transforms.cast("label", "float32")

    @functools.wraps(flip)
    def converted(record):
        return {**record, "label": flip(record)["label"].numpy()}

    assert batch_of(ds, map=converted)["label"].dtype == np.float32


def test_a_transform_with_arguments_given_is_refused_too(ds):
    seeded = functools.partial(MADE["random_flip"], seed=[1, 2])
    assert "got datum.transforms.random_flip" in refusal(ds.to_numpy, map=seeded)


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_given_as_a_map_is_told_its_place(ds, name):
    hints = set()
    for option in ("map", "batch_map"):
        message = refusal(ds.to_tf, **{option: DECODERS[name]})
        assert f"got datum.transforms.{name}, which takes the bytes of an image" in message
        hints.add(message.partition("\nhint: decode=")[2])
    (hint,) = hints
    ds.to_tf("train", decode=eval(hint, {"datum": datum}))


def test_a_function_of_records_given_as_a_decoder_is_told_its_place(ds):
    for to in ("to_numpy", "to_tf"):
        message = refusal(getattr(ds, to), decode={"image": NEUTRAL["select"]})
        assert "which takes a record\nhint: map=datum.transforms.select('label')" in message
    assert "which takes a record" in refusal(ds.to_tf, decode={"image": MADE["scale"]})


def test_what_makes_functions_is_not_one(ds):
    message = refusal(ds.to_tf, map=transforms.scale)
    assert "got datum.transforms.scale, which makes one" in message
    assert message.endswith(
        "hint: call it with its options: datum.transforms.scale(name, low=0.0, high=1.0)"
    )
    message = refusal(ds.to_numpy, decode={"image": transforms.decode_image})
    assert "datum.transforms.decode_image, which makes functions for TensorFlow's" in message


@pytest.mark.parametrize("option", ["map", "batch_map", "decode"])
@pytest.mark.parametrize("name", ["rng", "generator"])
def test_tensorflow_gives_no_generator(ds, name, option):
    functions = {"rng": lambda given, rng: given, "generator": lambda given, *, generator: given}
    function = functions[name]
    message = refusal(ds.to_tf, **{option: {"image": function} if option == "decode" else function})
    assert f"expected `{option}` without a parameter `{name}`, got <lambda>(given, " in message
    assert "hint: draw within the graph: map=lambda record: {**record, 'chance':" in message


def test_a_generator_that_tensorflow_would_freeze_is_refused(ds):
    def shift(record, rng):
        return {**record, "label": record["label"] + rng.integers(5)}

    frozen = functools.partial(shift, rng=np.random.default_rng(0))
    assert "would draw only once, when TensorFlow traces it" in refusal(ds.to_tf, map=frozen)


def test_a_generator_that_may_be_none_is_no_matter(ds):
    def keep(record, rng=None):
        return {**record, "has_rng": rng is not None}

    assert not next(iter(ds.to_tf("train", map=keep)))["has_rng"].numpy().any()
    assert batch_of(ds, map=keep)["has_rng"].all()


@pytest.mark.parametrize(
    ("option", "function", "hint"),
    [
        ("batch_map", lambda batch, size: batch, "functools.partial sets the other arguments"),
        ("map", lambda: None, "functools.partial"),
        ("decode", lambda data, rng: data, "draw in `map`, which gets an `rng`"),
    ],
)
def test_arguments_that_no_loader_gives_are_told_by_the_call(ds, option, function, hint):
    given = {option: {"image": function} if option == "decode" else function}
    for to in LOADERS:
        message = refusal(getattr(ds, to), **given)
        assert f"expected `{option}` to be a function of" in message
        assert f"hint: {hint}" in message


def test_a_generator_of_torch_is_given_by_torch_alone(ds):
    def draw(record, generator):
        return {"label": record["label"], "is_torch": type(generator).__module__ == "torch._C"}

    assert all(next(iter(ds.to_torch("train", map=draw)))["is_torch"])
    for to in (ds.to_numpy, ds.to_jax):
        assert "hint: name the parameter `rng` to get a NumPy generator" in refusal(to, map=draw)


def test_functions_whose_parameters_are_unknown_are_taken(ds):
    assert batch_of(ds, map=dict)["label"].tolist() == [0, 1] * 3
    assert batch_of(ds, map=lambda *given, **more: given[0])["label"].tolist() == [0, 1] * 3
