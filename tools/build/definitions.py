# SPDX-License-Identifier: Apache-2.0
"""Checks that each class name is defined once per namespace. If two classes of one name are linked
into one program, the linker keeps only one of their destructors, which is wrong for the other
class."""

import re

NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{")
END = re.compile(r"^\}  // namespace")
CLASS = re.compile(r"^(?:class|struct)(?: alignas\(\d+\)| ABSL_\w+(?:\([^)]*\))?)? (\w+)(?: final)?"
                   r"(?: :| *\{)")


def classes(lines):
    """Yields (name with its namespaces, line) for each class that other files can see."""
    namespaces = []
    for number, line in enumerate(lines, 1):
        opened = NAMESPACE.match(line)
        defined = CLASS.match(line)
        if opened:
            namespaces.append(opened[1])
        elif END.match(line) and namespaces:
            namespaces.pop()
        elif defined and "" not in namespaces:
            yield "::".join([*namespaces, defined[1]]), number


def check(root, paths):
    """Yields (path, line, message) for each class that an earlier file also defines."""
    first = {}
    for path in paths:
        if path.suffix not in (".h", ".cc"):
            continue
        if path.name.endswith("_test.cc") or "tests" in path.parts:
            continue
        lines = (root / path).read_text(encoding="utf-8").split("\n")
        for name, number in classes(lines):
            other = first.setdefault(name, path)
            if other != path:
                yield path, number, f"{name} is also defined in {other}: give one another name"
