# SPDX-License-Identifier: Apache-2.0
"""The main part of tools/op_agreement: reads the samples, tries the ops, prints the differences."""

import fnmatch
import os
import subprocess
import sys
import tempfile

import differences
import report
import trial


def _ops(samples):
    """Returns those ops of a file of samples that both sides have."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import samples as reader  # imported late, because TensorFlow takes seconds to start
    return sorted(reader.read_samples(samples))


# A run without a terminal prints progress once per this many ops, so that the log of a test is
# short but shows where a run hangs.
OPS_PER_LINE = 200
# A failed run prints this many unexplained differences.
DIFFERENCES_MAX = 200


def _say(op, left):
    if sys.stderr.isatty():
        print("\r\033[K%s (%d left)" % (op, left), end="", file=sys.stderr, flush=True)
    elif left % OPS_PER_LINE == 0:
        print("%s (%d left)" % (op, left), file=sys.stderr, flush=True)


def _try_all(arguments, penstock, exporter, found):
    with tempfile.TemporaryDirectory() as folder:
        samples = arguments.samples or os.path.join(folder, "samples")
        if exporter is not None:
            subprocess.run([exporter, samples], check=True)
        wanted = [op for op in _ops(samples)
                  if any(fnmatch.fnmatchcase(op, pattern) for pattern in arguments.ops)]
        tries = trial.Trial(penstock, samples, arguments.quick, found.add, _say)
        try:
            tries.run(wanted)
        finally:
            tries.close()


def run(arguments, penstock, exporter):
    """Returns 0 if there are results and all of them agree or have explained differences, 1
    otherwise."""
    known = differences.read(os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                          "DIFFERENCES.md"))
    with open(arguments.unexplained or os.devnull, "w", encoding="utf-8") as unexplained:
        found = report.Report(known, unexplained)
        _try_all(arguments, penstock, exporter, found)
    if arguments.matrix:
        found.write_matrix(arguments.matrix)
    if arguments.ops == ["*"] and not arguments.quick:
        for row in known:
            if not row.used:
                print("DIFFERENCES.md: no case for %s: %s" % (row.ops, row.reason))
    print("\n".join([*found.summary(), *found.failures(DIFFERENCES_MAX)]), flush=True)
    return 1 if found.unexplained or not found.cells else 0
