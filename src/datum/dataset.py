"""A dataset on disk: its splits, its loaders, and how it is opened and verified."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from datum._frameworks.tensorflow.options import TfKeywords, TfOptions
from datum._load.loader import Loader
from datum._load.options import LoadKeywords, LoadOptions
from datum._load.stream import order_split
from datum._options import check_choice, lists_options
from datum._read.contents import Contents, summarize
from datum._read.copy import stored_part
from datum._read.foreign.detect import open_dataset, save_manifest
from datum._read.local import repair_hint
from datum._read.notebook import dataset_html
from datum._read.shards import Shards, versions_of
from datum._read.split import Split, find_ranges, runs_of
from datum._read.verify import VerifyReport, verify_path, verify_shards
from datum.configs import DatasetConfigs, Role, options_for
from datum.errors import Damage, Message, count_of
from datum.format import Compression, SplitInfo
from datum.schema import Feature, Schema
from datum.sources.protocol import Part

if TYPE_CHECKING:
    from datum._frameworks.jax import JaxLoader
    from datum._frameworks.tensorflow.dataset import DatumDataset
    from datum._frameworks.torch import TorchLoader

__all__ = ["Dataset", "load", "verify"]

SHOWN_DAMAGES = 5


class Dataset:
    """A dataset: its splits, its schema, and loaders of batches for training.

    `ds["train"]` is a split; so are `ds["train[:10%]"]`, `ds["train[-100:]"]`, `ds["train+val"]`
    and `ds["all"]`. An iteration returns the names of the splits. `to_numpy`, `to_torch`, `to_jax`
    and `to_tf` return loaders of batches. The paper's `train_fn`, `val_fn` and `test_fn` return
    datasets of TensorFlow with the settings of `dataset_configs`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Contents,
        dataset_configs: DatasetConfigs | None = None,
    ) -> None:
        """Open the dataset at `path`, as `datum.load` does.

        Args:
            path: The folder of the dataset, or any other path that `datum.load` accepts.
            dataset_configs: Settings of `train_fn`, `val_fn` and `test_fn`.
        """
        contents = path if isinstance(path, Contents) else open_dataset(path)
        self._contents = contents
        self._shards = Shards(
            contents.folder,
            contents.writer,
            contents.left_out,
            versions_of(contents),
            contents.remote,
        )
        self._configs: DatasetConfigs | None = None
        if dataset_configs is not None:
            self.dataset_configs = dataset_configs

    @property
    def path(self) -> Path:
        """The folder of the dataset; of one in an object store, that of its local copies."""
        return self._contents.folder

    @property
    def url(self) -> str | None:
        """The URL of a dataset in an object store, without secrets; None of a local one."""
        return None if self._contents.remote is None else self._contents.remote.url

    @property
    def schema(self) -> Schema:
        """The schema of the records."""
        return self._contents.schema

    @property
    def splits(self) -> Mapping[str, SplitInfo]:
        """The splits by name, with their records, bytes and shards."""
        return self._contents.splits

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """Metadata of features by name: class names, vocabularies."""
        return self._contents.metadata

    @property
    def encoders(self) -> Mapping[str, Any]:
        """The fitted scikit-learn encoders that features were written with, by feature.

        An encoder is restored from the metadata when it is used: to encode the input of a model, or
        to decode its output.

        >>> import datum
        >>> from sklearn.preprocessing import LabelEncoder
        >>> rows = [{"kind": "cat"}, {"kind": "dog"}]
        >>> report = datum.write(rows, "kinds", encoders={"kind": LabelEncoder()}, progress=False)
        >>> datum.load("kinds").encoders["kind"].inverse_transform([1]).tolist()
        ['dog']
        """
        from datum._write.encoders import Encoders

        return Encoders(self.metadata)

    @property
    def statistics(self) -> Mapping[str, Mapping[str, Any]]:
        """Statistics of each split by name."""
        return self._contents.statistics

    @property
    def compression(self) -> Compression | None:
        """Compression of the shards."""
        return self._contents.compression

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Damage that `datum.load(..., on_error="skip")` skipped in files without a description."""
        return self._contents.damage

    def __getitem__(self, split: str) -> Split:
        ranges = find_ranges(split, {name: info.records for name, info in self.splits.items()})
        runs = runs_of(ranges, self.splits)
        return Split(split, self.schema, self._shards, runs, self.metadata)

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __contains__(self, name: object) -> bool:
        return name in self.splits

    if not TYPE_CHECKING:  # type checkers find a misspelt name themselves

        def __getattr__(self, name: str) -> Any:  # called only for unknown names
            is_of_split = not name.startswith("_") and hasattr(Split, name)
            hint = f"ds['train'].{name}() works on a split" if is_of_split else ""
            raise AttributeError(Message(f"'Dataset' object has no attribute {name!r}", hint=hint))

    def parts(self) -> dict[str, Part]:
        """The stored records of each split for `datum.write`, which copies them."""
        return {name: self._part(name) for name in self}

    def _part(self, name: str) -> Part:
        split, counted = self[name], self.statistics.get(name)
        is_known = counted is not None and counted.get("records") == len(split)
        part: Any = stored_part(
            split.shards, split.runs, self.schema, self.metadata, counted if is_known else None
        )
        return part  # type: ignore[no-any-return]

    def verify(
        self,
        *,
        deep: bool = False,
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Read every shard, and compare it with its description, its CRCs and the schema.

        Problems are listed in the report, not raised.

        Args:
            deep: Whether to decode every image, and to compare the statistics of the manifest with
                the values.
            threads: Number of threads; None is one for each core.
            progress: Called with the number of bytes read and the total, from any thread, one call
                at a time.

        >>> import datum
        >>> report = datum.write({"x": [5, 6, 7]}, "checked", progress=False)
        >>> found = datum.load("checked").verify()
        >>> found.is_sound, found.records
        (True, 3)
        """
        return verify_shards(self._contents, deep=deep, threads=threads, progress=progress)

    def save_manifest(self) -> Path:
        """Write `datum.json` beside records of another writer, so that they open at once.

        Nothing else is changed. Raises WriteError if there is a manifest already, or if one
        manifest cannot describe the files: they are in several folders, or differ in compression.
        """
        return save_manifest(self._contents)

    # NumPy, PyTorch, JAX.

    @lists_options(LoadOptions, keywords=LoadKeywords)
    def to_numpy(self, split: str = "train", **options: Unpack[LoadKeywords]) -> Loader:
        """Batches as dicts of NumPy arrays, made ahead by threads of the native core.

        Texts are object arrays of `str`. Images are decoded pixels: one array if their shapes
        agree, otherwise a list. Features of variable length are a `Ragged`, sparse ones a `Sparse`.
        Missing floats are NaN; other features that records may lack have a column
        `<name>_present`.

        The order depends on the records, `shuffle`, `seed` and the epoch alone: it is the same for
        any number of hosts, workers and threads, and in every framework. `loader.state_dict()`
        returns the position, and `loader.load_state_dict(state)` resumes there.

        Args:
            split: "train", "train[:10%]", "train[10:-5]", "train+val" or "all".
            options: See `datum._load.LoadOptions`.

        >>> import datum
        >>> report = datum.write({"x": [5, 6, 7]}, "few", shuffle=False, progress=False)
        >>> [batch["x"] for batch in datum.load("few").to_numpy("train", batch_size=2)]
        [array([5, 6]), array([7])]
        """
        chosen = LoadOptions.of(options, caller="to_numpy")
        return Loader(order_split(self[split], chosen), chosen)

    @lists_options(LoadOptions, keywords=LoadKeywords)
    def to_torch(
        self,
        split: str = "train",
        *,
        pin_memory: bool | None = None,
        **options: Unpack[LoadKeywords],
    ) -> TorchLoader:
        """Batches as dicts of PyTorch tensors: an IterableDataset, also for a DataLoader.

        Iterate over it directly, since its threads make batches ahead, or pass it to
        `DataLoader(loader, batch_size=None, num_workers=n)`, which returns the same batches in the
        same order. With `torch.distributed`, each rank reads its part of every batch. Order and
        state are those of `to_numpy`; texts are lists.

        Args:
            split: "train", "train[:10%]", "train[10:-5]", "train+val" or "all".
            pin_memory: Whether tensors are in memory that a GPU copies from by itself. None means
                if CUDA is available. With workers, `pin_memory` of the DataLoader counts.
            options: See `datum._load.LoadOptions`.
        """
        from datum._frameworks.torch import make_loader  # imports PyTorch

        chosen = LoadOptions.of(options, caller="to_torch")
        return make_loader(order_split(self[split], chosen), chosen, pin_memory=pin_memory)

    @lists_options(LoadOptions, keywords=LoadKeywords)
    def to_jax(
        self, split: str = "train", *, sharding: Any = None, **options: Unpack[LoadKeywords]
    ) -> JaxLoader:
        """Batches as dicts of `jax.Array`, placed on the devices of `sharding`.

        `jax.process_index()` and `jax.process_count()` select the part of each batch that this
        host reads. Order and state are those of `to_numpy`; texts stay NumPy arrays.

        Args:
            split: "train", "train[:10%]", "train[10:-5]", "train+val" or "all".
            sharding: A `jax.sharding.Sharding` or a device for all arrays that have a row for each
                record, or a dict of them by the names of columns.
            options: See `datum._load.LoadOptions`.
        """
        from datum._frameworks.jax import make_loader  # imports JAX

        chosen = LoadOptions.of(options, caller="to_jax")
        return make_loader(order_split(self[split], chosen), chosen, sharding=sharding)

    # TensorFlow.

    @lists_options(TfOptions, keywords=TfKeywords)
    def to_tf(self, split: str = "train", **options: Unpack[TfKeywords]) -> DatumDataset:
        """A `tf.data.Dataset` of batches: dicts of tensors.

        Numbers have the dtype of the schema, texts are tf.string, times the count of their unit,
        images decoded pixels. Features of variable length are a tf.RaggedTensor, sparse ones a
        tf.SparseTensor. Missing floats are NaN; other features that records may lack have a column
        `<name>_present`.

        The order and the state are those of `to_numpy`.

        Args:
            split: "train", "train[:10%]", "train[10:-5]", "train+val" or "all".
            options: See `datum._frameworks.tensorflow.options.TfOptions`.

        >>> import datum
        >>> report = datum.write({"x": [5, 6, 7]}, "three", shuffle=False, progress=False)
        >>> batches = datum.load("three").to_tf("train", batch_size=2)
        >>> [batch["x"].numpy().tolist() for batch in batches]
        [[5, 6], [7]]
        """
        from datum._frameworks.tensorflow.engine import make_dataset  # imports TensorFlow

        if self._shards.left_out:
            options["on_error"] = "skip"
        chosen = TfOptions.of(options, caller="to_tf")
        return make_dataset(self[split], chosen, metadata=self.metadata)

    # The paper's names.

    @property
    def dataset_configs(self) -> DatasetConfigs:
        """Settings of `train_fn`, `val_fn` and `test_fn`, which can be changed or replaced."""
        if self._configs is None:
            self._configs = DatasetConfigs()
        return self._configs

    @dataset_configs.setter
    def dataset_configs(self, configs: DatasetConfigs) -> None:
        if not isinstance(configs, DatasetConfigs):
            raise TypeError(Message(f"dataset_configs: expected a DatasetConfigs, got {configs!r}"))
        self._configs = configs

    @property
    def padded_shapes(self) -> dict[str, list[None]]:
        """The shape of each feature with None for every length, for `padded_batch`."""
        return {name: [None] * len(feature.shape) for name, feature in self.schema.items()}

    def train_fn(
        self, instruction: str = "train", repeat: int | None = None, shuffle: bool = True
    ) -> Any:
        """A `tf.data.Dataset` for training, with the settings of `dataset_configs`.

        Args:
            instruction: The split, such as "train" or "train[:10%]".
            repeat: Number of epochs: None, False and 0 are one, and -1 is no end.
            shuffle: Whether to shuffle, or the number of records of the window.
        """
        return self._make("train", instruction, repeat, shuffle)

    def val_fn(
        self, instruction: str = "val", repeat: int | None = None, shuffle: bool = False
    ) -> Any:
        """A `tf.data.Dataset` for validation; see `train_fn`."""
        return self._make("val", instruction, repeat, shuffle)

    def test_fn(
        self, instruction: str = "test", repeat: int | None = 1, shuffle: bool = False
    ) -> Any:
        """A `tf.data.Dataset` for testing; see `train_fn`."""
        return self._make("test", instruction, repeat, shuffle)

    def _make(self, role: Role, instruction: str, repeat: int | None, shuffle: bool) -> Any:
        records = len(self[instruction])
        options = options_for(
            self.dataset_configs,
            role,
            split=instruction,
            records=records,
            repeat=repeat,
            shuffle=shuffle,
        )
        made = self.to_tf(instruction, **options)
        return made.get_single_element() if self.dataset_configs.full_dataset else made

    def __repr__(self) -> str:
        return summarize(self._contents)

    def _repr_html_(self) -> str:  # called by notebooks
        return dataset_html(self._contents)


