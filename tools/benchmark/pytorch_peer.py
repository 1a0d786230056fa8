# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of tools/bench: the training steps. workloads.serve tells the protocol."""

import os

from workloads import BATCH, THREADS, median_seconds, serve

# Debian's build multiplies with an OpenBLAS that does not listen to set_num_threads.
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


def prepare(name):
    torch.manual_seed(1)
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
