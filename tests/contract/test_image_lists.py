"""Lists of images, as videos and the steps of episodes have them: through every face of Datum."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import datum
from datum import Feature, Ragged, Schema


def pixels(shade, size=(4, 5), channels=3):
    array = np.arange(size[0] * size[1] * channels, dtype=np.uint8).reshape(*size, channels)
    return array + np.uint8(shade)


def png_of(array):
    file = io.BytesIO()
    Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(file, "png")
    return file.getvalue()


def write(source, out, **options):
    return datum.write(source, out, shuffle=False, progress=False, **options)


COUNTS = (2, 0, 3, 1, 2)
CLIPS = [
    np.stack([pixels(10 * i + k) for k in range(n)]) if n else None for i, n in enumerate(COUNTS)
]
FEATURE = Feature("uint8", (None, None, None, 3), encoding="image")


@pytest.fixture
def clips(tmp_path):
    """A dataset of lists of two, no, three, one and two images."""
    rows = [
        {"id": i, "clip": [] if clip is None else [png_of(one) for one in clip]}
        for i, clip in enumerate(CLIPS)
    ]
    write(rows, tmp_path / "clips", schema={"clip": FEATURE})
    return datum.load(tmp_path / "clips")


def check(found, at):
    expected = np.zeros((0, 4, 5, 3), np.uint8) if CLIPS[at] is None else CLIPS[at]
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert np.asarray(found).dtype == np.uint8


def test_the_schema_tells_how_many_and_how_large_they_are(clips):
    assert clips.schema["clip"] == Feature("uint8", (None, 4, 5, 3), encoding="image")
    assert clips.metadata["clip"]["formats"] == {"png": 8}
    assert Schema.from_json(clips.schema.to_json()) == clips.schema


def test_records_have_one_array_each(clips):
    for at, record in enumerate(clips["train"]):
        check(record["clip"], at)
    check(clips["train"][2]["clip"], 2)


def test_batches_are_ragged(clips):
    (batch,) = clips.to_numpy("train", batch_size=5)
    assert isinstance(batch["clip"], Ragged)
    assert batch["clip"].shape == (5, None, 4, 5, 3)
    for at, clip in enumerate(batch["clip"]):
        check(clip, at)


@pytest.mark.parametrize(
    "options",
    [
        {"cache": True, "epochs": 2},
        {"map": lambda record: record},
        {"map": lambda record: {"id": record["id"], "clip": record["clip"] + np.uint8(0)}},
        {"map": lambda record: record, "cache": True, "epochs": 2},
        {"shuffle": True, "seed": 3},
        {"threads": 1},
        {"columns": ["clip", "id"], "batch_size": 2},
        {"batch_size": 2, "cache": True, "epochs": 3, "shuffle": True},
    ],
    ids=" ".join,
)
def test_all_ways_to_batches_give_the_same_images(clips, options):
    seen = []
    for batch in clips.to_numpy("train", **{"batch_size": 5, **options}):
        for number, clip in zip(batch["id"], batch["clip"], strict=True):
            seen.append(int(number))
            if len(clip):
                check(clip, number)
    assert sorted(seen) == sorted(list(range(5)) * options.get("epochs", 1))


def test_single_records_of_a_loader(clips):
    for at, record in enumerate(clips.to_numpy("train", batch_size=None)):
        check(record["clip"], at)


def test_changes_to_a_batch_do_not_reach_the_cache(clips):
    for batch in clips.to_numpy("train", batch_size=5, cache=True, epochs=2):
        check(batch["clip"][2], 2)
        batch["clip"].values[:] = 0


def test_padding_makes_them_dense(clips):
    (batch,) = clips.to_numpy("train", batch_size=5, pad=True)
    assert batch["clip"].shape == (5, 3, 4, 5, 3)
    np.testing.assert_array_equal(batch["clip"][0, :2], CLIPS[0])
    assert not batch["clip"][0, 2].any()
    (batch,) = clips.to_tf("train", batch_size=5, pad=True)
    np.testing.assert_array_equal(batch["clip"].numpy()[0, :2], CLIPS[0])


def test_buckets_are_by_the_number_of_images(clips):
    batches = list(clips.to_numpy("train", batch_size=2, bucket_by="clip", shuffle=True))
    assert sum(len(batch["id"]) for batch in batches) == 5


def test_bytes_stay_where_asked(clips):
    (batch,) = clips.to_numpy("train", batch_size=5, decode=False)
    assert [len(row) for row in batch["clip"].to_list()] == list(COUNTS)
    assert batch["clip"].to_list()[0][0] == png_of(CLIPS[0][0])
    (batch,) = clips.to_tf("train", batch_size=5, decode={"clip": False})
    assert batch["clip"].to_list()[0][0] == png_of(CLIPS[0][0])


def test_images_are_not_decoded_where_they_are_not_asked_for(damaged):
    (batch,) = damaged.to_numpy("train", batch_size=3, columns=["id"])
    assert batch["id"].tolist() == [0, 1, 2]
    (batch,) = damaged.to_tf("train", batch_size=3, columns=["id"])
    assert batch["id"].numpy().tolist() == [0, 1, 2]


def test_a_function_decodes_each_image(clips):
    def corner(data):
        return datum.images.decode(data, Feature("uint8", (None, None, 3), encoding="image"))[0, 0]

    (batch,) = clips.to_numpy("train[2:3]", batch_size=1, decode={"clip": corner})
    np.testing.assert_array_equal(batch["clip"][0], CLIPS[2][:, 0, 0])
    import tensorflow as tf

    (batch,) = clips.to_tf(
        "train[2:4]", batch_size=2, decode={"clip": lambda data: tf.io.decode_png(data)[0, 0]}
    )
    np.testing.assert_array_equal(batch["clip"][0].numpy(), CLIPS[2][:, 0, 0])


def test_lists_of_bytes_are_decoded_where_asked(tmp_path):
    rows = [{"clip": [png_of(one) for one in clip]} for clip in CLIPS if clip is not None]
    write(rows, tmp_path / "out")
    ds = datum.load(tmp_path / "out")
    assert ds.schema["clip"] == Feature("bytes", (None,))
    (batch,) = ds.to_numpy("train", batch_size=4, decode={"clip": True})
    np.testing.assert_array_equal(batch["clip"][0], CLIPS[0])
    (batch,) = ds.to_tf("train", batch_size=4, decode={"clip": True})
    np.testing.assert_array_equal(batch["clip"][0].numpy(), CLIPS[0])


def test_torch_gets_nested_tensors(clips):
    (batch,) = clips.to_torch("train", batch_size=5)
    for at, clip in enumerate(batch["clip"].unbind()):
        check(clip.numpy(), at)


def test_jax_gets_ragged(clips):
    (batch,) = clips.to_jax("train", batch_size=5)
    for at, clip in enumerate(batch["clip"]):
        check(clip, at)


@pytest.mark.parametrize("engine", ["native", "graph"])
def test_tensorflow_gets_ragged_tensors(clips, engine):
    (batch,) = clips.to_tf("train", batch_size=5, engine=engine)
    assert batch["clip"].shape.as_list() == [5, None, 4, 5, 3]
    for at, clip in enumerate(batch["clip"]):
        check(clip.numpy(), at)
    for at, record in enumerate(clips.to_tf("train", batch_size=None, engine=engine)):
        check(record["clip"].numpy(), at)


def test_lists_of_one_length_are_dense(tmp_path):
    rows = [{"clip": [png_of(pixels(k)) for k in range(3)]} for _ in range(4)]
    schema = {"clip": Feature("uint8", (3, None, None, 3), encoding="image")}
    write(rows, tmp_path / "out", schema=schema)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["clip"].shape == (3, 4, 5, 3)
    expected = np.stack([pixels(k) for k in range(3)])
    np.testing.assert_array_equal(ds["train"][0]["clip"], expected)
    for options in ({}, {"map": dict}, {"cache": True}):
        (batch,) = ds.to_numpy("train", batch_size=4, **options)
        np.testing.assert_array_equal(batch["clip"], np.stack([expected] * 4))
    for engine in ("native", "graph"):
        (batch,) = ds.to_tf("train", batch_size=4, engine=engine)
        np.testing.assert_array_equal(batch["clip"].numpy(), np.stack([expected] * 4))
    with pytest.raises(datum.SchemaError, match="expected 3 strings, got 1"):
        write([{"clip": [png_of(pixels(0))]}], tmp_path / "no", schema=schema)


def test_images_of_several_sizes_come_in_lists(tmp_path):
    clip = [pixels(0), pixels(1, (2, 3))]
    write(
        [{"clip": [png_of(one) for one in clip]}, {"clip": [png_of(clip[0])]}],
        tmp_path / "out",
        schema={"clip": FEATURE},
    )
    ds = datum.load(tmp_path / "out")
    found = ds["train"][0]["clip"]
    assert isinstance(found, list)
    np.testing.assert_array_equal(found[1], clip[1])
    for options in ({}, {"cache": True}, {"map": dict}):
        (batch,) = ds.to_numpy("train", batch_size=2, **options)
        assert isinstance(batch["clip"], list)
        np.testing.assert_array_equal(batch["clip"][0][1], clip[1])
        np.testing.assert_array_equal(batch["clip"][1][0], clip[0])


def test_records_may_lack_their_list(tmp_path):
    feature = Feature("uint8", (None, None, None, 3), encoding="image", optional=True)
    rows = [{"id": 0, "clip": [png_of(pixels(7))]}, {"id": 1}]
    write(rows, tmp_path / "out", schema={"clip": feature})
    ds = datum.load(tmp_path / "out")
    assert ds["train"][1]["clip"] is None
    (batch,) = ds.to_numpy("train", batch_size=2)
    assert batch["clip_present"].tolist() == [True, False]
    assert batch["clip"].row_lengths.tolist() == [1, 0]
    (batch,) = ds.to_tf("train", batch_size=2)
    assert batch["clip_present"].numpy().tolist() == [True, False]
    assert batch["clip"].row_lengths().numpy().tolist() == [1, 0]


def test_deep_images_keep_their_values(tmp_path):
    deep = np.arange(20, dtype=np.uint16).reshape(1, 4, 5, 1) * 3001
    feature = Feature("uint16", (None, None, None, 1), encoding="image")
    write([{"clip": list(deep)}], tmp_path / "out", schema={"clip": feature})
    ds = datum.load(tmp_path / "out")
    np.testing.assert_array_equal(ds["train"][0]["clip"], deep)
    (batch,) = ds.to_numpy("train", batch_size=1)
    np.testing.assert_array_equal(batch["clip"][0], deep)


def test_lists_of_files_and_of_pillow_images_are_found_to_be_such(tmp_path):
    for k in range(3):
        Image.fromarray(pixels(k)).save(tmp_path / f"{k}.png")
    paths = [{"clip": [tmp_path / f"{k}.png" for k in range(n)]} for n in (2, 3)]
    report = write(paths, tmp_path / "paths")
    assert report.records == 2
    ds = datum.load(tmp_path / "paths")
    assert ds.schema["clip"] == Feature("uint8", (None, 4, 5, 3), encoding="image")
    np.testing.assert_array_equal(ds["train"][0]["clip"], np.stack([pixels(0), pixels(1)]))
    opened = [{"clip": [Image.fromarray(pixels(k)) for k in range(n)]} for n in (2, 0, 3)]
    write(opened, tmp_path / "opened")
    ds = datum.load(tmp_path / "opened")
    assert ds.schema["clip"] == Feature("uint8", (None, 4, 5, 3), encoding="image")
    assert [len(row["clip"]) for row in ds["train"]] == [2, 0, 3]


def test_columns_of_lists_are_written(tmp_path):
    columns = {"id": np.arange(2), "clip": [[png_of(pixels(1))], [png_of(pixels(2))] * 2]}
    write(columns, tmp_path / "out", schema={"clip": FEATURE})
    ds = datum.load(tmp_path / "out")
    assert [len(row["clip"]) for row in ds["train"]] == [1, 2]


def test_what_is_no_image_names_record_and_feature(tmp_path):
    with pytest.raises(datum.SourceError, match="record 1.*got bytes that start with b'text'"):
        write(
            [{"clip": [png_of(pixels(0))]}, {"clip": [png_of(pixels(0)), b"text"]}],
            tmp_path / "out",
            schema={"clip": FEATURE},
        )


@pytest.fixture
def damaged(tmp_path):
    """Three records, of which the second has an image that cannot be decoded."""
    whole = png_of(pixels(0))
    lists = [whole, whole], [whole, whole[:-30]], [whole]
    rows = [{"id": i, "clip": clip} for i, clip in enumerate(lists)]
    out = tmp_path / "damaged"
    write(rows, out)  # as bytes, which nobody looks into
    manifest = datum.format.Manifest.load(out)
    replace(manifest, schema=Schema({**manifest.schema, "clip": FEATURE})).save(out)
    return datum.load(out)


def test_damage_is_told_or_left_out(damaged):
    with pytest.raises(datum.SourceError, match="record 1.*feature 'clip'"):
        list(damaged["train"])
    with pytest.raises(datum.SourceError, match="record 1.*feature 'clip'"):
        list(damaged.to_numpy("train", batch_size=3))
    for options in ({}, {"cache": True, "epochs": 2}):
        loader = damaged.to_numpy("train", batch_size=3, on_error="skip", **options)
        for batch in loader:
            assert batch["clip"].row_lengths.tolist() == [2, 1]


def test_verify_and_repair_look_at_each_image(damaged, tmp_path):
    report = damaged.verify(deep=True)
    assert not report.is_sound
    assert "feature 'clip'" in str(report)
    fixed = datum.repair(damaged.path, tmp_path / "fixed", deep=True, progress=False)
    assert fixed.records == 2
    assert datum.load(tmp_path / "fixed").verify(deep=True).is_sound


def test_datasets_are_laid_out_anew_and_added_to(clips, tmp_path):
    datum.reshard(clips, tmp_path / "b", shards=2, drop=["id"], progress=False)
    for at, record in enumerate(datum.load(tmp_path / "b")["train"]):
        check(record["clip"], at)
    chosen = datum.reshard(
        clips, tmp_path / "c", where=lambda record: len(record["clip"]) == 2, progress=False
    )
    assert chosen.records == 2
    write([{"id": 9, "clip": [png_of(pixels(1, (6, 6)))]}], clips.path, append=True)
    ds = datum.load(clips.path)
    assert ds.schema["clip"].shape == (None, None, None, 3)
    assert ds["train"][5]["clip"].shape == (1, 6, 6, 3)


def test_images_are_shrunk(clips, tmp_path):
    write(clips, tmp_path / "small", max_side=2)
    assert datum.load(tmp_path / "small")["train"][2]["clip"].shape == (3, 2, 2, 3)


def test_tables_have_lists_of_bytes(clips, tmp_path):
    datum.export_to(clips, tmp_path / "parquet", format="parquet")
    (file,) = (tmp_path / "parquet").rglob("*.parquet")
    table = pq.read_table(file)
    assert table["clip"].to_pylist()[2] == [png_of(one) for one in CLIPS[2]]
    write(file, tmp_path / "back", schema={"clip": FEATURE})
    check(datum.load(tmp_path / "back")["train"][2]["clip"], 2)
    datum.export_to(clips, tmp_path / "lines", format="jsonl")


def test_it_is_shown_in_a_notebook_and_planned_and_profiled(clips, tmp_path):
    assert "clip" in clips["train"]._repr_html_()
    assert "clip" in str(datum.profile(clips))
    Image.fromarray(pixels(1)).save(tmp_path / "a.png")
    plan = datum.plan([{"clip": [tmp_path / "a.png"]}] * 2)
    assert plan.schema["clip"].holds_images


@pytest.mark.parametrize(
    "words",
    [
        ("info",),
        ("head",),
        ("head", "--json"),
        ("stats",),
        ("info", "--spec", "tf"),
        ("info", "--spec", "dali"),
        ("info", "--spec", "tfrecord"),
    ],
)
def test_commands_show_it(clips, words):
    command = [sys.executable, "-m", "datum", words[0], str(clips.path), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "clip" in done.stdout


def test_code_for_tensorflow_reads_the_bytes(clips):
    code = datum.specs.tensorflow(clips.schema, files=str(clips.path / "*.tfrecord"), batch_size=5)
    scope = {}
    exec(code, scope)
    (batch,) = scope["dataset"]
    assert batch["clip"].to_list()[0][0] == png_of(CLIPS[0][0])


def test_tfds_reads_them_as_sequences_of_images(clips):
    import tensorflow_datasets as tfds

    assert datum.write_sidecars(clips.path, ["tfds"]) == ()
    builder = tfds.builder_from_directory(clips.path)
    assert isinstance(builder.info.features["clip"].feature, tfds.features.Image)
    for at, record in enumerate(tfds.as_numpy(builder.as_dataset(split="train"))):
        check(record["clip"], at)


def test_a_feature_of_images_says_what_it_is():
    assert FEATURE.holds_images
    assert FEATURE.single_image == Feature("uint8", (None, None, 3), encoding="image")
    with pytest.raises(datum.SchemaError, match="a list of images one dimension more"):
        Feature("uint8", (None, None, None, None, 3), encoding="image")


@pytest.fixture(scope="module")
def episodes(shared_data):
    """The folder of a robot's episodes, and its records as TFDS reads them."""
    from tests.unit.read.foreign.tfds_written import read_tfds

    folder = shared_data / "rlds_bridge/1.0.0"
    return folder, read_tfds(folder, "train")


