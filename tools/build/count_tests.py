#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints "N passed, N failed" for one run of `bazel test`, from its event file.

Before that, prints the lines of the tests' output that begin with "SKIPPED:", which name the parts
that the tests have left out; and each test that failed at its first attempt and passed at its
second one, as FLAKY, with the failed cases.

Cases are counted in each test's test.xml. A test that failed without saying which case did (a
crash, a timeout) or that could not be built counts as one failure. Exits with 0 only if nothing
failed and Bazel itself reported no error.
"""

import argparse
import json
import sys
import urllib.parse
import xml.etree.ElementTree

# Bazel's exit status if there are no tests to run.
NO_TESTS = 4


def read_events(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def cases(uri):
    """Returns the number of passed cases in one test.xml, and the names of the failed ones."""
    path = urllib.parse.unquote(urllib.parse.urlparse(uri).path)
    passed, failed = 0, []
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", "?"))
        elif case.find("skipped") is None and case.get("status") != "notrun":
            passed += 1
    return passed, failed


def skipped(log):
    """Returns the lines of a test's log that say what it has left out, each once."""
    lines = [line.strip() for line in log.splitlines() if line.startswith("SKIPPED:")]
    return list(dict.fromkeys(lines))


def logs(events):
    """Yields (label, text) of each test's log, in the order of the labels."""
    uris = {}
    for event in events:
        if "testResult" not in event:
            continue
        label = event["id"]["testResult"]["label"]
        for output in event["testResult"].get("testActionOutput", []):
            if output["name"] == "test.log":
                uris.setdefault(label, []).append(output["uri"])
    for label, found in sorted(uris.items()):
        for uri in found:
            path = urllib.parse.unquote(urllib.parse.urlparse(uri).path)
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    yield label, file.read()
            except OSError:
                pass  # the log of an earlier attempt


def print_skipped(events):
    printed = set()
    for label, log in logs(events):
        for line in skipped(log):
            if (label, line) not in printed:
                print("%s (%s)" % (line, label))
            printed.add((label, line))


def flaky(events):
    """Yields (label, names of the failed cases) of each test that passed at a later attempt."""
    failed = {}
    for event in events:
        if event.get("testSummary", {}).get("overallStatus") == "FLAKY":
            failed.setdefault(event["id"]["testSummary"]["label"], [])
    for event in events:
        if event.get("testResult", {}).get("status", "PASSED") == "PASSED":
            continue
        label = event["id"]["testResult"]["label"]
        for output in event["testResult"].get("testActionOutput", []):
            if output["name"] == "test.xml" and label in failed:
                try:
                    failed[label] += cases(output["uri"])[1]
                except (OSError, xml.etree.ElementTree.ParseError):
                    pass  # the test ended before it could write the file
    yield from sorted(failed.items())


def print_flaky(events):
    for label, names in flaky(events):
        print("FLAKY: %s failed at first, and passed when it was repeated: %s" %
              (label, ", ".join(names) or "it did not say which case failed"))


def count(events):
    """Returns (passed, failed, labels of the failed tests)."""
    tests = set()
    built = set()
    outcome = {}
    xmls = {}
    for event in events:
        kind, _ = next(iter(event["id"].items()), ("", None))
        if kind == "targetConfigured" and "testSize" in event.get("configured", {}):
            tests.add(event["id"][kind]["label"])
        elif kind == "targetCompleted" and event.get("completed", {}).get("success"):
            built.add(event["id"][kind]["label"])
        elif kind == "testSummary":
            outcome[event["id"][kind]["label"]] = event["testSummary"]["overallStatus"]
        elif kind == "testResult":
            key = event["id"][kind]
            for output in event["testResult"].get("testActionOutput", []):
                if output["name"] == "test.xml":
                    # A later attempt at a shard or run replaces the earlier one.
                    shard = (key.get("shard"), key.get("run"))
                    xmls.setdefault(key["label"], {})[shard] = output["uri"]
    passed = failed = 0
    bad = []
    for label in sorted(tests | set(outcome)):
        if label in outcome:
            good = outcome[label] in ("PASSED", "FLAKY")
        else:
            good = label in built  # A tag filter left the target out.
        case_passed = case_failed = 0
        for uri in xmls.get(label, {}).values():
            try:
                p, f = cases(uri)
            except (OSError, xml.etree.ElementTree.ParseError):
                p, f = 0, []
            case_passed += p
            case_failed += len(f)
        if not good:
            bad.append(label)
            case_failed = max(case_failed, 1)
        passed += case_passed
        failed += case_failed
    return passed, failed, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", help="the file given to --build_event_json_file")
    parser.add_argument("--bazel_status", type=int, default=0, help="exit status of bazel test")
    args = parser.parse_args()
    events = read_events(args.events)
    print_skipped(events)
    print_flaky(events)
    passed, failed, bad = count(events)
    if args.bazel_status not in (0, NO_TESTS) and failed == 0:
        print("The build failed before any test did.")
        failed = 1
    if bad:
        print("Failed:", *bad, sep="\n  ")
    print(f"{passed} passed, {failed} failed")
    sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
