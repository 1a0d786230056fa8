# SPDX-License-Identifier: Apache-2.0
"""The workloads that the peers of tools/bench measure, and the protocol that they speak.

workloads.h and rounds.h have the same numbers for Penstock.
"""

import json
import os
import sys
import time

CHAIN_NODES = 10000
WIDE_NODES = 10000
# Width and depth, chosen so that the graph has about as many nodes as the other graphs.
RANDOM_GRAPH = (16, 625)
TRANSFER_BYTES = {"1KB": 1 << 10, "4KB": 4 << 10, "64KB": 64 << 10, "1MB": 1 << 20, "4MB": 4 << 20,
                  "64MB": 64 << 20, "256MB": 256 << 20}
BATCH = 128
TABLE_ROWS, TABLE_WIDTH, BAGS, BAG_IDS, BAG_BATCHES = 1 << 20, 64, 512, 8, 64
EXAMPLES, SHUFFLED, MAP_BATCH = 10000, 1000, 1000
ROUND_SECONDS = 0.4
# Penstock uses the same number of threads.
THREADS = len(os.sched_getaffinity(0))


def all_reduce_count(size):
    """Returns the number of all-reduces of `size` in a round. All ranks must use the same."""
    return min(1000, max(5, (256 << 20) // size))


def random_edges():
    """Returns, for each node of each layer but the first, its two inputs in the layer before."""
    state = 12345
    layers = []
    for _ in range(RANDOM_GRAPH[1] - 1):
        layer = []
        for _ in range(RANDOM_GRAPH[0]):
            pair = []
            for _ in range(2):
                state = (state * 1103515245 + 12345) % (1 << 31)
                pair.append((state >> 16) % RANDOM_GRAPH[0])
            layer.append(pair)
        layers.append(layer)
    return layers


def median_seconds(step):
    """Returns the median time of a step over one round, after a few warm-up steps."""
    for _ in range(3):
        step()
    times = []
    end = time.perf_counter() + ROUND_SECONDS
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times.sort()
    return times[len(times) // 2]


def mean_seconds(step):
    """Returns the mean time of a step, because some steps of an input pipeline take longer."""
    for _ in range(3):
        step()
    begin, steps = time.perf_counter(), 0
    while steps == 0 or time.perf_counter() < begin + ROUND_SECONDS:
        step()
        steps += 1
    return (time.perf_counter() - begin) / steps


def serve(what_it_is, prepare):
    """Answers each line of standard input, the name of a measurement, with a round of it.

    prepare(name) builds what the measurement needs and returns (round, close): round() gives the
    value; close() frees what it holds, before another is prepared. Answers are lines of JSON:
    {"value": number} or {"error": text}; the first line says what this is.
    """
    print(json.dumps({"ready": what_it_is}), flush=True)
    prepared, measure, close = None, None, None
    for line in sys.stdin:
        name = line.strip()
        try:
            if name != prepared:
                if close is not None:
                    prepared, previous, close = None, close, None
                    previous()
                measure, close = prepare(name)
                prepared = name
            answer = {"value": measure()}
        except Exception as error:  # pylint: disable=broad-except
            answer = {"error": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(answer), flush=True)
    if close is not None:
        close()
