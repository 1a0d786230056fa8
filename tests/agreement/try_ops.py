# SPDX-License-Identifier: Apache-2.0
"""Runs calls on both sides and prints the result of each as a line of JSON.

    try_ops.py SAMPLES < orders

An order is a line of JSON: {"ops": [...], "skip": [...], "quick": false, "target": "grpc://..."}.
Each order runs in a child process, {"child": PID}, whose end is also printed. If the child crashes,
the case that has begun but not ended has crashed it; the next order can skip this case.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import calls  # noqa: E402
import compare  # noqa: E402
import samples  # noqa: E402
import variations  # noqa: E402

v1 = tf.compat.v1

# These types get all variations; other types get only the variations that depend on the type.
THOROUGH = {"float32", "int32", "string", "any"}
BRIEF = ("sample", "special", "random", "large", "empty", "zero")


def verdict(op, ours, theirs, fetched):
    """Returns the verdict, a word, and its details."""
    (our_values, our_error), (their_values, their_error) = ours, theirs
    if our_error and their_error:
        return "both fail", ""
    if our_error:
        return "ours fails", "%s: %s" % (type(our_error).__name__, our_error.message[:300])
    if their_error:
        return "theirs fails", "%s: %s" % (type(their_error).__name__, their_error.message[:300])
    text = compare.difference(op, our_values, their_values) if fetched else ""
    return ("differs", text) if text else ("agrees", "")


def lacks_kernel(error):
    """Returns whether the error says that TensorFlow or Penstock has no kernel for the types, or
    that Penstock's op does not allow them."""
    texts = ("No OpKernel was registered", "has no kernel for", "must be one of {")
    return error is not None and any(text in error.message for text in texts)


class Trial:
    def __init__(self, orders, by_op, tell):
        self.skip, self.quick = set(orders["skip"]), orders["quick"]
        self.target = orders["target"]
        self.by_op, self.tell = by_op, tell

    def op(self, name):
        seen = set()
        for sample in self.by_op[name]:
            for label, other in self.nodes(sample, name):
                types = other.types()
                key = (sample.label, types, label)
                if key not in seen:
                    seen.add(key)
                    self.node(other, types, "%s %s" % (sample.label, label))

    def nodes(self, sample, name):
        """Yields a sample with all variations of attributes and types; the first sample of an op
        gets the most."""
        yield "", sample
        first = sample is self.by_op[name][0]
        if self.quick or not (first or self.types_of(sample) <= THOROUGH):
            return
        yield from ((label + ":", s) for label, s in variations.attr_variations(sample))
        if first:
            known = {s.types() for s in self.by_op[name]}
            yield from (("cast", s) for s in variations.type_variations(sample)
                        if s.types() not in known)

    @staticmethod
    def types_of(sample):
        return {part.split("=")[-1] for part in sample.types().split()}

    def node(self, sample, types, label):
        case = "%s|%s|%s" % (sample.op, types, label)
        if case in self.skip:
            return
        self.tell({"begin": case})
        try:
            call = calls.Call(sample)
        except calls.NotBuilt as error:
            self.tell({"case": case, "verdict": "not built", "detail": str(error)[:200]})
            return
        sides = calls.Sides(call, self.target)
        try:
            self.inputs(call, sides, case, label)
        finally:
            sides.close()

    def inputs(self, call, sides, case, label):
        attr_varied = label.endswith(":")
        thorough = self.types_of(call.sample) <= THOROUGH
        for name, inputs in variations.input_variations(call.sample):
            brief = name.split()[0] in BRIEF
            if (attr_varied or self.quick) and name not in ("sample", "special all", "large"):
                continue
            if not thorough and not brief:
                continue
            full = case + " " + name
            if full in self.skip:
                continue
            self.tell({"begin": full})
            if call.sample.definition.is_stateful and name != "sample":
                sides.close()  # removes the state of the previous call
                sides.__init__(call, self.target)
            ours, theirs = sides.run(inputs)
            word, detail = verdict(call.sample.op, ours, theirs, call.fetched)
            if lacks_kernel(ours[1]) or lacks_kernel(theirs[1]):
                who = ("both lack" if ours[1] and theirs[1] else
                       "ours lacks" if ours[1] else "theirs lacks")
                self.tell({"case": full, "verdict": who, "detail": detail})
                return
            if isinstance(ours[1], tf.errors.UnavailableError):
                self.tell({"lost": full})
                os._exit(3)  # exits without closing sessions, which would wait for the server
            self.tell({"case": full, "verdict": word, "detail": detail})


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # sends other output to stderr, so that it does not mix with the answers

    def tell(what):
        out.write(json.dumps(what) + "\n")
        out.flush()

    v1.disable_eager_execution()
    by_op = samples.read_samples(sys.argv[1])
    # TensorFlow takes long to start, so each order runs in a fork of this process.
    for line in sys.stdin:
        orders = json.loads(line)
        child = os.fork()
        if child == 0:
            trial = Trial(orders, by_op, tell)
            for name in orders["ops"]:
                if name in by_op:
                    trial.op(name)
                tell({"done": name})
            os._exit(0)
        tell({"child": child})
        _, status = os.waitpid(child, 0)
        tell({"end": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    main()
