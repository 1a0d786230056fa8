#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds targets, and shows how many files have to be compiled and how long that will take.

    tools/build/build_with_estimate.py //tools/penstock //client/examples:fashion_mnist

The first estimate comes after the first twenty files; later ones follow the speed of the last
minutes. A terminal shows it as one line that changes; elsewhere a line is printed each minute.
The estimate counts the object files that do not exist yet. Object files of an earlier version are
not counted, even if they have to be compiled again. The exit status is Bazel's.
"""

import os
import re
import subprocess
import sys
import time

FIRST = 20  # number of files until the first estimate
WINDOW_SECONDS = 180
POLL_SECONDS = 0.5


def say(text):
    print(text, flush=True)


def objects_to_compile(targets):
    """Returns the paths of the targets' object files that do not exist yet."""
    query = 'mnemonic("CppCompile", deps(%s))' % " + ".join(targets)
    asked = subprocess.run(["bazel", "aquery", "--noshow_progress", "--include_aspects", query],
                           stdout=subprocess.PIPE, text=True, check=False)
    if asked.returncode:
        sys.exit(asked.returncode)
    root = subprocess.run(["bazel", "info", "--noshow_progress", "execution_root"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    outputs = re.findall(r"(?m)^  Outputs: \[(.*)\]$", asked.stdout)
    objects = {name for line in outputs for name in line.split(", ") if name.endswith(".o")}
    return [path for path in (os.path.join(root, name) for name in sorted(objects))
            if not os.path.exists(path)]


def seconds_left(samples, total):
    """Returns the time until `total` files are done, based on the speed of the last minutes.

    `samples` are pairs of a time in seconds and the number of files done, oldest first. Returns
    None if they are not enough for an estimate.
    """
    now, done = samples[-1]
    if done < min(FIRST, total):
        return None
    begin, before = next(sample for sample in samples if sample[0] >= now - WINDOW_SECONDS)
    if done - before < FIRST:  # too few files: use the speed since the start
        begin, before = samples[0]
    if done == before:
        return None
    return (total - done) * (now - begin) / (done - before)


def describe(seconds):
    if seconds < 90:
        return "%d seconds" % max(1, round(seconds))
    return "%d minutes" % round(seconds / 60)


class Display:
    """The line that shows the progress of the build."""

    def __init__(self, total):
        self.total = total
        self.terminal = sys.stdout.isatty()
        self.next_line = 0.0
        self.estimated = False

    def show(self, now, done, left):
        text = "Compiled %d of %d files" % (done, self.total)
        if left is not None:
            text += "; about %s left" % describe(left)
        if self.terminal:
            print("\r\033[K" + text, end="", flush=True)
        elif left is not None and (now >= self.next_line or not self.estimated):
            say(text)
            self.next_line = now + 60
        self.estimated = self.estimated or left is not None

    def end(self):
        if self.terminal:
            print("\r\033[K", end="", flush=True)


def watch(build, objects):
    """Shows how many of `objects` exist, until the process `build` has ended."""
    display = Display(len(objects))
    waiting = set(objects)
    samples = [(time.monotonic(), 0)]
    while True:
        try:
            build.wait(POLL_SECONDS)
            display.end()
            return
        except subprocess.TimeoutExpired:
            pass
        waiting = {path for path in waiting if not os.path.exists(path)}
        now = time.monotonic()
        samples.append((now, len(objects) - len(waiting)))
        display.show(now, samples[-1][1], seconds_left(samples, len(objects)))


def main(targets):
    if not targets:
        sys.exit(__doc__)
    objects = objects_to_compile(targets)
    if not objects:
        return subprocess.run(["bazel", "build", *targets], check=False).returncode
    say("Compiling %d files on %d cores. An estimate of the time comes after the first %d." %
        (len(objects), len(os.sched_getaffinity(0)), FIRST))
    begin = time.monotonic()
    with subprocess.Popen(["bazel", "build", "--noshow_progress", *targets]) as build:
        try:
            watch(build, objects)
        except KeyboardInterrupt:  # Bazel gets the signal too, and reports it
            build.wait()
    if build.returncode == 0:
        say("Built in %s." % describe(time.monotonic() - begin))
    return build.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