def check_episode(found, theirs):
    for name, value in theirs.items():
        mine = found[name]
        if "/image_" in name:
            assert (mine.shape, mine.dtype) == (value.shape, value.dtype)
            # TFDS has TensorFlow decode JPEG in its fast way, which is not exact.
            assert np.abs(mine.astype(int) - value).mean() < 4
        elif isinstance(mine, (str, list)):
            texts = [mine] if isinstance(mine, str) else mine
            assert [text.encode() for text in texts] == np.asarray(value, object).ravel().tolist()
        else:
            np.testing.assert_array_equal(mine, value, err_msg=name)


def test_episodes_of_rlds_are_those_that_tfds_reads(episodes):
    folder, theirs = episodes
    ds = datum.load(folder)
    assert len(ds["train"]) == len(theirs)
    for mine, expected in zip(ds["train"], theirs, strict=True):
        assert mine.keys() == expected.keys()
        check_episode(mine, expected)
    assert ds["train"][0]["steps/observation/image_0"].shape == (10, 64, 64, 3)


def test_images_of_episodes_are_exact(episodes):
    import tensorflow as tf

    ds = datum.load(episodes[0])
    name = "steps/observation/image_0"
    (files,) = ds.to_numpy("train[:1]", batch_size=1, columns=[name], decode=False)
    exact = [
        tf.io.decode_jpeg(file, dct_method="INTEGER_ACCURATE").numpy()
        for file in files[name].to_list()[0]
    ]
    np.testing.assert_array_equal(ds["train"][0][name], exact)


