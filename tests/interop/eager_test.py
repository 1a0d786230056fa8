#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that TensorFlow 2's eager clients, which Penstock does not serve, end soon with an error
that says what it does serve."""

import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402  (goes on in a Python that has TensorFlow, or skips)

import tf_server  # noqa: E402

# Time limit in seconds for a client, which may take long to import TensorFlow on a busy machine.
TIMEOUT_S = 120
BEGIN = """
import sys, time
import tensorflow as tf
task, own = sys.argv[1:]
print("begins", time.time(), flush=True)
"""
CLIENTS = {
    "connects to a cluster": """
tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec({"worker": [task]}))
with tf.device("/job:worker/task:0"):
    print(tf.constant(1.0) + 1.0)
""",
    "connects to a host": """
tf.config.experimental_connect_to_host("grpc://" + task)
with tf.device("/job:worker/task:0"):
    print(tf.constant(1.0) + 1.0)
""",
    "uses a parameter server strategy": """
cluster = tf.train.ClusterSpec({"worker": [task], "ps": [task], "chief": [own]})
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    cluster, task_type="chief", task_id=0, rpc_layer="grpc")
strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
with strategy.scope():
    tf.Variable(1.0)
""",
    "registers with a coordination service": """
from tensorflow.python.eager import context
context.context().configure_coordination_service(
    service_type="standalone", service_leader="/job:worker/replica:0/task:0")
cluster = tf.train.ClusterSpec({"worker": [task], "chief": [own]})
tf.config.experimental_connect_to_cluster(cluster, job_name="chief", task_index=0)
with tf.device("/job:worker/task:0"):
    print(tf.constant(1.0) + 1.0)
""",
}


class EagerClients(unittest.TestCase):
    def test_end_with_an_error_that_says_what_is_served(self):
        ports = harness.free_ports(1 + len(CLIENTS))
        address = "localhost:%d" % ports[0]
        with tf_server.Task({"worker": [address]}, "worker"):
            for own, (name, program) in zip(ports[1:], CLIENTS.items()):
                with self.subTest(name):
                    client = subprocess.run(
                        [sys.executable, "-c", BEGIN + program, address, "localhost:%d" % own],
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                        timeout=TIMEOUT_S, check=False,
                        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="0"))
                    begun = float(client.stdout.split("begins ")[1].split()[0])
                    self.assertLess(time.time() - begun, 30.0)
                    self.assertNotEqual(client.returncode, 0)
                    self.assertRegex(client.stdout, r"this server is a task of Penstock.*"
                                                    r"tf\.compat\.v1\.Session")


if __name__ == "__main__":
    unittest.main()
