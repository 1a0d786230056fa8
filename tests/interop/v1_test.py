#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs in TensorFlow 1's modes."""

import harness  # must be first: it switches to a Python that has TensorFlow

import batching  # noqa: F401
import checkpoints  # noqa: F401
import collectives  # noqa: F401
import control_flow  # noqa: F401
import datasets  # noqa: F401
import defuns  # noqa: F401
import embeddings  # noqa: F401
import functions  # noqa: F401
import keras_models  # noqa: F401
import mistakes_in_graphs  # noqa: F401
import mistakes_with_data  # noqa: F401
import models  # noqa: F401
import optimizers  # noqa: F401
import pipelines  # noqa: F401
import queues  # noqa: F401
import recurrent  # noqa: F401
import references  # noqa: F401
import sessions  # noqa: F401
import summaries  # noqa: F401
import synchronous  # noqa: F401
import tensor_lists  # noqa: F401
import training_loops  # noqa: F401
import warm_starts  # noqa: F401

if __name__ == "__main__":
    harness.main(["ref", "resource"])
