#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests doc_names.py on a small tree: names that it must report, and names that it must not."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import doc_names  # noqa: E402

FILES = {
    "core/op/BUILD.bazel": 'penstock_library(name = "op", srcs = ["op_def.cc"])\n',
    "core/op/op_def.h": "struct OpDef {\n  bool is_constant;  // not: gone_name\n"
                        "  // GoneType::Get\n};\nconstexpr int kMaxOps = 7;\n",
    "core/op/op_def.cc": '#include "core/op/op_def.h"\n',
    "tools/penstock/main.cc": 'app.add_subcommand("status", "..."); '
                              'add_option("--status_port", port);\n',
    "tools/run": "#!/bin/sh\n",
}


class DocNamesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)
        os.chmod(self.root / "tools/run", 0o755)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self, text, name="core/op/README.md", foreign=()):
        self.write(name, text)
        return [(path.as_posix(), line, what) for path, line, what
                in doc_names.check(self.root, foreign)]

    def assert_missing(self, text, *names, **kwargs):
        found = self.check(text, **kwargs)
        self.assertCountEqual([what.split(";")[0] for _, _, what in found],
                              ["there is no " + name for name in names])

    def test_names_that_exist_are_left_alone(self):
        self.assert_missing(
            "Start at op_def.h and core/op/op_def.cc, `op/op_def` or `core/op/op_def.{h,cc}`.\n"
            "`OpDef::is_constant`, `kMaxOps`, `//core/op`, `//core/op:op`, `//core/op/...`,\n"
            "`bazel-bin/core/op/op`, `tools/run --status_port=1`, `OpDef/OpDef`.\n"
            "```sh\n$HOME/bin/penstock status grpc://host:2222 --status_port=8000\n```\n"
            "See https://example.com/no/such/file.cc and /etc/no_such.txt.\n")

    def test_files_and_folders(self):
        self.assert_missing("Read gone.h.\n", "gone.h")
        self.assert_missing("Read `core/gone/`, `op_def.{h,py}`.\n", "op_def.py", "core/gone/")
        self.assert_missing("`core/graph/builder` is two files.\n", "core/graph/builder")

    def test_a_file_elsewhere_is_not_found_by_its_name(self):
        self.write("client/session.h", "")
        self.assert_missing("Read session.h.\n", "session.h")
        self.assert_missing("Read session.h.\n", "session.h", name="core/op/README.md")

    def test_labels(self):
        self.assert_missing("`//core/op:gone`, `//core/gone`, `//core/gone/...`\n",
                            "//core/op:gone", "//core/gone", "//core/gone/...")

    def test_flags_and_commands(self):
        self.assert_missing("`penstock status --gone_port=1`\n", "--gone_port")
        self.assert_missing("```\npenstock gone grpc://host:2222\n```\n", "penstock gone")
        self.assert_missing("Plain text may say --anything and penstock gone.\n")

    def test_cpp_names_in_comments_do_not_count(self):
        self.assert_missing("`GoneType::Get`, `gone_name`, `kGoneMax`, `OpDef::Gone`\n",
                            "GoneType::Get", "OpDef::Gone", "gone_name", "kGoneMax")

    def test_foreign_names_need_a_row_and_a_row_needs_a_name(self):
        foreign = (("core/op/README.md", r"NAME_test\.cc", "to be written"),)
        self.assertEqual(self.check("Write NAME_test.cc.\n", foreign=foreign), [])
        found = self.check("Nothing.\n", foreign=foreign)
        self.assertEqual(len(found), 1)
        self.assertIn("no document needs", found[0][2])

    def test_the_line_is_told(self):
        self.assertEqual([line for _, line, _ in self.check("One.\n\nRead gone.h.\n")], [3])


if __name__ == "__main__":
    unittest.main()
