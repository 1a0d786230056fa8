// SPDX-License-Identifier: Apache-2.0
//
// TensorMessageWriter and ReadTensorMessage: messages of the session protocol with tensors in them
// (RunStepRequest and so on), byte for byte what protobuf would write and read, but that the bytes
// of large tensors are neither serialized nor parsed: they are sent from where they lie, and copied
// once, to where they will lie. Protobuf copies them three times on each side.
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
  // Adds the fields of `message`, which is of the type that is being written.
  void Add(const google::protobuf::MessageLite& message);
  // Adds to the repeated field `field` of type NamedTensorProto, or TensorProto.
  void AddNamedTensor(int field, string_view name, const Tensor& tensor);
  void AddTensor(int field, const Tensor& tensor);

  // ResourceExhausted where it is longer than messages can be (2 GiB); the error of a tensor that
  // cannot be written.
  StatusOr<grpc::ByteBuffer> Take();

 private:
  std::string Head(const Tensor& tensor);
  void AddContent(const Tensor& tensor);
  void Flush();

  std::string small_;
  std::vector<grpc::Slice> slices_;
  size_t bytes_ = 0;  // of slices_
  Status status_;
};

// The repeated field that holds tensors, and its type.
struct TensorField {
  int number;
  bool named;        // NamedTensorProto, else TensorProto
  const char* what;  // "feed", for errors
};

// Parses `bytes`: tensors of the field are appended to `tensors` (with their names, if they have
// any), everything else goes to `rest`. InvalidArgument where the bytes are no such message, or
// where a tensor is bad: then it is named, and `rest` is there.
Status ReadTensorMessage(grpc::ByteBuffer* bytes, TensorField field,
                         google::protobuf::MessageLite* rest,
                         std::vector<std::pair<std::string, Tensor>>* tensors);

}  // namespace penstock
