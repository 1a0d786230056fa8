// SPDX-License-Identifier: Apache-2.0
//
// EncodeProto: serializes protobuf messages whose fields have the elements of tensors as values.
#include <string>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/parsing/message_source.h"

namespace penstock {
namespace {

class EncodeProtoKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::vector<DType> dtypes;
    RETURN_IF_ERROR(node.Attr("Tinput_types", &dtypes));
    return source_.Init(node, std::move(dtypes), /*extensions=*/false);
  }

  // Input 0 has the number of values of each message and field; then come the values of each field.
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::shared_ptr<const MessageType> type, source_.Get(ctx));
    ASSIGN_OR_RETURN(const Shape messages, CheckedMessages(ctx));
    const int fields = ctx.num_inputs() - 1;
    std::vector<const Tensor*> values;
    for (int f = 0; f < fields; ++f) values.push_back(&ctx.input(f + 1));
    Tensor* bytes;
    RETURN_IF_ERROR(ctx.Allocate(0, messages, &bytes));
    const int32_t* size = ctx.input(0).data<int32_t>();
    std::vector<int64_t> firsts(fields), sizes(fields);
    for (int64_t m = 0; m < messages.num_elements(); ++m) {
      for (int f = 0; f < fields; ++f) {
        const int64_t width = values[f]->dim(values[f]->rank() - 1);
        firsts[f] = m * width;
        sizes[f] = *size++;
        if (sizes[f] < 0 || sizes[f] > width) {
          return InvalidArgument("sizes must be >= 0 and at most the number of values, ", width,
                                 ": is ", sizes[f], " at message ", m, ", field ", f);
        }
      }
      bytes->mutable_data<std::string>()[m] = type->Write(values, firsts, sizes);
    }
    return OkStatus();
  }

 private:
  // Returns the shape that the values have without their last dimension. InvalidArgument unless it
  // is the same for all, and `sizes` has a number for each message and field.
  static StatusOr<Shape> CheckedMessages(const KernelContext& ctx) {
    Dims common;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      const Shape& shape = ctx.input(i).shape();
      if (shape.rank() < 2) {
        return InvalidArgument("Invalid shape for values ", i - 1, ". Saw shape ", shape.ToString(),
                               " but it should be at least a matrix.");
      }
      const Dims own(shape.dims().begin(), shape.dims().end() - 1);
      if (i > 1 && own != common) {
        return InvalidArgument("Values must match up to the last dimension, have shapes ",
                               ctx.input(1).shape().ToString(), " and ", shape.ToString());
      }
      common = own;
    }
    Dims wanted = common;
    wanted.push_back(ctx.num_inputs() - 1);
    ASSIGN_OR_RETURN(const Shape expected, Shape::Make(wanted));
    if (ctx.input(0).shape() == expected) return Shape::Make(common);
    return InvalidArgument("sizes should be batch_size + [len(field_names)]. Saw: ",
                           ctx.input(0).shape().ToString(), " but expected: ", expected.ToString());
  }

  MessageSource source_;
};

Status EncodeProtoShape(ShapeScope& s) {
  const PartialShape& values = s.input(1);
  if (!values.known_rank()) return OkStatus();
  if (values.rank() < 2) {
    return InvalidArgument("values must have at least 2 dimensions, have shape ",
                           values.ToString());
  }
  PartialShape messages;
  std::vector<int64_t> dims(values.dims().begin(), values.dims().end() - 1);
  ASSIGN_OR_RETURN(messages, PartialShape::Make(dims));
  s.set_output(0, std::move(messages));
  return OkStatus();
}

OP(EncodeProto) {
  OpDef op = {
      .doc =
          "Serializes protobuf messages of type message_type. Message m gets the first sizes[m, f] "
          "elements of values[f][m] as values of field f. descriptor_source says where "
          "message_type is described, as in DecodeProtoV2.",
      .inputs = {{"sizes", "int32"}, {"values", List("Tinput_types")}},
      .outputs = {{"bytes", "string"}},
      .attrs = MessageAttrs(),
      .shape = EncodeProtoShape,
      .gradient = NoGradient,
      .acts_outside = true,
      .untestable_alone = "needs a message type: kernels/parsing has its tests",
  };
  op.attrs.push_back({"Tinput_types", TypeList{.min_length = 1}});
  return op;
}
KERNEL_ANY_TYPE(EncodeProto, EncodeProtoKernel);

}  // namespace
}  // namespace penstock
