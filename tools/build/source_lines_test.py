#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests source_lines.py: functions that it must report, and functions that it must not."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import source_lines  # noqa: E402

HEADER = """
// Output InAComment(Program& program);
class Layer {
 public:
  Output operator()(Output x) const;
  Output handle() const { return handle_; }
  Outputs Parts(const Outputs& all,
                int64_t count) const;
  static Dataset Range(GraphBuilder& graph, Line line = {});

 private:
  Output Hidden(Output x);
  Output handle_;
};
Output Loss(Output labels, Output logits);
Output Located(const LocatedOutput& labels);
Output Last(Program& program, SourceLine line = {__builtin_FILE(), __builtin_LINE()});
std::vector<VariableGradient> Clip(const std::vector<VariableGradient>& gradients);
int Count(Output x);
"""


class SourceLinesTest(unittest.TestCase):
    def test_functions_without_a_line(self):
        found = source_lines.check("client/some/layer.h", HEADER)
        self.assertEqual([(number, text.split()[0]) for number, text in found],
                         [(5, "operator()"), (7, "Parts"), (15, "Loss"), (18, "Clip")])

    def test_other_files(self):
        self.assertEqual(source_lines.check("core/some/layer.h", HEADER), [])
        self.assertEqual(source_lines.check("client/some/layer.cc", HEADER), [])
        self.assertEqual(source_lines.check("client/examples/layer.h", HEADER), [])

    def test_exempt_functions(self):
        self.assertEqual(source_lines.check("client/variable.h", "Output Read(int x);\n"), [])


if __name__ == "__main__":
    unittest.main()
