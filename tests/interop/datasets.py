# SPDX-License-Identifier: Apache-2.0
"""Tests tf.data pipelines, element by element: sources, transformations, iterators of every
kind."""

import gzip
import os

import numpy as np
import tensorflow as tf
from harness import program, v1

AUTOTUNE = tf.data.AUTOTUNE
Dataset = tf.data.Dataset


def _dense(value):
    """Converts a value to comparable ones: strings, arrays, and the components of sparse
    tensors."""
    if isinstance(value, v1.SparseTensorValue):
        return tuple(value)
    return value


def _elements(cluster, dataset, limit=200):
    """Returns up to `limit` elements, flattened, and a word of the error that ends the dataset."""
    with tf.device("/job:worker/task:0"):
        flat = tf.nest.flatten(v1.data.make_one_shot_iterator(dataset).get_next())
    elements = []
    with cluster.session() as session:
        while len(elements) < limit:
            try:
                elements.append([_dense(part) for part in session.run(flat)])
            except tf.errors.OpError as error:
                return elements, type(error).__name__
    return elements, "more"


def _all(cluster, **datasets):
    return {name: _elements(cluster, make()) for name, make in datasets.items()}


def _message(error):
    return error.message.split("\n")[0].split("[[")[0].strip()


@program("resource", "v2")
def sources(cluster):
    text = os.path.join(cluster.folder, "text")
    with open(text, "w") as f:
        f.write("one\ntwo\r\n\nlast without an end")
    zipped = os.path.join(cluster.folder, "text.gz")
    with gzip.open(zipped, "wb") as f:
        f.write(b"packed\nlines\n")
    records = [os.path.join(cluster.folder, "records%d" % i) for i in range(3)]
    for i, name in enumerate(records):
        with tf.io.TFRecordWriter(name, "GZIP" if i == 2 else "") as writer:
            for k in range(4):
                writer.write(b"%d-%d" % (i, k))
    fixed = os.path.join(cluster.folder, "fixed")
    with open(fixed, "wb") as f:
        f.write(b"HEAD" + b"abcdefghi" + b"TAIL!")
    return _all(
        cluster,
        tensors=lambda: Dataset.from_tensors((np.arange(6).reshape(2, 3), "x")),
        slices=lambda: Dataset.from_tensor_slices({"a": [1., 2., 3.], "b": ["x", "y", "z"]}),
        range=lambda: Dataset.range(10, -5, -3),
        typed_range=lambda: Dataset.range(3, output_type=tf.float32),
        empty=lambda: Dataset.range(0),
        text=lambda: tf.data.TextLineDataset([text, text]),
        gzip=lambda: tf.data.TextLineDataset(zipped, compression_type="GZIP", buffer_size=10),
        records=lambda: tf.data.TFRecordDataset(records[:2], buffer_size=100),
        gzip_records=lambda: tf.data.TFRecordDataset(records[2], "GZIP"),
        parallel_records=lambda: tf.data.TFRecordDataset(records[:2], num_parallel_reads=2),
        fixed=lambda: tf.data.FixedLengthRecordDataset(fixed, 3, 4, 5),
        wrong_fixed=lambda: tf.data.FixedLengthRecordDataset(fixed, 4, 4, 5),
        missing=lambda: tf.data.TextLineDataset([text, "/no/such/file"]),
        random=lambda: Dataset.random(seed=5).take(5),
    )


