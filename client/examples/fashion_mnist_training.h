// SPDX-License-Identifier: Apache-2.0
//
// The training of the Fashion-MNIST example: the same program in one process, as one of many
// workers that each train by themselves, or as the chief that drives all of them in step.
#pragma once

#include <string>

#include "client/examples/fashion_mnist_flags.h"
#include "core/base/status.h"

namespace penstock::examples {

// Trains with the session target given ("" is this process). Cancelled: a signal has ended it
// before the last step; what was done is saved. The chief then prints, as the last line on stdout,
// "test accuracy: 0.9xx", and writes it to `test_accuracy` beside the checkpoints.
Status TrainFashionMnist(const Flags& flags, const std::string& target);

}  // namespace penstock::examples
