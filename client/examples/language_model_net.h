// SPDX-License-Identifier: Apache-2.0
//
// A network that reads a text and predicts, at each character, the probability of each next
// character.
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

  // Returns the mean cross entropy of the characters, in bits. `inputs` and `targets` are
  // uint8[batch, time], `lengths` int32[batch].
  Output Bits(Output inputs, Output targets, Output lengths) const;
  // Returns a text sampled from the model: uint8[n] with n <= length_max. If the model predicts a
  // zero, the text ends there. Higher temperatures choose less likely characters more often.
  Output Compose(int32_t length_max, double temperature) const;

 private:
  Output Embed(Output characters, Output table) const;

  client::Program& program_;
  std::unique_ptr<client::RnnCell> cell_;
  std::unique_ptr<client::Variable> embedding_, weights_, biases_;
};

}  // namespace penstock::examples