def load(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset_configs: DatasetConfigs | None = None,
    *,
    schema: Schema | Mapping[str, Feature] | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    follow_links: bool = False,
    storage: Mapping[str, Any] | None = None,
    cache_bytes: int | None = None,
) -> Dataset:
    """Open a dataset: of Datum, of its older library, of TFDS, or plain TFRecord files.

    Described datasets open without reading their records. Files without a description are read
    once, to infer their features, unless there is a `schema`; `Dataset.save_manifest` saves the
    result. A pattern or a list may name some shards of a dataset of Datum, which its manifest then
    describes.

    Raises ManifestError if there is no dataset or its description is invalid, and
    CorruptRecordError if a shard has another size than described. Warns if the manifest of shards
    named by a pattern is damaged.

    Args:
        path: A folder, a manifest, a TFRecord file, a pattern such as "logs/*.tfrecord", a list
            of files, or the URL of a folder in an object store, such as "s3://bucket/photos".
        dataset_configs: Settings of `train_fn`, `val_fn` and `test_fn`.
        schema: Features of the records of files without a description.
        on_error: What to do about damage in files without a description. "raise" raises an error.
            "skip" leaves out damaged records, torn ends, records that are no Examples and missing
            shards, with a warning, and lists them in `Dataset.damage`. Described datasets are
            checked by their loaders, which have their own `on_error`.
        follow_links: Whether shards that a manifest names may be links out of its folder. By
            default such a shard raises ManifestError, because the dataset may come from a
            stranger. Files without a manifest of Datum are always read through links.
        storage: Options of the object store of a URL, by the names of obstore: `region`,
            `endpoint`, `access_key_id`... By default the environment variables of the cloud.
        cache_bytes: Largest size of the local copies of what is read from object stores, which all
            programs of a user share. By default half of the free disk.

    >>> import datum
    >>> report = datum.write(
    ...     [{"x": 5}, {"x": 6}, {"x": 7}], "numbers", shuffle=False, progress=False
    ... )
    >>> train = datum.load("numbers")["train"]
    >>> len(train), int(train[-1]["x"]), train.read([2, 0])["x"].tolist()
    (3, 7, [7, 5])
    """
    check_choice("on_error", on_error, ("raise", "skip"))
    contents = open_dataset(
        path,
        schema=schema,
        skips_damage=on_error == "skip",
        follow_links=follow_links,
        storage=storage,
        cache_bytes=cache_bytes,
    )
    for note in contents.notes:
        warnings.warn(Message(note), UserWarning, stacklevel=2)
    dataset = Dataset(contents, dataset_configs)
    if dataset.damage:
        warnings.warn(_describe_damage(dataset), UserWarning, stacklevel=2)
    return dataset


