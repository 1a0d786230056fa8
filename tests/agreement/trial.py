# SPDX-License-Identifier: Apache-2.0
"""Tries ops in processes that may die, on a Penstock server that may die as well."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.realpath(__file__))
# A case that takes longer has hung: the steps of each side have timeouts (calls.py).
CASE_SECONDS = 150
START_SECONDS = 300


class Server:
    """`penstock server`, of one task."""

    def __init__(self, program):
        environment = dict(os.environ, TF_CONFIG=json.dumps(
            {"cluster": {"local": {"0": "127.0.0.1:0"}}, "task": {"type": "local", "index": 0}}))
        self.process = subprocess.Popen([program, "server", "--until_stdin_ends"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.STDOUT, env=environment)
        self.target = None
        for line in self.process.stdout:
            found = re.search(r"grpc://[^\s,]+", line)
            if found:
                self.target = found.group()
                break
        if self.target is None:
            raise RuntimeError("penstock server does not serve")
        self.last_words = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self.last_words = self.last_words[-50:] + [line]

    def alive(self):
        return self.process.poll() is None

    def wait(self):
        """Waits up to 10 s for the end of a server that seems to be dying."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Tryer:
    """The process of try_ops.py."""

    def __init__(self, samples):
        self.stderr = tempfile.TemporaryFile(mode="w+", errors="replace")
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "try_ops.py"), samples],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=self.stderr)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put({"end": 1})

    def answers(self, orders):
        """Sends the orders; yields the answers until the orders are carried out, or the child ends.
        Kills a child that gives no answer for CASE_SECONDS."""
        self.process.stdin.write(json.dumps(orders) + "\n")
        self.process.stdin.flush()
        child, seconds = None, START_SECONDS
        while True:
            try:
                answer = self.lines.get(timeout=seconds)
            except queue.Empty:
                if child is None:
                    raise
                os.kill(child, signal.SIGKILL)
                continue
            if "end" in answer:
                self._check(answer["end"])
                return
            child, seconds = answer.get("child", child), CASE_SECONDS
            yield answer

    def _check(self, status):
        """Raises an error for status 1, an exception in try_ops.py itself. A signal (below 0) only
        shows that TensorFlow crashed or that the child was killed."""
        if status == 1:
            self.stderr.seek(0)
            raise RuntimeError("try_ops.py failed:\n" + self.stderr.read()[-4000:])

    def close(self):
        self.process.kill()
        self.process.wait()
        self.stderr.close()


class Trial:
    """Tries all cases of ops. Calls add(case, verdict, detail) for each case, and say(op, left)
    after each op, with the number of ops that are left."""

    def __init__(self, program, samples, quick, add, say):
        self.program, self.quick, self.add, self.say = program, quick, add, say
        self.tryer, self.server = Tryer(samples), Server(program)
        self.tried = []  # cases of the current op that have ended

    def close(self):
        self.tryer.close()
        self.server.close()

    def run(self, ops):
        left = list(ops)
        while left:
            before = len(left), len(self.tried)
            begun = self._carry_out(left)
            progressed = before != (len(left), len(self.tried))
            if begun is None and progressed and self.tried and not self.server.alive():
                begun = self.tried[-1]  # Penstock's server died late, because of an earlier case
            if begun is not None:
                self._explain(begun)
            elif left and not progressed:
                raise RuntimeError("try_ops.py ended between two cases of %s" % left[0])
            # Without a case: TensorFlow's process died late, because an earlier case had
            # overwritten its memory. Go on.

    def _carry_out(self, left):
        """Removes the ops that are done from `left`. Returns the case during which a process died,
        or None."""
        begun = None
        for answer in self.tryer.answers({"ops": left, "skip": self.tried, "quick": self.quick,
                                          "target": self.server.target}):
            if "begin" in answer:
                begun = answer["begin"]
            elif "case" in answer:
                begun = None
                self.tried.append(answer["case"])
                self.add(answer["case"], answer["verdict"], answer["detail"])
            elif "lost" in answer:
                begun = answer["lost"]
                self.server.wait()
            elif "done" in answer:
                begun, self.tried = None, []
                left.remove(answer["done"])
                self.say(answer["done"], len(left))
        return begun

    def _explain(self, case):
        """Records that the case crashed our server or TensorFlow's process; starts a new server."""
        ours = not self.server.alive()
        detail = " ".join(self.server.last_words)[-300:] if ours else "the process ended or hung"
        self.add(case, "ours crashes" if ours else "theirs crashes", detail)
        self.tried.append(case)
        self.server.close()
        self.server = Server(self.program)