@program("resource", "v2")
def transformations(cluster):
    numbers = Dataset.range
    return _all(
        cluster,
        map=lambda: numbers(5).map(lambda x: (x * x, tf.strings.as_string(x))),
        identity=lambda: numbers(3).map(lambda x: x),
        parallel_map=lambda: numbers(50).map(lambda x: x + 1, num_parallel_calls=4),
        autotuned_map=lambda: numbers(50).map(lambda x: x * 2, AUTOTUNE, deterministic=True),
        flat_map=lambda: numbers(4).flat_map(lambda x: Dataset.range(x).map(lambda y: x * 10 + y)),
        interleave=lambda: numbers(1, 8).interleave(
            lambda x: Dataset.from_tensors(x).repeat(x), cycle_length=3, block_length=2),
        parallel_interleave=lambda: numbers(1, 8).interleave(
            lambda x: Dataset.from_tensors(x).repeat(x), cycle_length=3, block_length=2,
            num_parallel_calls=2),
        filter=lambda: numbers(20).filter(lambda x: x % 3 == 0),
        take_while=lambda: numbers(20).apply(
            tf.data.experimental.take_while(lambda x: x < 6)),
        batch=lambda: numbers(10).batch(4),
        batch_dropped=lambda: numbers(10).batch(4, drop_remainder=True),
        parallel_batch=lambda: numbers(10).batch(4, num_parallel_calls=2),
        strings=lambda: Dataset.from_tensor_slices(["a", "bb", "ccc"]).batch(2),
        padded=lambda: numbers(1, 6).map(lambda x: tf.fill([x], x)).padded_batch(2, [None]),
        padded_matrix=lambda: numbers(1, 6).map(
            lambda x: (tf.fill([x, 2], x), x)).padded_batch(3, ([5, None], []),
                                                            (np.int64(-1), np.int64(7))),
        repeat=lambda: numbers(3).repeat(2),
        for_ever=lambda: numbers(3).repeat().take(8),
        nothing_for_ever=lambda: numbers(0).repeat(),
        skip=lambda: numbers(10).skip(7),
        zip=lambda: Dataset.zip((numbers(3), numbers(10, 20))),
        concatenate=lambda: numbers(3).concatenate(numbers(7, 9)),
        cache=lambda: numbers(4).cache().repeat(2),
        prefetch=lambda: numbers(30).prefetch(3),
        autotuned_prefetch=lambda: numbers(30).batch(4).prefetch(AUTOTUNE),
        shard=lambda: numbers(11).shard(3, 1),
        enumerate=lambda: Dataset.from_tensor_slices(["a", "b"]).enumerate(5),
        unbatch=lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch(),
        scan=lambda: numbers(6).apply(
            tf.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s * 10 + x))),
        window=lambda: numbers(10).window(4, 3).flat_map(lambda w: w.batch(4)),
        dropped_windows=lambda: numbers(10).window(3, 1, 2, True).flat_map(lambda w: w.batch(3)),
        far_windows=lambda: numbers(10).window(2, 4).flat_map(lambda w: w.batch(4)),
        groups=lambda: numbers(11).apply(tf.data.experimental.group_by_window(
            lambda x: x % 3, lambda key, w: w.batch(10).map(lambda b: (key, b)), 2)),
        buckets=lambda: numbers(1, 9).map(lambda x: tf.range(x)).apply(
            tf.data.experimental.bucket_by_sequence_length(
                lambda x: tf.shape(x)[0], [3, 5], [2, 2, 2])),
        unique=lambda: Dataset.from_tensor_slices([3, 1, 3, 2, 1]).apply(
            tf.data.experimental.unique()),
        ignored=lambda: Dataset.from_tensor_slices([1., 0., 2.]).map(
            lambda x: tf.debugging.check_numerics(1. / x, "bad")).apply(
                tf.data.experimental.ignore_errors()),
        counted=lambda: numbers(3).apply(tf.data.experimental.assert_cardinality(4)),
        map_and_batch=lambda: numbers(10).apply(
            tf.data.experimental.map_and_batch(lambda x: x * 2, 4)),
    )


@program("resource", "v2")
def caches_in_files(cluster):
    def cached(name, dataset):
        return lambda: dataset.cache(os.path.join(cluster.folder, name))

    texts = Dataset.from_tensor_slices((["a", "", "ccc"], [[1., 2.], [3., 4.], [5., 6.]]))
    written = _all(
        cluster,
        numbers=cached("numbers", Dataset.range(5)),
        texts=cached("texts", texts),
        empty=cached("empty", Dataset.range(0)),
        repeated=lambda: cached("repeated", Dataset.range(3))().repeat(3).batch(4))
    # Iterations that end early leave no cache behind, so the next iteration writes the full one.
    early = _all(cluster, early=lambda: cached("early", Dataset.range(9))().take(4))
    again = _all(
        cluster,
        numbers=cached("numbers", Dataset.range(70)),
        texts=cached("texts", texts.take(1)),
        empty=cached("empty", Dataset.range(7)),
        early=cached("early", Dataset.range(3)))
    return written, early, again


