// SPDX-License-Identifier: Apache-2.0
//
// The training of the Fashion-MNIST example: in one process, as one of many asynchronous workers,
// or as the chief that drives all workers synchronously.
#pragma once

#include <string>

#include "client/examples/fashion_mnist_flags.h"
#include "core/base/status.h"

namespace penstock::examples {

// Trains with the given session target ("" is this process), or tests checkpoints if --evaluate is
// set. After training the chief prints "test accuracy: 0.9xx" as the last line on stdout, and
// writes the accuracy to the file `test_accuracy` in the checkpoints' folder. Returns Cancelled if
// a signal ended the training before the last step; the training has saved its state then.
Status TrainFashionMnist(const Flags& flags, const std::string& target);

}  // namespace penstock::examples
