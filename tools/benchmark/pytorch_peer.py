# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of tools/bench: the training steps. The protocol is tensorflow_peer.py's."""

import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "2")

import torch  # noqa: E402
from torch import nn  # noqa: E402

from workloads import median_seconds  # noqa: E402

torch.set_num_threads(2)


def model_of(name):
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                             nn.Linear(512, 10))
    return nn.Sequential(nn.Unflatten(1, (1, 28, 28)),
                         nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(),
                         nn.Linear(1024, 10))


def measure(name):
    torch.manual_seed(1)
    model = model_of(name.split("/")[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.rand(128, 784)
    classes = torch.arange(128) % 10

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images), classes).backward()
        optimizer.step()

    return median_seconds(step) * 1e3


def main():
    print(json.dumps({"ready": "PyTorch " + torch.__version__}), flush=True)
    for line in sys.stdin:
        try:
            answer = {"value": measure(line.strip())}
        except Exception as error:  # pylint: disable=broad-except
            answer = {"error": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