@program("resource", "v2")
def shuffled_as_the_seeds_say(cluster):
    def options(dataset):
        return dataset.map(lambda x: x + 1)

    tf.random.set_seed(9)
    return _all(
        cluster,
        small=lambda: Dataset.range(20).shuffle(5, seed=3),
        whole=lambda: Dataset.range(20).shuffle(100, seed=3),
        again=lambda: Dataset.range(10).shuffle(4, seed=1).repeat(3),
        the_same_again=lambda: Dataset.range(10).shuffle(
            4, seed=1, reshuffle_each_iteration=False).repeat(3),
        repeated=lambda: Dataset.range(5).apply(
            tf.data.experimental.shuffle_and_repeat(7, count=3, seed=8)),
        without_a_seed_of_its_own=lambda: Dataset.range(15).shuffle(15),
        mapped=lambda: options(Dataset.range(15).shuffle(15, seed=4).batch(4)),
        chosen=lambda: tf.data.experimental.choose_from_datasets(
            [Dataset.from_tensors("a").repeat(3), Dataset.from_tensors("b").repeat(3)],
            Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 0], np.int64))),
    )


@program("resource", "v2")
def initializable_iterators(cluster):
    with tf.device("/job:worker/task:0"):
        limit = v1.placeholder(tf.int64, [])
        iterator = v1.data.make_initializable_iterator(Dataset.range(limit).batch(2))
        element = iterator.get_next()
    results = []
    with cluster.session() as session:
        for feed in (None, 3, 4):
            try:
                if feed is not None:
                    session.run(iterator.initializer, {limit: feed})
                while True:
                    results.append(session.run(element))
            except tf.errors.OpError as error:
                results.append(type(error).__name__ + _message(error)[:40])
    return results


@program("resource", "v2")
def reinitializable_and_feedable_iterators(cluster):
    with tf.device("/job:worker/task:0"):
        training = Dataset.range(5).map(lambda x: x * 10)
        testing = Dataset.range(3)
        iterator = v1.data.Iterator.from_structure(v1.data.get_output_types(training),
                                                   v1.data.get_output_shapes(training))
        element = iterator.get_next()
        starts = [iterator.make_initializer(d) for d in (training, testing)]
        handle = v1.placeholder(tf.string, [])
        either = v1.data.Iterator.from_string_handle(
            handle, v1.data.get_output_types(training),
            v1.data.get_output_shapes(training)).get_next()
        one = v1.data.make_one_shot_iterator(training.repeat())
        other = v1.data.make_initializable_iterator(testing)
        wrong = v1.data.Iterator.from_string_handle(handle, tf.float32, []).get_next()
        handles = [one.string_handle(), other.string_handle()]
    results = []
    with cluster.session() as session:
        for start in starts + starts:
            session.run(start)
            results += [session.run(element) for _ in range(2)]
        session.run(other.initializer)
        first, second = session.run(handles)
        for fed in (first, second, first, second, second, first, second):
            try:
                results.append(session.run(either, {handle: fed}))
            except tf.errors.OutOfRangeError as error:
                results.append(_message(error))
        try:
            session.run(wrong, {handle: first})
        except tf.errors.InvalidArgumentError as error:
            results.append("invalid")
    return results


@program("resource", "v2")
def captured_variables_and_tables(cluster):
    with tf.device("/job:worker/task:0"):
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], [10, 20]), -1)
        factor = v1.get_variable("factor", initializer=3, use_resource=True)
        dataset = Dataset.from_tensor_slices(["a", "b", "c"]).map(
            lambda key: table.lookup(key) * factor, num_parallel_calls=2)
        iterator = v1.data.make_initializable_iterator(dataset.repeat(2).prefetch(1))
        element = iterator.get_next()
    results = []
    with cluster.session() as session:
        session.run([v1.tables_initializer(), v1.global_variables_initializer()])
        session.run(iterator.initializer)
        results += [session.run(element) for _ in range(6)]
        session.run(factor.assign(5))
        session.run(iterator.initializer)
        results += [session.run(element) for _ in range(3)]
    return results


