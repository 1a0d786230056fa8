// SPDX-License-Identifier: Apache-2.0
//
// DecodeProtoV2: the values of some fields of serialized protobuf messages.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/parsing/message_source.h"

namespace penstock {
namespace {

// Writes the values of field f of a message to elements [first, first + width) of `out`, followed
// by defaults.
void WriteValues(const FieldValues& values, const FieldValues& defaults, int64_t first,
                 int64_t width, Tensor* out) {
  if (out->dtype() == DType::kString) {
    std::string* to = out->mutable_data<std::string>() + first;
    for (int64_t i = 0; i < width; ++i) {
      to[i] = std::string(i < values.size() ? values.pieces[i] : defaults.pieces[0]);
    }
    return;
  }
  // The bytes of a number are its low ones, which come first.
  const int64_t size = out->bytes() / out->num_elements();
  char* to = static_cast<char*>(out->mutable_raw_data()) + first * size;
  for (int64_t i = 0; i < width; ++i, to += size) {
    std::memcpy(to, i < values.size() ? &values.numbers[i] : &defaults.numbers[0], size);
  }
}

class DecodeProtoKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::vector<DType> dtypes;
    RETURN_IF_ERROR(node.Attr("output_types", &dtypes));
    RETURN_IF_ERROR(source_.Init(node, std::move(dtypes), /*extensions=*/true));
    std::string format;
    RETURN_IF_ERROR(node.Attr("message_format", &format));
    is_text_ = format == "text";
    if (!is_text_ && format != "binary") {
      return InvalidArgument("message_format must be binary or text, is ", format);
    }
    return node.Attr("sanitize", &sanitize_);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::shared_ptr<const MessageType> type, source_.Get(ctx));
    const Tensor& bytes = ctx.input(0);
    const int64_t messages = bytes.num_elements();
    if (messages == 0) return InvalidArgument("bytes must contain at least one message");
    const auto fields = static_cast<int64_t>(type->defaults().size());
    std::vector<std::string> converted;  // stays in place: `values` has views of it
    converted.reserve(messages);
    std::vector<std::vector<FieldValues>> values;
    std::vector<int64_t> widths(fields, 1);
    for (const std::string& given : bytes.flat<std::string>()) {
      string_view message = given;
      if (is_text_ || sanitize_) {
        ASSIGN_OR_RETURN(std::string own,
                         is_text_ ? type->FromText(given) : type->Reserialized(given));
        message = converted.emplace_back(std::move(own));
      }
      ASSIGN_OR_RETURN(std::vector<FieldValues> of_message, type->Read(message));
      for (int64_t f = 0; f < fields; ++f) widths[f] = std::max(widths[f], of_message[f].size());
      values.push_back(std::move(of_message));
    }
    return WriteOutputs(ctx, values, type->defaults(), widths);
  }

 private:
  static StatusOr<Shape> WithInner(const Shape& shape, int64_t size) {
    Dims dims(shape.dims().begin(), shape.dims().end());
    dims.push_back(size);
    return Shape::Make(dims);
  }

  static Status WriteOutputs(KernelContext& ctx,
                             const std::vector<std::vector<FieldValues>>& values,
                             const std::vector<FieldValues>& defaults,
                             const std::vector<int64_t>& widths) {
    const Shape messages = ctx.input(0).shape();
    const auto fields = static_cast<int64_t>(widths.size());
    ASSIGN_OR_RETURN(const Shape sizes_shape, WithInner(messages, fields));
    Tensor* sizes;
    RETURN_IF_ERROR(ctx.Allocate(0, sizes_shape, &sizes));
    int32_t* size = sizes->mutable_data<int32_t>();
    for (const std::vector<FieldValues>& of_message : values) {
      for (const FieldValues& field : of_message) *size++ = static_cast<int32_t>(field.size());
    }
    for (int64_t f = 0; f < fields; ++f) {
      ASSIGN_OR_RETURN(const Shape shape, WithInner(messages, widths[f]));
      Tensor* out;
      RETURN_IF_ERROR(ctx.Allocate(static_cast<int>(f) + 1, shape, &out));
      for (size_t m = 0; m < values.size(); ++m) {
        WriteValues(values[m][f], defaults[f], static_cast<int64_t>(m) * widths[f], widths[f], out);
      }
    }
    return OkStatus();
  }

  MessageSource source_;
  bool is_text_ = false, sanitize_ = false;
};

Status DecodeProtoShape(ShapeScope& s) {
  const PartialShape& bytes = s.input(0);
  if (!bytes.known_rank()) return OkStatus();
  for (int i = 0; i < s.num_outputs(); ++i) {
    PartialShape shape = bytes;
    shape.AddDim(i == 0 ? s.num_outputs() - 1 : PartialShape::kUnknown);
    s.set_output(i, std::move(shape));
  }
  return OkStatus();
}

OP(DecodeProtoV2) {
  OpDef op = {
      .doc =
          "Returns the values of fields of serialized protobuf messages: for each message and "
          "field the number of values (sizes), and for each field a tensor of the values, filled "
          "up with "
          "the field's default. descriptor_source says where message_type is described: local:// "
          "for messages linked into the server, the name of a file with a FileDescriptorSet, or "
          "bytes:// followed by one. A message_format of text is protobuf's text format; sanitize "
          "parses binary messages completely first. Submessages are returned as their bytes.",
      .inputs = {{"bytes", "string"}},
      .outputs = {{"sizes", "int32"}, {"values", List("output_types")}},
      .attrs = MessageAttrs(),
      .shape = DecodeProtoShape,
      .gradient = NoGradient,
      .acts_outside = true,
      .untestable_alone = "needs serialized messages: kernels/parsing has its tests",
  };
  op.attrs.push_back({"output_types", TypeList{}});
  op.attrs.push_back({"message_format", "binary"});
  op.attrs.push_back({"sanitize", false});
  return op;
}
KERNEL_ANY_TYPE(DecodeProtoV2, DecodeProtoKernel);

}  // namespace
}  // namespace penstock
