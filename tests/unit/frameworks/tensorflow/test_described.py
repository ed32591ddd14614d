import tensorflow as tf

from datum.frameworks.tensorflow.dataset import DatumDataset, Pipeline
from datum.frameworks.tensorflow.engine import EngineChoice


def test_a_dataset_tells_its_engine_and_is_like_any_other():
    options = tf.data.Options()
    options.deterministic = False
    made = tf.data.Dataset.range(5).with_options(options)
    told = DatumDataset(Pipeline(lambda _: made, EngineChoice("native", "as asked for")))
    assert repr(told) == str(told)
    assert repr(told) == (
        "<datum to_tf engine=native: as asked for; _OptionsDataset"
        f" element_spec={made.element_spec}>"
    )
    assert isinstance(told, tf.data.Dataset)
    assert told.element_spec == made.element_spec
    assert told.options().deterministic is False
    assert int(told.cardinality()) == len(told) == 5
    assert [int(n) for n in told.batch(2).unbatch()] == list(range(5))
