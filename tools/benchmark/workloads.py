# SPDX-License-Identifier: Apache-2.0
"""What every side of tools/bench measures: sizes, and how long to look.

benchmark_side.cc holds the same numbers for our side.
"""

import time

CHAIN_NODES = 10000
WIDE_NODES = 10000
RANDOM_GRAPH = (16, 625)  # width, depth: about as many nodes as the others
TRANSFER_BYTES = {"4KB": 4 << 10, "64KB": 64 << 10, "1MB": 1 << 20, "64MB": 64 << 20}
ROUND_SECONDS = 0.4


def random_edges():
    """For each layer and node the two nodes of the layer before that it depends on."""
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
    """The median time of a step over one round, after a few to warm up."""
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
