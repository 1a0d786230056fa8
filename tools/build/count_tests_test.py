#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests count_tests.py: the lines about left-out parts and repeated tests."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import count_tests  # noqa: E402


def result(label, log):
    return {"id": {"testResult": {"label": label, "shard": 1, "run": 1}},
            "testResult": {"testActionOutput": [{"name": "test.log", "uri": "file://" + log}]}}


class CountTestsTest(unittest.TestCase):
    def printed(self, logs):
        with tempfile.TemporaryDirectory() as folder:
            events = []
            for label, text in logs:
                path = os.path.join(folder, "%d log" % len(events))
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                events.append(result(label, path.replace(" ", "%20")))
            events.append(result("//gone:test", os.path.join(folder, "none")))
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                count_tests.print_skipped(events)
            return out.getvalue().splitlines()

    def test_names_what_tests_left_out_and_which_did(self):
        self.assertEqual(
            self.printed([("//b:vm_test", "working\nSKIPPED: no qemu\nSKIPPED: no qemu\n"),
                          ("//a:test", "[  SKIPPED ] Case\nnot SKIPPED: here\n")]),
            ["SKIPPED: no qemu (//b:vm_test)"])

    def test_names_each_test(self):
        self.assertEqual(
            self.printed([("//b:test", "SKIPPED: no user"), ("//a:test", "SKIPPED: no user")]),
            ["SKIPPED: no user (//a:test)", "SKIPPED: no user (//b:test)"])

    def test_names_the_cases_that_failed_at_first(self):
        def attempt(number, status, xml):
            path = os.path.join(folder, "%d.xml" % number)
            with open(path, "w", encoding="utf-8") as file:
                file.write(xml)
            return {"id": {"testResult": {"label": "//a:test", "attempt": number}},
                    "testResult": {"status": status, "testActionOutput":
                                   [{"name": "test.xml", "uri": "file://" + path}]}}
        with tempfile.TemporaryDirectory() as folder:
            failed = "<s><testcase name='good'/><testcase name='bad'><failure/></testcase></s>"
            passed = "<s><testcase name='good'/><testcase name='bad'/></s>"
            events = [attempt(1, "FAILED", failed), attempt(2, "PASSED", passed),
                      {"id": {"testSummary": {"label": "//a:test"}},
                       "testSummary": {"overallStatus": "FLAKY"}}]
            self.assertEqual(list(count_tests.flaky(events)), [("//a:test", ["bad"])])
            self.assertEqual(count_tests.count(events), (2, 0, []))


if __name__ == "__main__":
    unittest.main()