def test_batches_of_episodes_have_the_same_images_in_every_framework(episodes):
    ds = datum.load(episodes[0])
    names = ["steps/observation/image_0", "steps/action"]
    expected = [record["steps/observation/image_0"] for record in ds["train[:4]"]]
    options = {"batch_size": 4, "columns": names}
    (batch,) = ds.to_numpy("train[:4]", **options)
    assert isinstance(batch[names[0]], Ragged)
    (tensors,) = ds.to_torch("train[:4]", **options)
    (arrays,) = ds.to_jax("train[:4]", **options)
    found = [list(batch[names[0]]), tensors[names[0]].unbind(), list(arrays[names[0]])]
    for images in found:
        for one, wanted in zip(images, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), wanted)
    for engine in ("native", "graph"):
        (ragged,) = ds.to_tf("train[:4]", engine=engine, **options)
        for one, wanted in zip(ragged[names[0]], expected, strict=True):
            assert one.shape == wanted.shape
            assert np.abs(one.numpy().astype(int) - wanted).mean() < 4


def test_episodes_become_a_dataset_of_datum_that_tfds_reads(episodes, tmp_path):
    import tensorflow_datasets as tfds

    folder, theirs = episodes
    report = datum.reshard(folder, tmp_path / "out", sidecars=["tfds"], progress=False)
    assert report.notes == ()
    builder = tfds.builder_from_directory(tmp_path / "out")
    for record, expected in zip(
        tfds.as_numpy(builder.as_dataset(split="train[:2]")), theirs, strict=False
    ):
        for name, value in expected.items():
            np.testing.assert_array_equal(record[name], value, err_msg=name)
