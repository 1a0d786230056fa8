#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests language.py: openings of comments, replaced words, file names, and the budget."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import language  # noqa: E402


def findings(name, text):
    return list(language.check_file(pathlib.Path(name), text.split("\n")))


class OpeningsTest(unittest.TestCase):
    def lines(self, name, text):
        return [line for line, _ in findings(name, text)]

    def test_a_comment_opens_with_a_verb(self):
        self.assertEqual(self.lines("a.cc", "// Returns what is left.\nint Left();\n"), [])
        for word in (
                "What", "Whatever", "Of", "Who", "Whoever", "Where", "Which", "Whose"):
            self.assertEqual(self.lines("a.h", f"int x;\n  // {word} it is.\n"), [2], word)

    def test_a_comment_does_not_open_by_referring_back(self):
        for word in ("It", "Its", "They", "Those", "That", "But", "So", "Else", "Otherwise"):
            self.assertEqual(self.lines("a.h", f"int x;\n// {word} is.\n"), [2], word)
        for text in ("Items are sorted.", "Thatched.", "Returns it. It is new.", "These are."):
            self.assertEqual(self.lines("a.h", f"// {text}\n"), [], text)

    def test_only_the_first_line_of_a_paragraph_counts(self):
        self.assertEqual(self.lines("a.cc", "// Takes a name.\n// What is more, two.\n"), [])
        self.assertEqual(self.lines("a.cc", "// Takes a name.\n//\n// What is more, two.\n"), [3])

    def test_the_head_of_a_file_counts(self):
        head = "// SPDX-License-Identifier: Apache-2.0\n"
        self.assertEqual(self.lines("a.cc", head + "//\n// What it holds.\n"), [3])
        self.assertEqual(self.lines("a.cc", head + "// What it holds.\n"), [2])

    def test_words_that_begin_alike_are_others(self):
        text = "// Whether it is.\n\n// Offsets.\n\n// Where: an op.\n"
        self.assertEqual(self.lines("a.cc", text), [])

    def test_scripts_and_docstrings(self):
        self.assertEqual(self.lines("a.py", "#!/usr/bin/env python3\n# What it does.\n"), [2])
        self.assertEqual(self.lines("a.py", 'def f():\n    """Which one."""\n'), [2])
        self.assertEqual(self.lines("a.py", 'def f():\n    """Returns which one."""\n'), [])

    def test_code_is_not_a_comment(self):
        self.assertEqual(self.lines("a.cc", 'Say("// What"); Of(x);\n#if What\n'), [])
        self.assertEqual(self.lines("README.md", "What it is.\n"), [])


class WordsTest(unittest.TestCase):
    def test_replaced_words(self):
        for text in ("a Reference edge", "reference edges", "in another life", "what comes around"):
            found = findings("README.md", f"It is {text}.\n")
            self.assertEqual(len(found), 1, text)
            self.assertIn("the glossary's word is", found[0][1])

    def test_words_in_other_meanings(self):
        text = "// Lives as long as its step; a reference to an edge.\n"
        self.assertEqual(findings("a.cc", text), [])

    def test_file_names(self):
        for name in "string_util.cc", "utils.h", "common.h", "device_manager.h", "session_impl.cc":
            self.assertEqual(len(findings(name, "")), 1, name)
        for name in "utility.cc", "manage.h", "implicit.cc", "uncommon.cc":
            self.assertEqual(findings(name, ""), [], name)
        self.assertEqual(findings("proto/penstock/common.proto", ""), [])


class BudgetTest(unittest.TestCase):
    def compare(self, found, budget):
        found = {folder: [(pathlib.Path(folder, "a.cc"), n, "found") for n in range(count)]
                 for folder, count in found.items()}
        budget = {folder: (count, 1) for folder, count in budget.items()}
        return [what for _, _, what in language.compare(found, budget)]

    def test_as_many_as_allowed(self):
        self.assertEqual(self.compare({"a": 2, "b": 1}, {"a": 2, "b": 1}), [])

    def test_more_shows_all_of_the_folder(self):
        said = self.compare({"a": 3}, {"a": 2})
        self.assertIn("a has 3 findings of language, 2 are left over", said[0])
        self.assertEqual(said[1:], ["found"] * 3)

    def test_a_folder_without_a_budget(self):
        self.assertEqual(self.compare({"a": 1}, {}), ["found"])

    def test_fewer_asks_to_lower_the_number(self):
        self.assertEqual(self.compare({"a": 1}, {"a": 2}),
                         ["a has fewer than 2 findings: lower its number to 1"])
        self.assertEqual(self.compare({}, {"a": 2}),
                         ["a has fewer than 2 findings: remove the line"])

    def test_check_reads_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools/build").mkdir(parents=True)
            (root / language.BUDGET).write_text("# folder findings\ncore 1\n", encoding="utf-8")
            (root / "core").mkdir()
            code, more = pathlib.Path("core/a.cc"), pathlib.Path("core/b.cc")
            (root / code).write_text("// What it is.\n", encoding="utf-8")
            (root / more).write_text("// Which it is.\n", encoding="utf-8")
            self.assertEqual(list(language.check(root, [code])), [])
            self.assertEqual(len(list(language.check(root, [code, more]))), 3)
            self.assertEqual(language.table(root, [code, more]), language.HEAD + "core 2\n")


if __name__ == "__main__":
    unittest.main()
