#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every program of client/examples runs as the READMEs say: for a few steps, in one
process and, if the program supports it, on a cluster of 1 ps and 2 workers."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import (LANGUAGE_MODEL, PENSTOCK, READER, RECOMMENDER, TRAIN,  # noqa: E402
                     ClusterTest, main)

EXAMPLES = "client/examples"
SAVED_MODEL = "client/testdata/saved_model"
TEXTS = ["abcabcabc", "xyzxyz"] * 40
SMALL_NET = ["--units=16", "--embedding=8", "--steps=20"]


def programs():
    """Returns the programs that the build has put into the folder (//client/examples:programs)."""
    return sorted(name for name in os.listdir(EXAMPLES) if "." not in name)


def commands(readme):
    """Returns the shell commands of a README, each as one line."""
    with open(readme) as f:
        blocks = re.findall(r"```sh\n(.*?)```", f.read(), re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


class ExamplesTest(ClusterTest):
    def run_alone(self, program, *arguments, **kwargs):
        done = subprocess.run([program, *arguments], capture_output=True, text=True,
                              errors="replace", timeout=60, check=False, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def run_on_cluster(self, *flags, **kwargs):
        run = self.start(*flags, ps=1, workers=2, **kwargs)
        self.assertEqual(run.finish(60), 0, run.output())
        return run

    def test_every_program_has_a_story(self):
        self.assertIn("fashion_mnist", programs())
        for program in programs():
            stories = [name for name in dir(self) if name.startswith("test_" + program)]
            self.assertTrue(stories, "%s: write a story test_%s in examples_test.py" %
                            (program, program))

    def test_readmes_name_programs_and_flags_that_exist(self):
        shown = 0
        for readme in ("README.md", EXAMPLES + "/README.md", "docs/own-program.md"):
            for command in commands(readme):
                match = re.search(r"client/examples[/:](\w+)( .*|\"?)$", command)
                if not match or "bazel build" in command or ".py" in command:
                    continue
                program, arguments = match.groups()
                self.assertIn(program, programs(), command)
                known = self.run_alone(EXAMPLES + "/" + program, "--help")
                for flag in re.findall(r"--\w+", arguments):
                    self.assertIn(flag, known, command)
                shown += 1
        self.assertGreater(shown, 3)

    def test_fashion_mnist_in_one_process(self):
        said = self.run_alone(TRAIN, "--model=convnet", "--steps=5")
        self.assertRegex(said, r"test accuracy: 0\.\d+\n$")

    def test_fashion_mnist_with_both_models_and_inputs(self):
        with tempfile.TemporaryDirectory() as records:
            self.run_alone(PENSTOCK, "convert", records, "--shards=2")
            for model in ("mlp", "convnet"):
                for flags in (["--input=idx"], ["--input=tfrecord", "--data_dir=" + records]):
                    with self.subTest(model=model, flags=flags):
                        run = self.run_on_cluster("--model=" + model, "--steps=20", *flags)
                        self.assertRegex(run.output(), r"test accuracy: 0\.\d+")
                        self.assertIn("global_step",
                                      self.run_alone(PENSTOCK, "checkpoint", run.folder))

    def test_fashion_mnist_in_step(self):
        run = self.run_on_cluster("--model=mlp", "--steps=10", "--sync")
        self.assertRegex(run.output(), r"test accuracy: 0\.\d+")

    def test_remote_reader(self):
        run = self.start("--model=mlp", "--steps=1000000", ps=1, workers=2)
        run.wait_for(r"step +[1-9]")
        said = self.run_alone(READER, "--target=grpc://" + run.address("ps"))
        self.assertRegex(said, r"(?m)^global_step .* \d+$")

    def test_language_model(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "texts"), "w") as f:
                f.write("\n%\n".join(TEXTS))
            flags = SMALL_NET + ["--batch_size=4", "--data_dir=" + folder]
            perplexity = r"test perplexity per character: \d+\.\d+"
            self.assertRegex(self.run_alone(LANGUAGE_MODEL, *flags), perplexity)
            for more in (["--cell=lstm"], ["--cell=gru", "--layers=2"], ["--sync"]):
                with self.subTest(more=more):
                    run = self.run_on_cluster(*flags, *more, program=LANGUAGE_MODEL)
                    self.assertRegex(run.output(), perplexity)
            for more in ([], ["--elastic"]):
                with self.subTest(allreduce=more):
                    run = self.start(*flags, "--strategy=allreduce", *more, ps=0, workers=2,
                                     program=LANGUAGE_MODEL)
                    self.assertEqual(run.finish(60), 0, run.output())
                    self.assertRegex(run.output(), perplexity)

    def test_stacked_lstm(self):
        flags = ["--layers=4", "--units=32", "--length=8", "--steps=40"]
        losses = []
        for said in (self.run_alone(EXAMPLES + "/stacked_lstm", *flags),
                     self.run_on_cluster(*flags, "--log_device_placement",
                                         program=EXAMPLES + "/stacked_lstm").output()):
            found = re.search(r"(?m)^.*loss: (\d\.\d+)$", said)
            self.assertTrue(found, said)
            losses.append(float(found.group(1)))
        # The data and initial weights do not depend on where the nodes run.
        self.assertAlmostEqual(losses[0], losses[1], delta=0.02)
        # The step was placed without the ps, which the example does not use.
        self.assertIn("/job:worker/replica:0/task:0/device:CPU:0", said)
        self.assertNotIn("): /job:ps", said)

    def test_recommender(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write_ratings(folder)
            flags = ["--data_dir=" + folder, "--steps=300", "--batch_size=64",
                     "--learning_rate=0.02"]
            for said in (self.run_alone(RECOMMENDER, *flags),
                         self.run_on_cluster(*flags, program=RECOMMENDER).output(),
                         self.run_on_cluster(*flags, "--placement=auto",
                                             program=RECOMMENDER).output()):
                found = re.search(r"(?m)^.*test AUC: (\d\.\d+)$", said)
                self.assertTrue(found, said)
                # The ratings follow a rule, which the model can learn.
                self.assertGreater(float(found.group(1)), 0.9, said)

    def test_recommender_without_parameter_servers(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write_ratings(folder)
            flags = ["--data_dir=" + folder, "--strategy=allreduce"]
            for more in ([], ["--elastic"]):
                run = self.start(*flags, *more, "--steps=300", "--batch_size=64",
                                 "--learning_rate=0.02", ps=0, workers=2, program=RECOMMENDER)
                self.assertEqual(run.finish(60), 0, run.output())
                found = re.search(r"(?m)^.*test AUC: (\d\.\d+)$", run.output())
                self.assertTrue(found, run.output())
                self.assertGreater(float(found.group(1)), 0.9, run.output())
            for more in ("--table=dynamic", "--placement=auto"):
                done = subprocess.run([RECOMMENDER, *flags, more, "--worker_hosts=a:1,b:1",
                                       "--job_name=worker", "--task_index=0"],
                                      capture_output=True, text=True, timeout=30, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("--strategy=allreduce and " + more, done.stderr)

    def test_recommender_with_dynamic_tables(self):
        """Kills a ps: its rows come back from a checkpoint and the later checkpoints of changes."""
        with tempfile.TemporaryDirectory() as folder:
            self.write_ratings(folder)
            flags = ["--data_dir=" + folder, "--batch_size=64", "--learning_rate=0.02",
                     "--table=dynamic"]
            alone = self.run_alone(RECOMMENDER, *flags, "--steps=300")
            run = self.start(*flags, "--steps=6000", "--save_every_seconds=0.2",
                             "--incremental_saves=50", ps=1, workers=2, restarts=2,
                             program=RECOMMENDER)
            line = 0
            for _ in range(3):
                _, line = run.wait_for(r"worker/0\].*saved", start=line + 1)
            run.kill("ps", 0)
            _, line = run.wait_for(r"ps/0 was killed by signal 9; starting it again", seconds=15)
            run.wait_for(r"worker/0\].*restored", seconds=60, start=line)
            self.assertEqual(run.finish(120), 0, run.output())
            for said in (alone, run.output()):
                found = re.search(r"(?m)^.*test AUC: (\d\.\d+)$", said)
                self.assertTrue(found, said)
                self.assertGreater(float(found.group(1)), 0.9, said)

    def test_recommender_with_rows_on_disk(self):
        """The memory holds 16 rows of each table; all others are in files of the ps."""
        with tempfile.TemporaryDirectory() as folder:
            self.write_ratings(folder)
            spill = os.path.join(folder, "spill")
            flags = ["--data_dir=" + folder, "--batch_size=64", "--learning_rate=0.02",
                     "--table=dynamic", "--max_rows=16"]
            run = self.start(*flags, "--steps=3000", "--save_every_seconds=0.2",
                             "--incremental_saves=50", "--spill_directory=" + spill,
                             ps=1, workers=2, restarts=2, program=RECOMMENDER)
            line = 0
            for _ in range(3):
                _, line = run.wait_for(r"worker/0\].*saved", start=line + 1)
            run.kill("ps", 0)
            run.wait_for(r"worker/0\].*restored", seconds=60, start=line)
            self.assertEqual(run.finish(120), 0, run.output())
            found = re.search(r"(?m)^.*test AUC: (\d\.\d+)$", run.output())
            self.assertTrue(found, run.output())
            self.assertGreater(float(found.group(1)), 0.9, run.output())
            # The files of rows are unlinked, so no file remains, even if a ps is killed.
            self.assertEqual(os.listdir(spill), [])

    def write_ratings(self, folder):
        """Writes ratings by a rule: users of even numbers like films of even numbers, and so on."""
        with open(os.path.join(folder, "ratings.csv"), "w") as f:
            f.write("user,movie,rating,time\n")
            for user in range(30):
                for time in range(40):
                    film = (user * 7 + time * 11) % 50
                    f.write("%d,%d,%g,%d\n" % (user, film, 2 if (user + film) % 2 else 4.5, time))
        with open(os.path.join(folder, "movies.csv"), "w") as f:
            f.write("movie,year,genres,title\n")
            for film in range(50):
                f.write('%d,1999,Drama|Genre%d,"Film, the %dth"\n' % (film, film % 5, film))

    def test_least_squares(self):
        said = self.run_alone(EXAMPLES + "/least_squares")
        w = re.search(r"^w = .*?(-?[\d.e-]+),? +(-?[\d.e-]+)\D*$", said)
        self.assertTrue(w, said)
        self.assertAlmostEqual(float(w.group(1)), 3, delta=0.1)
        self.assertAlmostEqual(float(w.group(2)), -1, delta=0.1)

    def test_first_cluster(self):
        line = r"step 2\d\d\d: w = .*?([\d.e-]+),? +(-[\d.e-]+)"
        for said in (self.run_alone(EXAMPLES + "/first_cluster"),
                     self.run_on_cluster(program=EXAMPLES + "/first_cluster").output()):
            w = re.search(line, said)
            self.assertTrue(w, said)
            self.assertAlmostEqual(float(w.group(1)), 3, delta=0.1)
            self.assertAlmostEqual(float(w.group(2)), -1, delta=0.1)

    def test_first_cluster_is_what_its_page_shows(self):
        with open("docs/own-program.md") as f:
            shown = re.search(r"```cpp\n(.*?)```", f.read(), re.DOTALL).group(1)
        with open(EXAMPLES + "/first_cluster.cc") as f:
            self.assertTrue(f.read().endswith(shown))

    def test_cube_root(self):
        library = EXAMPLES + "/libcube_root_op.so"
        self.assertEqual(self.run_alone(EXAMPLES + "/cube_root", library), "x = 7.998\n")
        self.assertIn("cube is x", self.run_alone(PENSTOCK, "ops", "--load", library, "CubeRoot"))
        # A program that serves a task loads the libraries that PENSTOCK_LOAD names.
        run = self.start("--model=mlp", "--steps=1000000", ps=1, workers=1,
                         run_flags=["--load=" + library])
        run.wait_for(r"step +[1-9]")
        said = self.run_alone(EXAMPLES + "/cube_root", library, "grpc://" + run.address("ps"))
        self.assertEqual(said, "x = 7.998\n")

    def test_score(self):
        said = self.run_alone(EXAMPLES + "/score", SAVED_MODEL, "serving_default",
                              input="1,2,3\n-9,0,0\n")
        self.assertEqual(said, "5,7.5\n1,0\n")


if __name__ == "__main__":
    main()
