#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that TensorBoard can show the event files of a training in C++.

TensorFlow reads the event files. If TensorBoard is also installed (pip install tensorboard), its
own reader reads them, and the test requests the data of its pages from its server.
"""

import glob
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import harness  # noqa: E402, F401  (goes on in a Python that has TensorFlow, or skips)

import tensorflow as tf  # noqa: E402

PENSTOCK, TRAIN = "tools/penstock/penstock", "client/examples/fashion_mnist"
HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None
FLAGS = ["--model=mlp", "--steps=60", "--summary_steps=20", "--eval_steps=25"]


def events(folder):
    return [event for path in sorted(glob.glob(folder + "/events.out.tfevents.*"))
            for event in tf.compat.v1.train.summary_iterator(path)]


class EventFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run([TRAIN, "--summary_dir=" + cls.folder, *FLAGS], check=True, timeout=120)

    def test_tensorflow_reads_them(self):
        steps, kinds = {}, set()
        for event in events(self.folder):
            kinds.add(event.WhichOneof("what"))
            for value in event.summary.value:
                steps.setdefault(value.tag, []).append(event.step)
                if value.HasField("image"):
                    picture = tf.io.decode_png(value.image.encoded_image_string)
                    self.assertEqual(picture.shape, (28, 28, 1))
        self.assertEqual(kinds, {"file_version", "graph_def", "session_log", "summary"})
        for tag in ("loss", "accuracy", "pictures/image/0", "pictures/image/2"):
            self.assertEqual(steps[tag], [1, 21, 41], tag)
        self.assertEqual(steps["global_step/sec"], [21, 41])
        tested = [(event.step, {v.tag: v.simple_value for v in event.summary.value})
                  for event in events(self.folder + "/eval") if event.summary.value]
        self.assertEqual([step for step, _ in tested], [25, 50, 60])
        self.assertGreater(tested[-1][1]["accuracy"], tested[0][1]["accuracy"] - 0.1)

    def test_the_graph_can_be_imported(self):
        graph, = (e.graph_def for e in events(self.folder) if e.HasField("graph_def"))
        definition = tf.compat.v1.GraphDef.FromString(graph)
        self.assertGreater(len(definition.node), 50)
        with tf.Graph().as_default():
            tf.import_graph_def(definition)

    def test_a_cluster_and_an_evaluation_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            evaluation = subprocess.Popen(
                [TRAIN, "--evaluate", "--model=mlp", "--steps=60", "--wait_seconds=60",
                 "--checkpoint_dir=" + folder + "/saved", "--summary_dir=" + folder])
            try:
                subprocess.run(
                    [PENSTOCK, "run", "--ps=1", "--workers=2", "--", TRAIN, *FLAGS[:-1],
                     "--checkpoint_dir=" + folder + "/saved", "--save_every_steps=20",
                     "--summary_dir=" + folder], check=True, timeout=120)
                self.assertEqual(evaluation.wait(60), 0)
            finally:
                evaluation.kill()
                evaluation.wait()
            self.assertEqual(len(glob.glob(folder + "/events.*")), 1, "only the chief's")
            self.assertTrue([e for e in events(folder) if e.summary.value])
            tested = [e.step for e in events(folder + "/eval") if e.summary.value]
            self.assertGreaterEqual(tested[-1], 60)

    @unittest.skipUnless(HAS_TENSORBOARD, "there is no TensorBoard; pip install tensorboard")
    def test_tensorboard_reads_them(self):
        from tensorboard.backend.event_processing import event_accumulator
        shown = event_accumulator.EventAccumulator(self.folder)
        shown.Reload()
        tags = shown.Tags()
        self.assertLessEqual({"loss", "accuracy", "global_step/sec"}, set(tags["scalars"]))
        self.assertIn("pictures/image/0", tags["images"])
        self.assertGreaterEqual(len(tags["histograms"]), 6)  # a kernel and a bias per layer
        self.assertTrue(tags["graph"])
        self.assertEqual([e.step for e in shown.Scalars("loss")], [1, 21, 41])

    @unittest.skipUnless(HAS_TENSORBOARD, "there is no TensorBoard; pip install tensorboard")
    def test_tensorboard_serves_them_while_the_training_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
            training = subprocess.Popen(
                [TRAIN, "--model=mlp", "--steps=1000000", "--summary_steps=20", "--eval_steps=200",
                 "--summary_dir=" + folder, "--tensorboard"],
                env=dict(os.environ, PATH=path), stderr=subprocess.PIPE, text=True)
            try:
                for line in training.stderr:
                    url = re.search(r"TensorBoard shows .* at (http://\S+)", line)
                    if url:
                        break
                ask = lambda what: self.ask(url.group(1) + "data/plugin/" + what)  # noqa: E731
                runs = self.until(lambda: ask("scalars/tags"), lambda tags: "eval" in tags)
                self.assertIn("loss", runs["."])
                self.assertIn("accuracy", runs["eval"])
                points = ask("scalars/scalars?run=.&tag=loss")
                self.assertEqual(points[0][1], 1)
                self.assertGreater(len(points), 1)
                self.assertTrue(ask("histograms/tags")["."])
                self.assertIn("pictures/image/0", ask("images/tags")["."])
                self.assertTrue(ask("graphs/info")["."]["run_graph"])
            finally:
                training.send_signal(signal.SIGTERM)
                training.stderr.close()
                training.wait(30)
            # TensorBoard has ended with the training
            with self.assertRaises(urllib.error.URLError):
                urllib.request.urlopen(url.group(1), timeout=5)

    def ask(self, url):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            return {}

    def until(self, ask, good, seconds=90):
        end = time.monotonic() + seconds
        while True:
            answer = ask()
            if good(answer):
                return answer
            self.assertLess(time.monotonic(), end, answer)
            time.sleep(0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
