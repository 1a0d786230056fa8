#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tf_server.Server takes the arguments of tf.compat.v1.train.Server. Neither server is
started.

The protocol is not compared: TensorFlow's is "grpc", Penstock's is "auto"."""

import contextlib
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402, F401  (goes on in a Python that has TensorFlow, or skips)

import tensorflow as tf  # noqa: E402
import tf_server  # noqa: E402


def described(server, *args, **kwargs):
    """Returns the task that `server` derives from its arguments, or its error."""
    try:
        made = server(*args, start=False, **kwargs).server_def
        return made.job_name, made.task_index
    except ValueError as error:
        return str(error)


class ServerArguments(unittest.TestCase):
    def test_what_is_left_out_of_a_cluster(self):
        any_port = "localhost:0"  # TensorFlow's server binds its port before it is started
        one, two = {"a": [any_port]}, {"a": [any_port, any_port]}
        jobs = {"a": [any_port], "b": [any_port]}
        for args in ([one], [two], [two, "a"], [two, "a", 1], [two, None, 1],
                     [{"a": {3: any_port}}], [jobs], [jobs, "b"]):
            with self.subTest(args=args):
                self.assertEqual(described(tf_server.Server, *args),
                                 described(tf.compat.v1.train.Server, *args))

    def test_what_has_no_effect_is_named(self):
        server_def = tf.train.ServerDef(job_name="a")
        server_def.cluster.CopyFrom(tf.train.ClusterSpec({"a": ["localhost:0"]}).as_cluster_def())
        with contextlib.redirect_stderr(io.StringIO()) as said:
            tf_server.Server(server_def, start=False)
        self.assertEqual(said.getvalue(), "")
        job = server_def.cluster_device_filters.jobs.add(name="a")
        job.tasks[0].device_filters.append("/job:a")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            tf_server.Server(server_def, start=False)
        self.assertIn("ServerDef.cluster_device_filters has no effect", said.getvalue())

    def test_install_replaces_the_class_everywhere(self):
        from tensorflow.python.training import server_lib
        modules = (server_lib, tf.compat.v1.train, tf.distribute, tf.compat.v1.distribute)
        for module in modules:
            self.assertIsNot(module.Server, tf_server.Server)
            self.addCleanup(setattr, module, "Server", module.Server)
        tf_server.install()
        for module in modules:
            self.assertIs(module.Server, tf_server.Server)


if __name__ == "__main__":
    unittest.main()