@program("resource", "v2")
def errors_in_the_middle(cluster):
    def fails_at_two(x):
        with tf.control_dependencies([tf.debugging.assert_none_equal(x, np.int64(2))]):
            return tf.identity(x)

    results = {}
    datasets = {
        "map": Dataset.range(5).map(fails_at_two),
        "parallel": Dataset.range(5).map(fails_at_two, num_parallel_calls=3),
        "prefetched": Dataset.range(5).map(fails_at_two).prefetch(2),
        "ragged": Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).batch(2),
        "batch_size": Dataset.range(4).batch(v1.placeholder_with_default(np.int64(0), [])),
    }
    for name, dataset in datasets.items():
        with tf.device("/job:worker/task:0"):
            iterator = v1.data.make_initializable_iterator(dataset)
            element = iterator.get_next()
        found = results.setdefault(name, [])
        with cluster.session() as session:
            for step in [iterator.initializer] + 7 * [element]:
                try:
                    value = session.run(step)
                    found.append("-" if value is None else value.tolist())
                except tf.errors.OpError as error:
                    found.append(type(error).__name__)
    return {name: str(found) for name, found in results.items()}


@program("resource", "v2")
def optionals_and_cardinalities(cluster):
    with tf.device("/job:worker/task:0"):
        iterator = v1.data.make_initializable_iterator(Dataset.range(2))
        optional = tf.data.experimental.get_next_as_optional(iterator)
        value = tf.cond(optional.has_value(), optional.get_value, lambda: np.int64(-1))
        counts = [tf.data.experimental.cardinality(d) for d in (
            Dataset.range(7).batch(2), Dataset.range(7).repeat(), Dataset.range(7).skip(3),
            Dataset.range(7).filter(lambda x: x > 3), Dataset.range(7).shard(2, 1),
            Dataset.zip((Dataset.range(2), Dataset.range(5))),
            Dataset.range(3).concatenate(Dataset.range(4)).repeat(2))]
        total = Dataset.range(10).reduce(np.int64(5), lambda s, x: s + x)
        single = tf.data.experimental.get_single_element(Dataset.range(9).skip(8))
    with cluster.session() as session:
        session.run(iterator.initializer)
        return [session.run(value) for _ in range(3)], session.run([counts, total, single])


@program("resource", "v2")
def parsed_examples(cluster):
    name = os.path.join(cluster.folder, "examples")
    with tf.io.TFRecordWriter(name) as writer:
        for i in range(10):
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "image": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + .5])),
            })).SerializeToString())
    features = {"label": tf.io.FixedLenFeature([], tf.int64),
                "image": tf.io.FixedLenFeature([2], tf.float32)}
    return _all(
        cluster,
        single=lambda: tf.data.TFRecordDataset(name).map(
            lambda record: tf.io.parse_single_example(record, features)).batch(3),
        batches=lambda: tf.data.TFRecordDataset(name).batch(4).map(
            lambda records: tf.io.parse_example(records, features), AUTOTUNE),
        transformation=lambda: tf.data.TFRecordDataset(name).batch(4).apply(
            tf.data.experimental.parse_example_dataset(features)),
    )


@program("resource", "v2")
def csv_files(cluster):
    name = os.path.join(cluster.folder, "table.csv")
    with open(name, "w") as f:
        f.write('a,b,c\n1,2.5,"x ""y"", z"\n,3,w\n4,NA,"two\nlines"\n5,6\n7,8,9\n')
    columns = [tf.constant([0]), tf.constant([1.]), tf.constant([""])]
    csv = tf.data.experimental.CsvDataset
    return _all(
        cluster,
        plain=lambda: csv(name, columns, header=True, na_value="NA").apply(
            tf.data.experimental.ignore_errors()),
        mistake=lambda: csv(name, columns, header=True),
        selected=lambda: csv(name, [tf.string], header=True, select_cols=[2]),
        batches=lambda: tf.data.experimental.make_csv_dataset(
            name, 2, shuffle=False, num_epochs=1, ignore_errors=True, na_value="NA",
            column_defaults=[0, 0., ""]),
    )


@program("resource", "v2")
def older_transformations(cluster):
    numbers = Dataset.range(10)
    reducer = tf.data.experimental.Reducer(
        lambda key: key * 100, lambda state, x: state + x, lambda state: state * 2)
    return _all(
        cluster,
        sampled=lambda: Dataset.sample_from_datasets(
            [Dataset.range(8), Dataset.range(100, 108), Dataset.range(200, 208)],
            weights=[.5, .3, .2], seed=5),
        reduced=lambda: numbers.apply(
            tf.data.experimental.group_by_reducer(lambda x: (7 - x) % 3, reducer)),
        rebatched=lambda: numbers.batch(4).rebatch(3),
        sizes=lambda: numbers.batch(4).rebatch([1, 2], drop_remainder=True),
        sparse=lambda: numbers.map(lambda x: tf.fill([x % 3], x)).apply(
            tf.data.experimental.dense_to_sparse_batch(4, [2])),
    )


