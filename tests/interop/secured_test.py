#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests TensorFlow's client, which supports neither TLS nor tokens, with a secured cluster
(SECURITY.md)."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402  (goes on in a Python that has TensorFlow, or skips)

import tensorflow as tf  # noqa: E402
import tf_server  # noqa: E402

v1 = tf.compat.v1
KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
CERTIFICATES = """
openssl req -x509 %s -subj /CN=ca -keyout ca.key -out ca.pem
openssl req %s -subj /CN=task -keyout task.key -out task.csr
echo subjectAltName=DNS:localhost > names
openssl x509 -req -in task.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out task.pem
(umask 077; openssl rand -hex 32 > token)
""" % (KEY, KEY)


class Secured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run(["bash", "-euc", CERTIFICATES], cwd=folder, check=True,
                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for name, file in (("TLS_CA", "ca.pem"), ("TLS_CERT", "task.pem"),
                           ("TLS_KEY", "task.key"), ("TOKEN_FILE", "token")):
            os.environ["PENSTOCK_" + name] = os.path.join(folder, file)
        os.environ["PENSTOCK_TLS_CLIENT_AUTH"] = "1"
        ports = harness.free_ports(2)
        self.cluster = {"ps": ["localhost:%d" % ports[0]], "worker": ["localhost:%d" % ports[1]]}

    def test_trains_through_the_port_for_its_user(self):
        ps = tf_server.Server(self.cluster, "ps", 0)
        worker = tf_server.Server(self.cluster, "worker", 0)
        self.addCleanup(ps.stop)
        self.addCleanup(worker.stop)
        self.assertNotIn(self.cluster["worker"][0], worker.target)
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                w = v1.get_variable("w", initializer=0.0, use_resource=False)
            with tf.device("/job:worker/task:0"):
                step = v1.train.GradientDescentOptimizer(0.1).minimize(tf.square(w - 3.0))
            with v1.Session(worker.target) as session:
                session.run(w.initializer)
                for _ in range(100):
                    session.run(step)
                self.assertAlmostEqual(session.run(w), 3.0, places=4)
            # The task's own port refuses the client.
            config = v1.ConfigProto(operation_timeout_in_ms=4000)
            with self.assertRaises(tf.errors.OpError):
                with v1.Session("grpc://" + self.cluster["worker"][0], config=config) as session:
                    session.run(w)


if __name__ == "__main__":
    unittest.main()
