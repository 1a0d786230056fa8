# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of tools/bench: the training steps. workloads.serve describes the protocol."""

import multiprocessing
import os
import socket
import time

from workloads import (  # noqa: E402
    BAG_BATCHES, BAG_IDS, BAGS, BATCH, TABLE_ROWS, TABLE_WIDTH, THREADS, TRANSFER_BYTES,
    all_reduce_count, median_seconds, serve)

# Debian's build multiplies with an OpenBLAS that ignores set_num_threads.
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(THREADS))

import torch  # noqa: E402
from torch import nn  # noqa: E402


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def convnet():
    return nn.Sequential(nn.Unflatten(1, (1, 28, 28)),
                         nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(),
                         nn.Linear(1024, 10))


def rank_process(pipe, port, rank, ranks, size):
    """Runs one rank of a gloo group: sums on request, and answers with the median time of a sum."""
    from torch import distributed
    torch.set_num_threads(max(1, THREADS // ranks))
    distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % port, rank=rank,
                                   world_size=ranks)
    tensor = torch.ones(size // 4)
    while pipe.recv():
        times = []
        for _ in range(all_reduce_count(size)):
            begin = time.perf_counter()
            distributed.all_reduce(tensor)
            times.append(time.perf_counter() - begin)
        tensor.fill_(1)
        times.sort()
        pipe.send(times[len(times) // 2])


def prepare_all_reduce(size, ranks):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(ranks):
        ours, theirs = context.Pipe()
        process = context.Process(target=rank_process, daemon=True,
                                  args=(theirs, port, rank, ranks, TRANSFER_BYTES[size]))
        process.start()
        pipes.append(ours)
        processes.append(process)

    def measure():
        for pipe in pipes:
            pipe.send(True)
        return sum(pipe.recv() for pipe in pipes) / ranks * 1e6

    def close():
        for process in processes:
            process.kill()
            process.join()

    measure()  # warms up
    return measure, close


def prepare_embedding():
    """Prepares an EmbeddingBag with sparse gradients: a step changes only the rows of its ids."""
    table = nn.EmbeddingBag(TABLE_ROWS, TABLE_WIDTH, mode="sum", sparse=True)
    optimizer = torch.optim.Adagrad(table.parameters(), lr=0.01, initial_accumulator_value=0.1)
    batches = [torch.randint(TABLE_ROWS, (BAGS, BAG_IDS)) for _ in range(BAG_BATCHES)]
    taken = 0

    def step():
        nonlocal taken
        taken += 1
        optimizer.zero_grad(set_to_none=True)
        table(batches[taken % BAG_BATCHES]).square().mean().backward()
        optimizer.step()

    return lambda: median_seconds(step) * 1e3, lambda: None


def prepare(name):
    if name.startswith("all_reduce/"):
        _, _, size, ranks = name.split("/")  # (gloo has one protocol)
        return prepare_all_reduce(size, int(ranks))
    torch.manual_seed(1)
    if name == "embedding/dynamic":
        return prepare_embedding()
    model = {"training/mlp": mlp, "training/convnet": convnet}[name]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.rand(BATCH, 784)
    classes = torch.arange(BATCH) % 10

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images), classes).backward()
        optimizer.step()

    return lambda: median_seconds(step) * 1e3, lambda: None


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    serve("PyTorch " + torch.__version__, prepare)
