# SPDX-License-Identifier: Apache-2.0
"""Tests that each side restores the checkpoints of the other."""

import os
import subprocess

import numpy as np
import tensorflow as tf
from harness import EXAMPLES, program, v1


def _variables(cluster, scale):
    with cluster.between_graphs():
        random = np.random.RandomState(41)
        made = {}
        for dtype in (np.float32, np.float64, np.int32, np.int64):
            name = np.dtype(dtype).name
            made[name] = v1.get_variable(
                name, initializer=(scale * 10 * random.randn(3, 4)).astype(dtype))
        made["text"] = v1.get_variable("text", initializer=np.array([b"a", b"", b"\xff" * scale]),
                                       use_resource=False)
        made["flag"] = v1.get_variable("flag", initializer=np.array([True, False, scale > 1]))
        with v1.variable_scope("rows", partitioner=v1.fixed_size_partitioner(3)):
            made["rows"] = v1.get_variable(
                "rows", [7, 2], initializer=v1.constant_initializer(float(scale)))
    return list(made.values())


def _flat(variables):
    return [v if not hasattr(v, "as_tensor") else v.as_tensor() for v in variables]


def _read(reader, name):
    try:
        return reader.get_tensor(name)
    except tf.errors.UnimplementedError as error:  # raised for slices in V1 files
        return str(error)


def _save(cluster, saver_options):
    variables = _variables(cluster, scale=2)
    step = v1.train.get_or_create_global_step()
    saver = v1.train.Saver(max_to_keep=2, **saver_options)
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        path = os.path.join(cluster.folder, "model")
        paths = [saver.save(session, path, global_step=n) for n in (1, 2, 3)]
        session.run(v1.assign_add(step, 1))
        values = session.run(_flat(variables))
        names = sorted(n for n in os.listdir(cluster.folder) if "data" not in n)
        reader = v1.train.NewCheckpointReader(paths[-1])
        read = {n: _read(reader, n) for n in sorted(reader.get_variable_to_shape_map())}
        return paths[-1], names, read, values


def _restore(cluster, path, saver_options):
    with tf.Graph().as_default():
        variables = _variables(cluster, scale=1)
        v1.train.get_or_create_global_step()
        with cluster.session() as session:
            session.run(v1.global_variables_initializer())
            v1.train.Saver(**saver_options).restore(session, path)
            return session.run(_flat(variables))


def _round_trip(cluster, **saver_options):
    path, names, read, values = _save(cluster, saver_options)
    restored = _restore(cluster, path, saver_options)
    np.testing.assert_equal(restored, values)
    return names, read, restored


@program("ref", "resource", "v2")
def saver(cluster):
    return _round_trip(cluster)


@program("ref", "resource")
def sharded_saver(cluster):
    return _round_trip(cluster, sharded=True)


@program("ref", "resource")
def saver_across_sides(cluster):
    """TensorFlow in this process restores the cluster's checkpoint, and vice versa."""
    variables = _variables(cluster, scale=3)
    saver = v1.train.Saver()
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        path = saver.save(session, os.path.join(cluster.folder, "theirs"))
        expected = session.run(_flat(variables))

    with tf.Graph().as_default():
        here = [v1.get_variable(v.op.name, shape=v.shape, dtype=v.dtype.base_dtype,
                                use_resource=False if "text" in v.op.name else None)
                for v in variables if not hasattr(v, "as_tensor")]
        whole = v1.get_variable("rows/rows", [7, 2])
        with v1.Session() as session:
            v1.train.Saver().restore(session, path)
            read = session.run(here + [whole])
            np.testing.assert_equal(read, expected)
            session.run(whole.assign(10 + tf.reshape(tf.range(14.0), [7, 2])))
            back = v1.train.Saver().save(session, os.path.join(cluster.folder, "back"))

    with cluster.session() as session:
        saver.restore(session, back)
        return session.run(_flat(variables))


def _counting_iterator():
    """Returns the next batch of an iterator, a variable, the ops that initialise both, and a Saver
    of both."""
    iterator = v1.data.make_initializable_iterator(
        v1.data.Dataset.range(20).shuffle(8, seed=3).map(lambda x: x + 1).batch(4))
    count = v1.get_variable("count", initializer=0.)
    position = tf.data.experimental.make_saveable_from_iterator(iterator)
    return (iterator.get_next(), count, [count.initializer, iterator.initializer],
            v1.train.Saver([count, position]))


