#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of header_budget.py."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import header_budget  # noqa: E402


class HeaderBudgetTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(os.path.realpath(folder.name))
        self.write(header_budget.PRECOMPILED[0], '#include "core/free.h"\n')
        self.write("core/free.h", "\n" * 9000)
        self.budget("")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def budget(self, text):
        self.write(header_budget.BUDGET, "# table\n" + text)

    def findings(self, *names):
        return [(str(path), line, text.split(" lines")[0]) for path, line, text in
                header_budget.check(self.root, [pathlib.Path(name) for name in names])]

    def test_lines_of_all_that_is_included_count_once(self):
        self.write("core/a.h", '#include "core/b.h"\n  # include "c.h"\n' + "\n" * 3000)
        self.write("core/b.h", '#include "core/c.h"\n' + "\n" * 3000)
        self.write("core/c.h", '#include "core/a.h"\n' + "\n" * 1995)
        self.assertEqual(self.findings("core/a.h"), [])
        self.write("core/c.h", "\n" * 1998)
        self.assertEqual(self.findings("core/a.h"), [("core/a.h", 1, "8001")])

    def test_headers_that_are_precompiled_are_free(self):
        self.write("core/a.h", '#include "core/free.h"\n')
        self.assertEqual(self.findings("core/a.h"), [])

    def test_the_table_allows_more(self):
        self.write("core/a.h", "\n" * 9000)
        self.budget("core/a.h 9000\n")
        self.assertEqual(self.findings("core/a.h"), [])
        self.budget("core/a.h 8999\n")
        self.assertEqual(self.findings("core/a.h"), [("core/a.h", 1, "9000")])

    def test_rows_of_headers_that_are_gone(self):
        self.budget("core/a.h 9000\n")
        self.assertEqual(self.findings(),
                         [(header_budget.BUDGET, 2, "there is no core/a.h")])

    def test_headers_for_tests_may_cost_more(self):
        self.write("core/testing/a.h", "\n" * 9000)
        self.assertEqual(self.findings("core/testing/a.h"), [])


if __name__ == "__main__":
    unittest.main()
