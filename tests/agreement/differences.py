# SPDX-License-Identifier: Apache-2.0
"""Reads DIFFERENCES.md, the list of intended differences."""

import fnmatch
import re

VERDICTS = ("differs", "ours fails", "theirs fails", "ours lacks", "theirs lacks", "theirs crashes")


class Difference:
    """An intended difference, for the ops and cases that match the patterns; `*` matches any
    text."""

    def __init__(self, ops, cases, verdicts, reason):
        unknown = set(verdicts) - set(VERDICTS)
        if unknown:
            raise ValueError("DIFFERENCES.md: no such verdict: %s" % ", ".join(sorted(unknown)))
        self.ops, self.cases, self.verdicts, self.reason = ops, cases, verdicts, reason
        self.used = 0

    def covers(self, op, case, verdict):
        return (verdict in self.verdicts and
                any(fnmatch.fnmatchcase(op, pattern) for pattern in self.ops) and
                any(fnmatch.fnmatchcase(case, pattern) for pattern in self.cases))


def read(path):
    """Returns the rows of the file's tables: | ops | cases | verdicts | reason |, with patterns in
    backquotes."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if line.startswith("| `") and len(cells) == 4:
                ops, cases = (re.findall(r"`([^`]*)`", cell) for cell in cells[:2])
                rows.append(Difference(ops, cases, re.split(r",\s*", cells[2]), cells[3]))
    return rows
