// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "core/base/check.h"
#include "core/checkpoint/checkpoint_state.h"
#include "proto/tensorflow/checkpoint.pb.h"

namespace penstock {
namespace {

// Keeps the first error instead of printing it.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = StrCat("line ", line + 1, ": ", message);
  }
  std::string text;
};

std::string StatePath(const std::string& directory) { return StrCat(directory, "/checkpoint"); }

}  // namespace

StatusOr<CheckpointState> ReadCheckpointState(Env& env, const std::string& directory) {
  const std::string path = StatePath(directory);
  ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  tensorflow::CheckpointState proto;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(true);
  if (!parser.ParseFromString(text, &proto)) {
    return DataLoss("'", path, "' is not a checkpoint state: ", error.text);
  }
  return CheckpointState{
      .latest = proto.model_checkpoint_path(),
      .all = {proto.all_model_checkpoint_paths().begin(), proto.all_model_checkpoint_paths().end()},
      .timestamps = {proto.all_model_checkpoint_timestamps().begin(),
                     proto.all_model_checkpoint_timestamps().end()},
      .last_preserved_timestamp = proto.last_preserved_timestamp()};
}

Status WriteCheckpointState(Env& env, const std::string& directory, const CheckpointState& state) {
  tensorflow::CheckpointState proto;
  proto.set_model_checkpoint_path(state.latest);
  for (const std::string& path : state.all) proto.add_all_model_checkpoint_paths(path);
  for (const double time : state.timestamps) proto.add_all_model_checkpoint_timestamps(time);
  proto.set_last_preserved_timestamp(state.last_preserved_timestamp);
  std::string text;
  CHECK(google::protobuf::TextFormat::PrintToString(proto, &text));
  return env.WriteFileAtomically(StatePath(directory), text);
}

}  // namespace penstock
