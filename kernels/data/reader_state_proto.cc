// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/data/reader.h"
#include "proto/penstock/reader.pb.h"

namespace penstock {

std::string EncodeReaderState(const Reader::State& state) {
  wire::ReaderState proto;
  proto.set_work_started(state.work_started);
  proto.set_work_finished(state.work_finished);
  proto.set_num_records_produced(state.records_produced);
  proto.set_current_work(state.current_work);
  proto.set_offset(state.position.offset);
  proto.set_records(state.position.records);
  return proto.SerializeAsString();
}

StatusOr<Reader::State> DecodeReaderState(const std::string& bytes) {
  wire::ReaderState proto;
  if (!proto.ParseFromString(bytes)) {
    return InvalidArgument("Could not parse state: these ", bytes.size(),
                           " bytes are no reader's state");
  }
  const Reader::State state{
      .work_started = proto.work_started(),
      .work_finished = proto.work_finished(),
      .records_produced = proto.num_records_produced(),
      .current_work = proto.current_work(),
      .position = {.offset = proto.offset(), .records = proto.records()},
  };
  constexpr int64_t kCountMax = int64_t{1} << 62;  // the reader's counts must not overflow later
  const int64_t greatest = std::max(
      {state.work_started, state.work_finished, state.records_produced, state.position.records});
  const int64_t in_progress = state.work_started - state.work_finished;
  if (greatest > kCountMax || state.work_started < 0 || state.work_finished < 0 ||
      state.records_produced < 0 || state.position.offset < 0 || state.position.records < 0 ||
      in_progress < 0 || in_progress > 1) {
    return InvalidArgument("a reader's state with work_started = ", state.work_started,
                           ", work_finished = ", state.work_finished,
                           ", num_records_produced = ", state.records_produced,
                           ", offset = ", state.position.offset,
                           ", records = ", state.position.records);
  }
  return state;
}

}  // namespace penstock
