// SPDX-License-Identifier: Apache-2.0
//
// Summaries: adds summary ops for a program's tensors to its graph, and merges their outputs for
// event files.
//
//   Summaries summaries(program);
//   summaries.AddHistogram("weights", w);
//   summaries.AddImages("input", pictures);
//   SummaryHook hook(*writer, program, {.every_steps = 100, .summary = summaries.Merged()});
//
// A tag names one series in TensorBoard. TensorBoard groups tags such as "layer1/weights" by the
// text before the slash. An invalid argument, such as a repeated tag, sets the program's error
// (GraphBuilder::status). This error, and errors of the nodes, name the line of the call. Borrows
// the program. Not thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "client/program.h"

namespace penstock::client {

class Summaries {
 public:
  explicit Summaries(Program& program) : program_(program) {}

  // Adds one number, of any real type.
  void AddScalar(const std::string& tag, Output value,
                 SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Adds a histogram of the numbers of a tensor. The step fails (InvalidArgument names the node) if
  // a number is NaN or infinite.
  void AddHistogram(const std::string& tag, Output values,
                    SourceLine line = {__builtin_FILE(), __builtin_LINE()});
  // Adds up to `max_images` of [batch, height, width, channels], with 1 (grey), 3 or 4 channels.
  // Bytes are used unchanged; floats are scaled so that each picture uses the full range.
  void AddImages(const std::string& tag, Output images, int64_t max_images = 3,
                 SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns a string scalar: all summaries that were added, as one serialized Summary. The result
  // is not valid if none was added.
  Output Merged(SourceLine line = {__builtin_FILE(), __builtin_LINE()});

 private:
  Output Tag(const std::string& tag);

  Program& program_;
  std::set<std::string> tags_;
  Outputs summaries_;
};

}  // namespace penstock::client
