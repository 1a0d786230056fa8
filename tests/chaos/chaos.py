#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on a cluster of real processes while tasks are killed, frozen, terminated and
disconnected."""

import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]
from cluster import PENSTOCK, TRAIN  # noqa: E402
from hosts import Loopback, Namespaces  # noqa: E402
from training import Training  # noqa: E402

ABOUT = """Trains Fashion-MNIST on a cluster of real processes under faults that a seed decides.

After each fault the chief has to name the lost task, if it needs that task, and steps have to
continue when the fault is over. At the end the program asks all tasks to end at once. Then the
checkpoints have to be valid, and a training that continues from the newest one has to reach its
accuracy. The exit status is 0 only if all of this was so."""

STEP = r"step +([1-9]\d*)"
NAMED_SECONDS = {"kill": 10, "restart": 25, "freeze": 12, "cut": 12}
RECOVERY_SECONDS = 90
FAULTS = sorted(NAMED_SECONDS)


def parse_flags():
    parser = argparse.ArgumentParser(description=ABOUT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2, help="how long faults come")
    parser.add_argument("--count", type=int, default=0, help="end after so many faults; 0: by time")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--faults", default=",".join(FAULTS),
                        help="some of %(default)s. cut needs root: tasks then get network "
                             "namespaces of their own")
    parser.add_argument("--seconds", type=float, default=None,
                        help="how long each freeze or cut lasts; default: 0.3, 1.5 or 14, at "
                             "random. The chief has to name a task that is away for more than 12")
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sync", action="store_true", help="workers take each step together")
    flags = parser.parse_args()
    flags.faults = flags.faults.split(",")
    for fault in flags.faults:
        if fault not in FAULTS:
            parser.error("--faults: '%s' is none of %s" % (fault, ", ".join(FAULTS)))
    away = {"freeze", "cut"} & set(flags.faults)
    if flags.seconds is not None and not (away and flags.seconds > 0):
        parser.error("--seconds: needs freeze or cut in --faults, and more than 0 seconds")
    if min(flags.ps, flags.workers) < 1:
        parser.error("--ps and --workers: at least 1")
    if flags.seed is None:
        flags.seed = random.SystemRandom().randrange(1000000)
    return flags


class Chaos:
    def __init__(self, flags, hosts):
        self.flags = flags
        self.choose = random.Random(flags.seed)
        self.folder = tempfile.mkdtemp(prefix="chaos", dir=os.environ.get("TEST_TMPDIR"))
        self.hosts = hosts
        # Seconds from the fault until the chief named the lost task, and from the fault's end to a
        # step.
        self.named = {fault: [] for fault in FAULTS}
        self.recovered = {fault: [] for fault in FAULTS}
        program = ["--model=mlp", "--checkpoint_dir=" + self.folder, "--save_every_steps=200"]
        self.program_flags = program + (["--sync"] if flags.sync else [])
        self.training = Training(TRAIN, self.program_flags + ["--steps=100000000"], hosts, flags.ps,
                                 flags.workers)
        self.chief = self.training.tasks[flags.ps]

    def fail(self, what):
        self.training.failures.append(what)

    def await_step(self, since, what):
        """Waits until the chief has taken a step after `since`; returns the seconds it took."""
        found = self.training.find(STEP, since, until=since + RECOVERY_SECONDS,
                                   of=lambda task: task is self.chief)
        if found is None:
            self.fail("no step within %d s after %s" % (RECOVERY_SECONDS, what))
            return None
        return found[0] - since

    def needed_by_chief(self, task):
        return task is not self.chief and (task.job == "ps" or self.flags.sync)

    def run(self):
        self.await_step(time.monotonic(), "the start")
        end = time.monotonic() + 60 * self.flags.minutes
        done = 0
        while not self.training.failures:
            if time.monotonic() >= end or self.flags.count and done >= self.flags.count:
                break
            time.sleep(self.choose.uniform(0.2, 2))
            self.inject()
            done += 1
        if not self.training.failures:
            self.finish()
        return done

    def inject(self):
        faults = [f for f in self.flags.faults if f != "cut" or self.hosts.can_cut]
        fault, task = self.choose.choice(faults), self.choose.choice(self.training.tasks)
        away = self.choose.choice([0.3, 1.5, 14])
        if self.flags.seconds is not None:
            away = self.flags.seconds
        lasts = {"kill": self.choose.uniform(0, 2), "restart": self.choose.uniform(0, 1),
                 "freeze": away, "cut": away}[fault]
        what = "%s of %s for %.1f s" % (fault, task, lasts)
        print("chaos: " + what, flush=True)
        begun = time.monotonic()
        getattr(self, "begin_" + fault)(task)
        # The chief need not name a task whose fault ends before the task counts as lost.
        must_be_named = self.needed_by_chief(task) and (fault != "freeze" and fault != "cut"
                                                        or lasts > NAMED_SECONDS[fault])
        if must_be_named:
            found = self.training.find(
                re.escape(task.full_name), begun, until=begun + NAMED_SECONDS[fault],
                of=lambda other: other is self.chief)
            if found is None:
                self.fail("the chief did not name %s within %d s of a %s" %
                          (task.full_name, NAMED_SECONDS[fault], fault))
            else:
                self.named[fault].append(found[0] - begun)
        time.sleep(max(0, begun + lasts - time.monotonic()))
        over = time.monotonic()
        getattr(self, "end_" + fault)(task)
        taken = self.await_step(over, "a " + what)
        if taken is not None:
            self.recovered[fault].append(taken)
        self.restart_the_ended()

    def begin_kill(self, task):
        self.training.signal(task, signal.SIGKILL)
        task.process.wait()

    def end_kill(self, task):
        self.training.start(task)

    def begin_restart(self, task):
        self.training.signal(task, signal.SIGTERM)

    def end_restart(self, task):
        try:
            task.process.wait(40)
        except subprocess.TimeoutExpired:
            self.fail("%s runs on 40 s after SIGTERM" % task)
            self.begin_kill(task)
        self.training.start(task)

    def begin_freeze(self, task):
        self.training.signal(task, signal.SIGSTOP)

    def end_freeze(self, task):
        self.training.signal(task, signal.SIGCONT)

    def begin_cut(self, task):
        self.hosts.cut(task.host)

    def end_cut(self, task):
        self.hosts.mend(task.host)

    def restart_the_ended(self):
        """Restarts ended tasks, like a supervisor. An exit code below 128 means that a restart
        would not help."""
        for task in self.training.tasks:
            if self.training.running(task):
                continue
            if 0 < task.process.returncode < 128:
                self.fail("%s ended with code %d" % (task, task.process.returncode))
            self.training.start(task)

    def finish(self):
        self.training.end(40)
        listed = subprocess.run([PENSTOCK, "checkpoint", self.folder], capture_output=True,
                                text=True, timeout=60, check=False)
        newest = re.search(r"-(\d+)  <- training goes on", listed.stdout)
        if newest is None or "damaged" in listed.stdout:
            self.fail("checkpoints: " + listed.stdout + listed.stderr)
            return
        verified = subprocess.run(
            [PENSTOCK, "checkpoint", listed.stdout[:newest.end(1)].split("\n")[-1], "--verify"],
            capture_output=True, text=True, timeout=60, check=False)
        if verified.returncode != 0:
            self.fail("the newest checkpoint: " + verified.stderr)
        # If the checkpoint is good, a few more steps without faults reach the accuracy.
        last = subprocess.run([TRAIN, *[f for f in self.program_flags if f != "--sync"],
                               "--steps=%d" % (int(newest.group(1)) + 300)],
                              capture_output=True, text=True, timeout=300, check=False)
        accuracy = re.search(r"test accuracy: (0\.\d+)", last.stdout + last.stderr)
        if accuracy is None or float(accuracy.group(1)) < 0.75:
            self.fail("the training that went on: " + last.stdout[-500:] + last.stderr[-500:])
        else:
            print("chaos: step %s and 300 more: %s" % (newest.group(1), accuracy.group()))

    def report(self):
        print("\n%-8s  %6s  %6s  %25s  %25s" % ("fault", "times", "named",
                                                "named after s, med. worst",
                                                "step again after s, m. w."))
        for fault in FAULTS:
            cells = []
            for seconds in self.named[fault], self.recovered[fault]:
                cells.append("%.2f %.2f" % (statistics.median(seconds), max(seconds))
                             if seconds else "-")
            print("%-8s  %6d  %6d  %25s  %25s" % (fault, len(self.recovered[fault]),
                                                 len(self.named[fault]), *cells))


def main():
    os.environ.pop("TF_CONFIG", None)
    flags = parse_flags()
    missing = Namespaces.missing() if "cut" in flags.faults else "not asked for"
    if missing and "cut" in flags.faults:
        print("SKIPPED: cutting tasks off, because " + missing)
    hosts = (Loopback if missing else Namespaces)(flags.ps + flags.workers)
    chaos = None
    try:
        chaos = Chaos(flags, hosts)
        done = chaos.run()
    finally:
        if chaos is not None:
            chaos.training.kill()
        hosts.close()
    chaos.report()
    for failure in chaos.training.failures:
        print("FAILED: " + failure)
    if chaos.training.failures:
        print("The last lines:\n" + chaos.training.last_lines())
        print("Once more with the same faults: tools/chaos --seed=%d --minutes=%g%s%s" %
              (flags.seed, flags.minutes, " --sync" if flags.sync else "",
               "" if flags.seconds is None else " --seconds=%g" % flags.seconds))
    print("%d faults, seed %d: %s" % (done, flags.seed,
                                      "FAILED" if chaos.training.failures else "all survived"))
    return 1 if chaos.training.failures else 0


if __name__ == "__main__":
    sys.exit(main())
