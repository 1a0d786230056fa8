// SPDX-License-Identifier: Apache-2.0
//
// TensorMessageWriter and ReadTensorMessage: write and read messages of the session protocol that
// contain tensors (RunStepRequest and so on). The bytes are the same as protobuf's. But the bytes
// of large tensors are neither serialized nor parsed: they are sent from the tensor's memory, and
// the reader copies them once, to the new tensor's memory. Protobuf copies them three times on each
// side.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

class TensorMessageWriter {
 public:
  // Adds the fields of `message`, which has the type of the message being written.
  void Add(const google::protobuf::MessageLite& message);
  // Add a tensor to the repeated field with the number `field`, whose type is NamedTensorProto or
  // TensorProto. AddTensor does not send `name`, which is for errors; "" if it is not known.
  void AddNamedTensor(int field, string_view name, const Tensor& tensor);
  void AddTensor(int field, string_view name, const Tensor& tensor);

  // Returns the message, or the first error of a tensor that cannot be written; ResourceExhausted,
  // with the name of the largest tensor of numbers, if the message is longer than messages can be
  // (2 GiB).
  StatusOr<grpc::ByteBuffer> Take();

 private:
  std::string Head(const Tensor& tensor);
  void AddContent(string_view name, const Tensor& tensor);
  void Flush();

  std::string small_;
  std::vector<grpc::Slice> slices_;
  size_t bytes_ = 0;     // bytes in slices_
  int tensors_ = 0;      // the number of tensors
  std::string largest_;  // the largest tensor whose bytes are a slice, for errors
  size_t largest_bytes_ = 0;
  Status status_;
};

// The repeated field that holds tensors, and its type.
struct TensorField {
  int number;
  bool named;        // true: the type is NamedTensorProto; false: TensorProto
  const char* what;  // "feed", for errors
};

// Parses `bytes`: appends the tensors of the field to `tensors` (with their names, if they have
// any), and writes all other fields to `rest`. InvalidArgument if the bytes are not a message of
// that type, or if a tensor is malformed: then the error names the tensor, and `rest` is filled.
Status ReadTensorMessage(grpc::ByteBuffer* bytes, TensorField field,
                         google::protobuf::MessageLite* rest,
                         std::vector<std::pair<std::string, Tensor>>* tensors);

}  // namespace penstock
