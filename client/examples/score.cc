// SPDX-License-Identifier: Apache-2.0
//
// Runs a SavedModel on rows of numbers:
//
//   echo 1,2,3 | score /models/1 serving_default
//
// Each line of the standard input is a row of the signature's only input, which must take floats.
// Each printed line is a row of the first output.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/saved_model.h"

namespace penstock::client {
namespace {

StatusOr<Tensor> ReadRows(std::istream& in) {
  std::vector<float> values;
  int64_t rows = 0, columns = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const std::vector<std::string> words = absl::StrSplit(line, ',');
    if (rows == 0) columns = static_cast<int64_t>(words.size());
    if (columns != static_cast<int64_t>(words.size())) {
      return InvalidArgument("row ", rows, " has ", words.size(), " numbers, row 0 has ", columns);
    }
    for (const std::string& word : words) {
      float value;
      if (!absl::SimpleAtof(word, &value)) return InvalidArgument("'", word, "' is no number");
      values.push_back(value);
    }
  }
  return Tensor::Of<float>({rows, columns}, values);
}

Status Score(const std::string& folder, const std::string& name) {
  ASSIGN_OR_RETURN(const auto model, SavedModel::Load(folder, {"serve"}));
  const auto signature = model->meta().signatures.find(name);
  if (signature == model->meta().signatures.end() || signature->second.inputs.size() != 1) {
    return InvalidArgument("'", folder, "' has no signature '", name, "' of one input");
  }
  ASSIGN_OR_RETURN(const Tensor rows, ReadRows(std::cin));
  ASSIGN_OR_RETURN(const auto outputs,
                   model->Call(name, {{signature->second.inputs.begin()->first, rows}}));
  const Tensor& scores = outputs.begin()->second;
  if (scores.dtype() != DType::kFloat || scores.rank() != 2) {
    return Unimplemented("output '", outputs.begin()->first, "' is ", Name(scores.dtype()),
                         scores.shape().ToString(), "; rows of floats can be printed");
  }
  for (int64_t i = 0; i < scores.num_elements(); ++i) {
    const bool last = (i + 1) % scores.dim(1) == 0;
    std::printf("%.9g%c", scores.flat<float>()[i], last ? '\n' : ',');
  }
  return OkStatus();
}

}  // namespace
}  // namespace penstock::client

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: score FOLDER SIGNATURE < rows\n");
    return 2;
  }
  const penstock::Status status = penstock::client::Score(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "score: %s\n", std::string(status.message()).c_str());
  return 1;
}
