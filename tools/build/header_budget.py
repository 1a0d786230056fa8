# SPDX-License-Identifier: Apache-2.0
"""Keeps public headers light: how many lines a compiler reads for one. Used by tools/tidy.

The lines of a header are those of all files that it includes, directly or through other headers,
also of the system. Each file counts once, and #if is ignored, because no compiler runs. Headers
that tools/build/pch precompiles do not count, because they cost almost no time.

A header may have MOST lines, or the number that header_budget.txt has for it: headers that include
headers of gRPC, protobuf and Eigen need more. Headers for tests are not checked.
"""

import pathlib
import re

BUDGET = "tools/build/header_budget.txt"
MOST = 8000
PRECOMPILED = ("tools/build/pch/library_headers.h",)
SYSTEM = ("/usr/include/c++/12", "/usr/include/x86_64-linux-gnu/c++/12",
          "/usr/lib/gcc/x86_64-linux-gnu/12/include", "/usr/include/x86_64-linux-gnu",
          "/usr/include")
TEST = re.compile(r"(^|/)(testing|tests|pch)/|_test\.h$")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


class Lines:
    """Counts lines; reads each file once."""

    def __init__(self, root):
        self.root, self.files = root, {}

    def _find(self, name, folder, quoted):
        for base in ([folder, self.root] if quoted else []) + [pathlib.Path(s) for s in SYSTEM]:
            if (base / name).is_file():
                return base / name
        return None  # a generated header, or a header of another system

    def _read(self, path):
        if path not in self.files:
            text = path.read_bytes()
            found = [self._find(name.decode("utf-8", "replace"), path.parent, quote == b'"')
                     for quote, name in INCLUDE.findall(text)]
            self.files[path] = text.count(b"\n"), [f for f in found if f]
        return self.files[path]

    def reach(self, path, free=frozenset()):
        """Returns the files that the compiler reads for this one, except those in `free`, which has
        all files that its files include."""
        seen, todo = {path}, [path]
        while todo:
            for other in self._read(todo.pop())[1]:
                if other not in seen and other not in free:
                    seen.add(other)
                    todo.append(other)
        return seen

    def cost(self, path, free):
        return sum(self._read(file)[0] for file in self.reach(path, free))


def read_budget(root):
    """Returns {path: (lines allowed, line of the table)}."""
    budget = {}
    text = (root / BUDGET).read_text(encoding="utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith("#"):
            path, most = line.split()
            budget[path] = int(most), number
    return budget


def check(root, paths):
    """Yields (path, line, message) for each header over its budget."""
    lines = Lines(root)
    free = set().union(*(lines.reach(root / path) for path in PRECOMPILED))
    budget = read_budget(root)
    headers = [p for p in paths if p.suffix == ".h" and not TEST.search(p.as_posix())]
    for path in headers:
        most, _ = budget.pop(path.as_posix(), (MOST, 0))
        cost = lines.cost(root / path, free)
        if cost > most:
            yield path, 1, (f"{cost} lines are read for it, {most} at most ({BUDGET}): include "
                            "less, declare types instead, or move code to a .cc file")
    for path, (_, number) in budget.items():
        yield BUDGET, number, f"there is no {path}"
