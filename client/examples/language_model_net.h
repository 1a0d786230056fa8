// SPDX-License-Identifier: Apache-2.0
//
// A network that reads a text and says at each character how likely each next one is.
#pragma once

#include <memory>
#include <string>

#include "client/program.h"
#include "client/rnn.h"

namespace penstock::examples {

struct LanguageModelSize {
  std::string cell = "lstm";  // or "gru"
  int64_t units = 256, layers = 1, embedding = 64, seed = 1;
};

class LanguageModel {
 public:
  // Adds the variables. REQUIRES a known cell.
  LanguageModel(client::Program& program, const LanguageModelSize& size);

  // The mean over all characters of the bits that each costs. `inputs` and `targets` are
  // uint8[batch, time], `lengths` int32[batch].
  Output Bits(Output inputs, Output targets, Output lengths) const;
  // uint8[n]: a text that the model makes up, n <= length_max. Higher temperatures dare more.
  Output Compose(int32_t length_max, double temperature) const;

 private:
  Output Embedded(Output characters, Output table) const;

  client::Program& program_;
  std::unique_ptr<client::RnnCell> cell_;
  std::unique_ptr<client::Variable> embedding_, weights_, biases_;
};

}  // namespace penstock::examples
