# SPDX-License-Identifier: Apache-2.0
"""Tests every optimizer of TensorFlow 1, with dense and sparse gradients, step by step."""

import numpy as np
import tensorflow as tf
from harness import program, v1


def _optimizers(step):
    t = v1.train
    return {
        "gradient_descent": t.GradientDescentOptimizer(0.1),
        "momentum": t.MomentumOptimizer(0.1, 0.9),
        "nesterov": t.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "adagrad": t.AdagradOptimizer(0.1),
        "adagrad_da": t.AdagradDAOptimizer(0.1, step, l1_regularization_strength=0.01,
                                           l2_regularization_strength=0.02),
        "adadelta": t.AdadeltaOptimizer(0.5, rho=0.9),
        "adam": t.AdamOptimizer(0.1),
        "adam_locking": t.AdamOptimizer(0.1, use_locking=True),
        "ftrl": t.FtrlOptimizer(0.1, l1_regularization_strength=0.01,
                                l2_regularization_strength=0.02),
        "ftrl_shrinkage": t.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
        "rms_prop": t.RMSPropOptimizer(0.1, momentum=0.5),
        "rms_prop_centered": t.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
        "proximal_gradient_descent": t.ProximalGradientDescentOptimizer(
            0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
        "proximal_adagrad": t.ProximalAdagradOptimizer(
            0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
    }


def _steps(cluster, dtype):
    random = np.random.RandomState(11)
    step = v1.train.get_or_create_global_step()
    rows = v1.placeholder(tf.int32, [None])
    results, runs = {}, {}
    with cluster.between_graphs():
        for name, optimizer in _optimizers(step).items():
            if dtype == np.float64 and name.startswith("proximal"):
                continue  # their Python classes support only float32
            with v1.variable_scope(name):
                w = v1.get_variable("w", initializer=random.randn(4, 3).astype(dtype))
                table = v1.get_variable("table", initializer=random.randn(6, 3).astype(dtype))
                target = random.randn(4, 3).astype(dtype)
                loss = (tf.reduce_sum(tf.square(w - target)) +
                        tf.reduce_sum(tf.sin(tf.nn.embedding_lookup(table, rows))))
                runs[name] = optimizer.minimize(loss, global_step=None)
                slots = [optimizer.get_slot(v, s) for v in (w, table)
                         for s in optimizer.get_slot_names()]
                results[name] = [w, table] + slots
        advance = v1.assign_add(step, 1)
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        history = []
        for at in ([1, 4], [4, 0], [2, 2, 5]):  # the last list repeats a row
            for name, run in runs.items():
                session.run(run, {rows: at})
            session.run(advance)
            history.append(session.run(results))
        return history


@program("ref", "resource", rtol=5e-6, atol=1e-6)
def optimizers(cluster):
    return _steps(cluster, np.float32)


@program("ref", "resource", rtol=1e-12, atol=1e-14)
def optimizers_double(cluster):
    return _steps(cluster, np.float64)


@program("ref", "resource", "v2")
def clipped_averaged(cluster):
    """Clips gradients by norm and applies them; keeps a moving average of the variable."""
    with cluster.between_graphs():
        w = v1.get_variable("w", initializer=np.float32([[1, -2], [3, 4]]))
        loss = tf.reduce_sum(w * w * w)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        gradients, norm = tf.clip_by_global_norm(gradients, 5.0)
        step = v1.train.get_or_create_global_step()
        apply = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
        average = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
        with tf.control_dependencies([apply]):
            train = average.apply([w])
    with cluster.session() as session:
        session.run(v1.global_variables_initializer())
        norms = []
        for _ in range(3):
            norms.append(session.run(norm))
            session.run(train)
        return norms, session.run([w, average.average(w), step])
