# SPDX-License-Identifier: Apache-2.0
"""Checks the language of comments, documents and file names (docs/glossary.md). Used by tools/tidy.

Four rules: a comment does not begin with "What ...", "Of ..." and similar words, nor with a word
that refers to a sentence before it ("It ...", "Those ...", "But ..."); words that the glossary
replaced are not used; no file is named util, common, manager or impl.

language_budget.txt has the number of remaining findings that each folder may have. The number may
only fall: tools/tidy fails if there are more findings, and also if there are fewer, until the
number is lowered.
"""

import pathlib
import re

BUDGET = "tools/build/language_budget.txt"
HEAD = """\
# Number of violations of the language rules (language.py) in each folder. Numbers must not rise:
# lower them when you correct a comment. A folder that is not listed has no violations.
"""

# One of these words before a colon is allowed, because it is a name, such as the op Where.
OPENING = re.compile(r"(Whatever|What|Of|Whoever|Who|Where|Which|Whose)[ ,]")
OPENING_WHY = ("a comment opens with \"{}\": begin with a verb (\"Returns ...\"), a noun, or "
               "if/when (docs/glossary.md)")
REFERRING = re.compile(
    r"(It|Its|They|Their|Them|Those|That|And|Or|But|So|Else|Otherwise|Likewise|Ditto)[ ,]")
REFERRING_WHY = ("a comment opens with \"{}\", which refers to a sentence before it: begin with "
                 "the noun that is meant (docs/glossary.md)")
OPENINGS = ((OPENING, OPENING_WHY), (REFERRING, REFERRING_WHY))
# (words not to use any more, the words to use instead)
REPLACED = (
    (r"reference edges?", "ref edge"),
    (r"(?:life|lives) (?:of the (?:addressed )?task|that the caller|it relies)|other life|"
     r"another life|life the caller", "incarnation"),
    (r"what (?:goes|comes) a?round", "loop-carried value, or iteration"),
)
REPLACED = tuple((re.compile(rf"\b(?:{words})\b", re.IGNORECASE), now) for words, now in REPLACED)
FILE_NAME = re.compile(r"(?:^|_)(utils?|commons?|managers?|mgr|impl|helpers?|misc)(?:_|$)")
# (path, why it may have this name)
NAMED = {
    "proto/penstock/common.proto": "messages of two protocols, named before the rule; the name of "
                                   "a proto file is part of its descriptors",
    "core/compiler/passes/common_subexpressions.cc": "the field's term",
    "core/compiler/passes/common_subexpressions_test.cc": "the field's term",
}

COMMENT = {True: re.compile(r"^\s*///? ?(.*)$"), False: re.compile(r"^\s*#(?!!) ?(.*)$")}
DOCSTRING = re.compile(r'^\s*r?"""(\w.*)$')
C_LIKE = (".cc", ".h", ".cu", ".cuh", ".proto")


def openings(lines, c_like):
    """Yields (line, first words) for each comment, and for each paragraph of a comment."""
    inside = False
    for number, line in enumerate(lines, 1):
        comment = COMMENT[c_like].match(line)
        text = comment[1].strip() if comment else ""
        docstring = None if c_like or comment else DOCSTRING.match(line)
        if docstring:
            yield number, docstring[1]
        elif text and not inside:
            yield number, text
        # The text after the licence line starts a new comment.
        inside = bool(text) and not text.startswith("SPDX-")


def check_file(path, lines):
    """Yields (line, message) for each finding in a file."""
    if path.suffix != ".md":
        for number, text in openings(lines, path.suffix in C_LIKE):
            for words, why in OPENINGS:
                word = words.match(text)
                if word:
                    yield number, why.format(word[1])
    for number, line in enumerate(lines, 1):
        for words, now in REPLACED:
            for found in words.finditer(line):
                yield number, f'"{found[0]}": the glossary\'s word is {now} (docs/glossary.md)'
    bad = FILE_NAME.search(path.stem)
    if bad and path.as_posix() not in NAMED:
        yield 1, f'a file named "{bad[1]}": name it after what it holds'


def read_budget(root):
    """Returns {folder: (number of findings allowed, line of the table)}."""
    budget = {}
    for number, line in enumerate((root / BUDGET).read_text(encoding="utf-8").split("\n"), 1):
        if line and line[0] != "#":
            folder, allowed = line.split()
            budget[folder] = (int(allowed), number)
    return budget


def compare(found, budget):
    """Yields (path, line, message) for each folder whose findings, `found`, differ from its
    budget."""
    for folder in sorted(set(found) | set(budget)):
        allowed, line = budget.get(folder, (0, 1))
        findings = found.get(folder, [])
        if len(findings) > allowed:
            if allowed:
                yield (pathlib.Path(BUDGET), line, f"{folder} has {len(findings)} findings of "
                       f"language, {allowed} are left over from before the rule: mend the new ones")
            yield from findings
        elif len(findings) < allowed:
            now = f"lower its number to {len(findings)}" if findings else "remove the line"
            yield pathlib.Path(BUDGET), line, f"{folder} has fewer than {allowed} findings: {now}"


def findings_by_folder(root, paths):
    """Returns the findings in these files and in all documents, by folder."""
    documents = [path.relative_to(root) for path in root.rglob("*.md")
                 if not any(part[0] == "." or part.startswith("bazel-")
                            for part in path.relative_to(root).parts)]
    found = {}
    for path in sorted({*paths, *documents}):
        # The rules and the glossary contain the forbidden words.
        if path.as_posix() in ("docs/glossary.md",) or path.stem.startswith("language"):
            continue
        lines = (root / path).read_text(encoding="utf-8").split("\n")
        for number, text in check_file(path, lines):
            found.setdefault(path.parent.as_posix(), []).append((path, number, text))
    return found


def table(root, paths):
    """Returns the text of a budget that matches the current files."""
    found = findings_by_folder(root, paths)
    return HEAD + "".join(f"{folder} {len(found[folder])}\n" for folder in sorted(found))


def check(root, paths):
    """Yields (path, line, message) for these files and all documents."""
    yield from compare(findings_by_folder(root, paths), read_budget(root))
