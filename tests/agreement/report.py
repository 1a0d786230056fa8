# SPDX-License-Identifier: Apache-2.0
"""Reports the results by op and types, and the unexplained differences."""

import collections

COLUMNS = ("agrees", "both fail", "explained", "differs", "ours fails", "theirs fails",
           "ours lacks", "theirs lacks", "ours crashes", "theirs crashes")
NEUTRAL = ("agrees", "both fail", "both lack", "not built")


class Report:
    def __init__(self, differences, unexplained=None):
        """`unexplained`: a file to which each unexplained difference is written at once."""
        self.differences, self.file = differences, unexplained
        self.cells = collections.defaultdict(collections.Counter)  # verdicts by op and types
        self.unexplained = []

    def add(self, case, verdict, detail):
        op, types, label = case.split("|", 2)
        if verdict not in NEUTRAL:
            reason = next((d for d in self.differences
                           if d.covers(op, types + " " + label, verdict)), None)
            if reason is None:
                self.unexplained.append((case, verdict, detail))
                if self.file:
                    print(case, verdict, detail.replace("\n", " "), sep="\t", file=self.file,
                          flush=True)
            else:
                reason.used += 1
                verdict = "explained"
        self.cells[op, types][verdict] += 1

    def totals(self):
        sums = collections.Counter()
        for counts in self.cells.values():
            sums.update(counts)
        return sums

    def write_matrix(self, path):
        """Writes a tab-separated line for each op and types."""
        with open(path, "w", encoding="utf-8") as file:
            print("op", "types", *COLUMNS, sep="\t", file=file)
            for (op, types), counts in sorted(self.cells.items()):
                print(op, types, *(counts[c] for c in COLUMNS), sep="\t", file=file)

    def summary(self):
        ops = {op for op, _ in self.cells}
        clean = ops - {case.split("|")[0] for case, _, _ in self.unexplained}
        totals = self.totals()
        yield "%d ops, %d of op and types, %d cases" % (len(ops), len(self.cells),
                                                      sum(totals.values()))
        yield ", ".join("%s %d" % (name, totals[name]) for name in
                        (*COLUMNS, "both lack", "not built") if totals[name])
        yield "%d ops agree in all that is not explained; %d do not" % (len(clean),
                                                                       len(ops) - len(clean))

    def failures(self, most):
        """Yields a line for each unexplained difference, `most` of them if there are more. Print
        them last: a log that is cut off keeps its end."""
        left = len(self.unexplained) - most
        if left > 0:
            yield "%d more differences are not printed; --unexplained=FILE writes all" % left
        for case, verdict, detail in self.unexplained[:most]:
            yield "FAILED %s: %s: %s" % (case.replace("|", " "), verdict,
                                         " ".join(detail.split())[:160])
        if not self.cells:
            yield "FAILED: there is no case of these ops"