@program("resource", "v2")
def ragged_elements(cluster):
    ragged = tf.ragged.constant([[[1, 2], [3]], [], [[4], [], [5, 6]]])

    def row(x):
        return tf.RaggedTensor.from_row_lengths(tf.range(x), [x])

    return _all(
        cluster,
        slices=lambda: Dataset.from_tensor_slices(ragged).map(lambda x: x.to_tensor()),
        batches=lambda: Dataset.from_tensor_slices(ragged).batch(2).map(lambda x: x.to_tensor()),
        mapped=lambda: Dataset.range(4).map(row).map(lambda x: (x + 1).to_tensor()),
    )


@program("resource", "v2")
def trained_from_a_dataset(cluster):
    def input_fn():
        x = np.linspace(-1, 1, 64).astype(np.float32)
        return Dataset.from_tensor_slices((x, 3 * x + 1)).shuffle(64, seed=1).repeat().batch(
            16).prefetch(2)

    with cluster.between_graphs():
        x, y = v1.data.make_one_shot_iterator(input_fn()).get_next()
        w = v1.get_variable("w", initializer=0.)
        b = v1.get_variable("b", initializer=0.)
        loss = tf.reduce_mean(tf.square(w * x + b - y))
        train = v1.train.GradientDescentOptimizer(0.3).minimize(
            loss, v1.train.get_or_create_global_step())
    with v1.train.MonitoredTrainingSession(cluster.target(), hooks=[
            v1.train.StopAtStepHook(20)]) as session:
        while not session.should_stop():
            result = session.run([train, w, b, loss])
    return result[1:]


@program("resource", "v2")
def random_ops_in_functions(cluster):
    """With seeds, numbers continue in a dataset's next round, and start again in a new iterator."""
    def draw(_):
        return tf.random.uniform([], seed=5)

    def nested(_):
        return Dataset.range(2).map(draw)

    pipelines = {
        "repeat": Dataset.range(3).map(draw).repeat(2),
        "parallel": Dataset.range(3).map(draw, num_parallel_calls=1).repeat(2),
        "flat_map": Dataset.range(2).flat_map(nested).repeat(2),
        "filter": Dataset.range(9).filter(lambda x: draw(x) > 0.3).repeat(2),
        "scan": Dataset.range(3).scan(0.0, lambda s, x: (s + draw(x), s)).repeat(2),
    }
    results = {}
    with tf.device("/job:worker/task:0"):
        for name, dataset in pipelines.items():
            iterator = v1.data.make_initializable_iterator(dataset)
            results[name] = (iterator.initializer, iterator.get_next())
    read = {}
    with cluster.session() as session:
        for name, (initializer, element) in results.items():
            for turn in range(2):
                session.run(initializer)
                read[name, turn] = []
                try:
                    while True:
                        read[name, turn].append(session.run(element))
                except tf.errors.OutOfRangeError:
                    pass
    return {"%s %d" % key: np.asarray(values) for key, values in read.items()}


@program("resource")
def functions_of_tensorflow_1(cluster):
    """A Defun runs its stateful nodes, even if no node uses their outputs."""
    function = tf.compat.v1.Defun if hasattr(tf.compat.v1, "Defun") else None
    if function is None:
        from tensorflow.python.framework.function import Defun as function
    with tf.device("/job:ps/task:0"):
        variable = v1.get_variable("v", initializer=tf.constant(1.0), use_resource=True)

    @function(tf.resource, tf.float32)
    def add(handle, x):
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=x)
        return x * 2.0

    @function(tf.resource, tf.float32)
    def twice(handle, x):
        add(handle, x)
        return x + 1.0

    once, nested = add(variable.handle, tf.constant(10.0)), twice(variable.handle,
                                                                  tf.constant(100.0))
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        values = [session.run(once), session.run(variable.read_value())]
        values += [session.run(nested), session.run(variable.read_value())]
    return values
