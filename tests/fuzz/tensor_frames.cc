// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the code that reads the stream of tensors from another task. The input is a sequence of
// messages: two bytes for the length of a message, then its bytes.
#include <algorithm>
#include <string>
#include <vector>

#include "distributed/transport/grpc/exchange_frame.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

class CpuLanding final : public Landing {};

void Read(string_view input) {
  CpuLanding landing;
  FrameReader reader(landing);
  std::vector<ReceivedTensor> received;
  std::vector<RefusedStep> refused;
  while (input.size() >= 2) {
    const size_t length = static_cast<uint8_t>(input[0]) | static_cast<uint8_t>(input[1]) << 8;
    input.remove_prefix(2);
    const grpc::Slice bytes(input.data(), std::min(length, input.size()));
    input.remove_prefix(bytes.size());
    const auto odd = [](int64_t step_id) { return step_id % 2 == 1; };
    if (!reader.Read(grpc::ByteBuffer(&bytes, 1), odd, &received, &refused).ok()) return;
  }
}

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