def verify(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    deep: bool = False,
    threads: int | None = None,
    follow_links: bool = False,
    progress: Callable[[int, int], object] | None = None,
    storage: Mapping[str, Any] | None = None,
) -> VerifyReport:
    """Check every record at a path, even if `load` fails.

    If the manifest is damaged, its files are checked as plain ones. If records are no Examples,
    their CRCs and number are checked. Raises the errors of `load` for a path without a dataset or
    TFRecord file.

    Args:
        path: As in `load`.
        deep: As in `Dataset.verify`.
        threads: As in `Dataset.verify`.
        follow_links: As in `load`.
        progress: As in `Dataset.verify`.
        storage: As in `load`.

    >>> import datum
    >>> report = datum.write({"x": [5, 6, 7]}, "garbled", progress=False)
    >>> with open("garbled/datum.json", "a") as file:
    ...     print("!", file=file)
    >>> found = verify("garbled")
    >>> found.records, [problem.kind for problem in found.problems]
    (3, ['manifest'])
    """
    return verify_path(
        path,
        deep=deep,
        threads=threads,
        follow_links=follow_links,
        progress=progress,
        storage=storage,
    )


def _describe_damage(dataset: Dataset) -> Message:
    count = len(dataset.damage)
    lines = [f"  {damage}" for damage in dataset.damage[:SHOWN_DAMAGES]]
    if count > SHOWN_DAMAGES:
        lines.append(f"  and {count_of(count - SHOWN_DAMAGES, 'place')} more")
    return Message(
        f"damage in {count_of(count, 'place')}, left out",
        where=dataset.path,
        details=lines,
        hint=repair_hint(dataset.path),
    )