def _restored(session, saver, path):
    """Restores from `path`; returns False if the checkpoint's iterator is refused."""
    try:
        saver.restore(session, path)
    except (tf.errors.OpError, ValueError):
        return False
    return True


@program("resource", "v2")
def iterators_across_sides(cluster):
    """Each side reads the variables of a checkpoint in which the other has saved an iterator. The
    iterator itself is restored or refused, and the process lives on."""
    with tf.device("/job:worker/task:0"):
        batch, count, start, saver = _counting_iterator()
    variables = v1.train.Saver([count])
    with cluster.session() as session:
        session.run(start)
        session.run(batch)
        session.run(v1.assign_add(count, 3.))
        path = saver.save(session, os.path.join(cluster.folder, "cluster"))

    with tf.Graph().as_default():
        batch_here, count_here, start_here, saver_here = _counting_iterator()
        variables_here = v1.train.Saver([count_here])
        with v1.Session() as session:
            session.run(start_here)
            variables_here.restore(session, path)
            results = [session.run(count_here),
                       sorted(v1.train.NewCheckpointReader(path).get_variable_to_shape_map())]
            _restored(session, saver_here, path)
            session.run(start_here)
            results.append(session.run([batch_here, count_here]))
            session.run(v1.assign_add(count_here, 5.))
            back = saver_here.save(session, os.path.join(cluster.folder, "back"))

    with cluster.session() as session:
        session.run(start)
        variables.restore(session, back)
        results.append(session.run(count))
        _restored(session, saver, back)
        session.run(start)
        results.append(session.run([batch, count]))
    return results


@program("ref", "resource")
def saver_v1(cluster):
    """Saves and restores in the V1 format, TensorFlow's first one."""
    return _round_trip(cluster, write_version=1)


@program("ref", "resource")
def sharded_saver_v1(cluster):
    return _round_trip(cluster, write_version=1, sharded=True)


def _score(folder, rows):
    """Returns the scores of a C++ program, which loads the model itself."""
    text = "\n".join(",".join("%.9g" % x for x in row) for row in rows)
    done = subprocess.run([os.path.join(EXAMPLES, "score"), folder, "serving_default"],
                          input=text, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return np.array([[float(x) for x in line.split(",")] for line in done.stdout.splitlines()])


@program("ref", "resource")
def saved_model(cluster):
    """Saves a SavedModel from the cluster; loads it there, in this process, and in a C++
    program."""
    folder = os.path.join(cluster.folder, "model")
    rows = np.random.RandomState(42).randn(4, 3).astype(np.float32)
    with cluster.between_graphs():
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        with v1.variable_scope("layer", partitioner=v1.fixed_size_partitioner(2)):
            w = v1.get_variable("w", [3, 2], initializer=v1.ones_initializer())
        b = v1.get_variable("b", initializer=np.array([0.5, -0.5], np.float32))
    y = tf.nn.relu(tf.matmul(x, w) + b, name="y")
    train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(y)))
    build = v1.saved_model.build_tensor_info
    signature = v1.saved_model.build_signature_def({"x": build(x)}, {"y": build(y)},
                                                   "tensorflow/serving/predict")
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(train, {x: rows})
        builder = v1.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature},
                                             clear_devices=True)
        builder.save()
        expected = session.run(y, {x: rows})

    loaded = []
    for target in (cluster.target(), ""):
        with tf.Graph().as_default(), v1.Session(target) as session:
            meta = v1.saved_model.loader.load(session, ["serve"], folder)
            served = meta.signature_def["serving_default"]
            loaded.append(session.run(served.outputs["y"].name,
                                      {served.inputs["x"].name: rows}))
    for values in loaded + [_score(folder, rows)]:
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    return expected


@program("ref")
def missing_checkpoint(cluster):
    """The client derives its error about a path from the text of the server's error."""
    with cluster.between_graphs():
        v1.get_variable("w", [2], initializer=v1.zeros_initializer())
    saver = v1.train.Saver()
    with cluster.session() as session:
        try:
            saver.restore(session, os.path.join(cluster.folder, "nothing"))
        except ValueError as error:
            return str(error).replace(cluster.folder, "")
        except tf.errors.NotFoundError as error:
            return "NotFound"
