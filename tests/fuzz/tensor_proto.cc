// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the decoding of a TensorProto. The decoder must refuse the message, or return a tensor
// that stays the same when it is encoded and decoded again.
#include "core/wire/tensor_proto.h"

#include "core/base/check.h"
#include "proto/tensorflow/tensor.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

constexpr int64_t kBytesMax = int64_t{64} << 20;

void Read(const uint8_t* data, size_t size) {
  tensorflow::TensorProto proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return;
  const StatusOr<Tensor> tensor = TensorFromProto(proto, kBytesMax);
  if (!tensor.ok()) return;
  CHECK(static_cast<int64_t>(tensor->bytes()) <= kBytesMax, "too long: ", tensor->bytes());
  tensorflow::TensorProto sent;
  CHECK_OK(TensorToProto(*tensor, &sent));
  const StatusOr<Tensor> received = TensorFromProto(sent);
  CHECK_OK(received.status());
  CHECK(received->ToString(1000) == tensor->ToString(1000), tensor->ToString());
}

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Read(data, size);
  return 0;
}
