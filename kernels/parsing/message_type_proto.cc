// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the wire format with protobuf's functions for single values, without building
// messages: values are the same bytes as in the message, even if it has fields that its descriptor
// does not have.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/parsing/message_type.h"

namespace penstock {
namespace {

namespace pb = google::protobuf;
using Wire = pb::internal::WireFormatLite;
using pb::io::CodedInputStream;
using pb::io::CodedOutputStream;

struct Field {
  Wire::FieldType type;
  int number = 0;
  bool repeated = false, packed = false;
  DType dtype = DType::kInvalid;
};

bool IsPiece(Wire::FieldType type) {
  return type == Wire::TYPE_STRING || type == Wire::TYPE_BYTES || type == Wire::TYPE_MESSAGE ||
         type == Wire::TYPE_GROUP;
}

// Returns the dtypes that the values of a field may have; the first has the range of the field.
std::vector<DType> DTypesOf(Wire::FieldType type) {
  switch (type) {
    case Wire::TYPE_DOUBLE:
      return {DType::kDouble};
    case Wire::TYPE_FLOAT:
      return {DType::kFloat, DType::kDouble};
    case Wire::TYPE_BOOL:
      return {DType::kBool};
    case Wire::TYPE_ENUM:
      return {DType::kInt32};
    case Wire::TYPE_INT32:
    case Wire::TYPE_SINT32:
    case Wire::TYPE_SFIXED32:
      return {DType::kInt32, DType::kInt64};
    case Wire::TYPE_UINT32:
    case Wire::TYPE_FIXED32:
      return {DType::kUint32, DType::kUint64};
    case Wire::TYPE_INT64:
    case Wire::TYPE_SINT64:
    case Wire::TYPE_SFIXED64:
      return {DType::kInt64};
    case Wire::TYPE_UINT64:
    case Wire::TYPE_FIXED64:
      return {DType::kUint64};
    default:
      return {DType::kString};
  }
}

// A number of any type. Integers are in `integer`, extended to 64 bits by their sign.
struct Number {
  uint64_t integer = 0;
  double real = 0;

  uint64_t BitsAs(DType dtype) const {
    if (dtype == DType::kDouble) return std::bit_cast<uint64_t>(real);
    if (dtype == DType::kFloat) return std::bit_cast<uint32_t>(static_cast<float>(real));
    return integer;
  }
  static Number Of(DType dtype, uint64_t bits) {
    switch (dtype) {
      case DType::kDouble:
        return {.real = std::bit_cast<double>(bits)};
      case DType::kFloat:
        return {.real = std::bit_cast<float>(static_cast<uint32_t>(bits))};
      case DType::kInt32:
        return {.integer = static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)})};
      default:
        return {.integer = bits};
    }
  }
};

template <class T, Wire::FieldType kType>
bool ReadAs(CodedInputStream& in, Number* number) {
  T value;
  if (!Wire::ReadPrimitive<T, kType>(&in, &value)) return false;
  if constexpr (std::is_floating_point_v<T>) {
    number->real = value;
  } else {
    number->integer = static_cast<uint64_t>(value);  // extends signed numbers by their sign
  }
  return true;
}

bool ReadNumber(Wire::FieldType type, CodedInputStream& in, Number* number) {
  switch (type) {
    case Wire::TYPE_DOUBLE:
      return ReadAs<double, Wire::TYPE_DOUBLE>(in, number);
    case Wire::TYPE_FLOAT:
      return ReadAs<float, Wire::TYPE_FLOAT>(in, number);
    case Wire::TYPE_BOOL:
      return ReadAs<bool, Wire::TYPE_BOOL>(in, number);
    case Wire::TYPE_ENUM:
      return ReadAs<int, Wire::TYPE_ENUM>(in, number);
    case Wire::TYPE_INT32:
      return ReadAs<int32_t, Wire::TYPE_INT32>(in, number);
    case Wire::TYPE_SINT32:
      return ReadAs<int32_t, Wire::TYPE_SINT32>(in, number);
    case Wire::TYPE_SFIXED32:
      return ReadAs<int32_t, Wire::TYPE_SFIXED32>(in, number);
    case Wire::TYPE_UINT32:
      return ReadAs<uint32_t, Wire::TYPE_UINT32>(in, number);
    case Wire::TYPE_FIXED32:
      return ReadAs<uint32_t, Wire::TYPE_FIXED32>(in, number);
    case Wire::TYPE_INT64:
      return ReadAs<int64_t, Wire::TYPE_INT64>(in, number);
    case Wire::TYPE_SINT64:
      return ReadAs<int64_t, Wire::TYPE_SINT64>(in, number);
    case Wire::TYPE_SFIXED64:
      return ReadAs<int64_t, Wire::TYPE_SFIXED64>(in, number);
    case Wire::TYPE_UINT64:
      return ReadAs<uint64_t, Wire::TYPE_UINT64>(in, number);
    case Wire::TYPE_FIXED64:
      return ReadAs<uint64_t, Wire::TYPE_FIXED64>(in, number);
    default:
      return false;
  }
}

void WriteNumber(Wire::FieldType type, const Number& number, CodedOutputStream* out) {
  const auto as_signed = static_cast<int64_t>(number.integer);
  const auto narrow = static_cast<int32_t>(as_signed);
  const auto unsigned_narrow = static_cast<uint32_t>(number.integer);
  switch (type) {
    case Wire::TYPE_DOUBLE:
      return Wire::WriteDoubleNoTag(number.real, out);
    case Wire::TYPE_FLOAT:
      return Wire::WriteFloatNoTag(static_cast<float>(number.real), out);
    case Wire::TYPE_BOOL:
      return Wire::WriteBoolNoTag(number.integer != 0, out);
    case Wire::TYPE_ENUM:
      return Wire::WriteEnumNoTag(narrow, out);
    case Wire::TYPE_INT32:
      return Wire::WriteInt32NoTag(narrow, out);
    case Wire::TYPE_SINT32:
      return Wire::WriteSInt32NoTag(narrow, out);
    case Wire::TYPE_SFIXED32:
      return Wire::WriteSFixed32NoTag(narrow, out);
    case Wire::TYPE_UINT32:
      return Wire::WriteUInt32NoTag(unsigned_narrow, out);
    case Wire::TYPE_FIXED32:
      return Wire::WriteFixed32NoTag(unsigned_narrow, out);
    case Wire::TYPE_INT64:
      return Wire::WriteInt64NoTag(as_signed, out);
    case Wire::TYPE_SINT64:
      return Wire::WriteSInt64NoTag(as_signed, out);
    case Wire::TYPE_SFIXED64:
      return Wire::WriteSFixed64NoTag(as_signed, out);
    case Wire::TYPE_UINT64:
      return Wire::WriteUInt64NoTag(number.integer, out);
    case Wire::TYPE_FIXED64:
      return Wire::WriteFixed64NoTag(number.integer, out);
    default:
      return;
  }
}

CodedInputStream StreamOf(string_view bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

// Reads a length, and sets *piece to that many bytes. Returns false if there are fewer.
bool ReadDelimited(CodedInputStream& in, string_view message, string_view* piece) {
  uint32_t length;
  if (!in.ReadVarint32(&length)) return false;
  const size_t begin = in.CurrentPosition();
  if (length > message.size() - begin) return false;
  *piece = message.substr(begin, length);
  return in.Skip(static_cast<int>(length));
}

// Adds a value, or replaces the value of a field that is not repeated.
template <class T>
void Add(const Field& field, T value, std::vector<T>* values) {
  if (!field.repeated) values->clear();
  values->push_back(value);
}

bool ReadPacked(const Field& field, string_view packed, FieldValues* values) {
  CodedInputStream in = StreamOf(packed);
  while (static_cast<size_t>(in.CurrentPosition()) < packed.size()) {
    Number number;
    if (!ReadNumber(field.type, in, &number)) return false;
    Add(field, number.BitsAs(field.dtype), &values->numbers);
  }
  return true;
}

// Reads the value of a field, whose tag begins at `begin` and has been read, and adds it to
// `values`. The bytes of a group include both of its tags, as in TensorFlow.
bool ReadValue(const Field& field, int begin, uint32_t tag, CodedInputStream& in,
               string_view message, FieldValues* values) {
  const Wire::WireType wire = Wire::GetTagWireType(tag);
  const Wire::WireType own = Wire::WireTypeForFieldType(field.type);
  string_view piece;
  if (wire == Wire::WIRETYPE_LENGTH_DELIMITED && own != wire) {
    return field.type != Wire::TYPE_GROUP && ReadDelimited(in, message, &piece) &&
           ReadPacked(field, piece, values);
  }
  if (wire != own) return Wire::SkipField(&in, tag);
  if (!IsPiece(field.type)) {
    Number number;
    if (!ReadNumber(field.type, in, &number)) return false;
    Add(field, number.BitsAs(field.dtype), &values->numbers);
    return true;
  }
  bool read;
  if (field.type == Wire::TYPE_GROUP) {
    read = Wire::SkipField(&in, tag);
    if (read) piece = message.substr(begin, in.CurrentPosition() - begin);
  } else {
    read = ReadDelimited(in, message, &piece);
  }
  if (read) Add(field, piece, &values->pieces);
  return read;
}

uint64_t BitsAt(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kBool:
      return tensor.data<bool>()[i] ? 1 : 0;
    case DType::kFloat:
    case DType::kInt32:
    case DType::kUint32:
      return static_cast<const uint32_t*>(tensor.raw_data())[i];
    default:
      return static_cast<const uint64_t*>(tensor.raw_data())[i];
  }
}

void WriteTag(const Field& field, Wire::WireType type, CodedOutputStream* out) {
  Wire::WriteTag(field.number, type, out);
}

void WritePiece(const Field& field, const std::string& piece, CodedOutputStream* out) {
  if (field.type == Wire::TYPE_GROUP) {
    WriteTag(field, Wire::WIRETYPE_START_GROUP, out);
    out->WriteString(piece);
    WriteTag(field, Wire::WIRETYPE_END_GROUP, out);
    return;
  }
  WriteTag(field, Wire::WIRETYPE_LENGTH_DELIMITED, out);
  out->WriteVarint64(piece.size());
  out->WriteString(piece);
}

void WritePackedNumbers(const Field& field, const Tensor& values, int64_t first, int64_t size,
                        CodedOutputStream* out) {
  std::string packed;
  {
    pb::io::StringOutputStream to(&packed);
    CodedOutputStream numbers(&to);
    for (int64_t i = first; i < first + size; ++i) {
      WriteNumber(field.type, Number::Of(field.dtype, BitsAt(values, i)), &numbers);
    }
  }
  WriteTag(field, Wire::WIRETYPE_LENGTH_DELIMITED, out);
  out->WriteVarint64(packed.size());
  out->WriteString(packed);
}

class DescriptorErrors final : public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& filename, const std::string& element, const pb::Message*,
                ErrorLocation, const std::string& message) override {
    if (first_.empty()) first_ = StrCat(filename, ": ", element, ": ", message);
  }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

class TextErrors final : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (first_.empty()) first_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& first() const { return first_; }

 private:
  std::string first_;
};

StatusOr<std::unique_ptr<pb::DescriptorPool>> PoolOf(const std::string& descriptors) {
  pb::FileDescriptorSet files;
  if (!files.ParseFromString(descriptors)) {
    return InvalidArgument("descriptor_source is not a serialized FileDescriptorSet");
  }
  auto pool = std::make_unique<pb::DescriptorPool>();
  for (const pb::FileDescriptorProto& file : files.file()) {
    DescriptorErrors errors;
    if (pool->BuildFileCollectingErrors(file, &errors) == nullptr) {
      return InvalidArgument("Failed to load FileDescriptorProto: ", errors.first());
    }
  }
  return pool;
}

const pb::FieldDescriptor* FindField(const pb::DescriptorPool& pool, const pb::Descriptor& message,
                                     const std::string& name, bool extensions) {
  if (const pb::FieldDescriptor* field = message.FindFieldByName(name)) return field;
  const pb::FieldDescriptor* extension = extensions ? pool.FindExtensionByName(name) : nullptr;
  return extension != nullptr && extension->containing_type() == &message ? extension : nullptr;
}

FieldValues DefaultOf(const pb::FieldDescriptor& field, DType dtype) {
  Number number;
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32:
      number.integer = static_cast<uint64_t>(int64_t{field.default_value_int32()});
      break;
    case pb::FieldDescriptor::CPPTYPE_INT64:
      number.integer = static_cast<uint64_t>(field.default_value_int64());
      break;
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      number.integer = field.default_value_uint32();
      break;
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      number.integer = field.default_value_uint64();
      break;
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      number.real = field.default_value_double();
      break;
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      number.real = field.default_value_float();
      break;
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      number.integer = field.default_value_bool() ? 1 : 0;
      break;
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      number.integer = static_cast<uint64_t>(int64_t{field.default_value_enum()->number()});
      break;
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return {.pieces = {field.default_value_string()}};
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      return {.pieces = {""}};
  }
  return {.numbers = {number.BitsAs(dtype)}};
}

class DynamicMessageType final : public MessageType {
 public:
  Status Init(const std::string* descriptors, const Spec& spec) {
    const pb::DescriptorPool* pool = pb::DescriptorPool::generated_pool();
    if (descriptors != nullptr) {
      ASSIGN_OR_RETURN(pool_, PoolOf(*descriptors));
      pool = pool_.get();
    }
    descriptor_ = pool->FindMessageTypeByName(spec.message_type);
    if (descriptor_ == nullptr) {
      return InvalidArgument("No descriptor found for message type ", spec.message_type);
    }
    for (size_t f = 0; f < spec.field_names.size(); ++f) {
      const pb::FieldDescriptor* field =
          FindField(*pool, *descriptor_, spec.field_names[f], spec.extensions);
      if (field == nullptr) {
        return InvalidArgument("Unknown field: ", spec.field_names[f], " in message type ",
                               spec.message_type);
      }
      const auto type = static_cast<Wire::FieldType>(field->type());
      const std::vector<DType> allowed = DTypesOf(type);
      if (std::find(allowed.begin(), allowed.end(), spec.dtypes[f]) == allowed.end()) {
        return InvalidArgument("Unexpected type for field ", field->full_name(), ": ",
                               field->type_name(), " fields have ", Name(allowed[0]), ", not ",
                               Name(spec.dtypes[f]));
      }
      fields_.push_back({.type = type,
                         .number = field->number(),
                         .repeated = field->is_repeated(),
                         .packed = field->options().packed() && !IsPiece(type),
                         .dtype = spec.dtypes[f]});
      defaults_.push_back(DefaultOf(*field, spec.dtypes[f]));
    }
    by_number_.resize(fields_.size());
    std::iota(by_number_.begin(), by_number_.end(), 0);
    std::stable_sort(by_number_.begin(), by_number_.end(),
                     [&](size_t a, size_t b) { return fields_[a].number < fields_[b].number; });
    for (size_t k = 1; k < by_number_.size(); ++k) {
      if (fields_[by_number_[k]].number == fields_[by_number_[k - 1]].number) {
        return InvalidArgument("field_names has the field ", spec.field_names[by_number_[k]],
                               " twice");
      }
    }
    return OkStatus();
  }

  StatusOr<std::string> FromText(const std::string& text) const override {
    const std::unique_ptr<pb::Message> message = NewMessage();
    TextErrors errors;
    pb::TextFormat::Parser parser;
    parser.SetRecursionLimit(100);  // protobuf's limit for the wire format
    parser.RecordErrorsTo(&errors);
    if (parser.ParseFromString(text, message.get())) return message->SerializeAsString();
    return DataLoss("Unable to parse text protobuf: ", errors.first());
  }

  StatusOr<std::string> Reserialized(const std::string& bytes) const override {
    const std::unique_ptr<pb::Message> message = NewMessage();
    if (message->ParseFromString(bytes)) return message->SerializeAsString();
    return DataLoss("Unable to parse binary protobuf");
  }

  StatusOr<std::vector<FieldValues>> Read(string_view bytes) const override {
    if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
      return DataLoss("a message of ", bytes.size(), " bytes is too large");
    }
    std::vector<FieldValues> values(fields_.size());
    CodedInputStream in = StreamOf(bytes);
    for (int begin = 0; const uint32_t tag = in.ReadTag(); begin = in.CurrentPosition()) {
      const int f = IndexOf(Wire::GetTagFieldNumber(tag));
      const bool read = f < 0 ? Wire::SkipField(&in, tag)
                              : ReadValue(fields_[f], begin, tag, in, bytes, &values[f]);
      if (!read) {
        return DataLoss("malformed message of type ", descriptor_->full_name(), ": byte ",
                        in.CurrentPosition());
      }
    }
    if (in.ConsumedEntireMessage()) return values;
    return DataLoss("malformed message of type ", descriptor_->full_name(), ": ends at byte ",
                    in.CurrentPosition(), " of ", bytes.size());
  }

  const std::vector<FieldValues>& defaults() const override { return defaults_; }

  std::string Write(const std::vector<const Tensor*>& values, const std::vector<int64_t>& firsts,
                    const std::vector<int64_t>& sizes) const override {
    std::string bytes;
    pb::io::StringOutputStream to(&bytes);
    CodedOutputStream out(&to);
    for (const size_t f : by_number_) {
      const Field& field = fields_[f];
      if (sizes[f] == 0) continue;
      if (field.packed) {
        WritePackedNumbers(field, *values[f], firsts[f], sizes[f], &out);
        continue;
      }
      for (int64_t i = firsts[f]; i < firsts[f] + sizes[f]; ++i) {
        if (IsPiece(field.type)) {
          WritePiece(field, values[f]->data<std::string>()[i], &out);
        } else {
          WriteTag(field, Wire::WireTypeForFieldType(field.type), &out);
          WriteNumber(field.type, Number::Of(field.dtype, BitsAt(*values[f], i)), &out);
        }
      }
    }
    out.Trim();
    return bytes;
  }

 private:
  std::unique_ptr<pb::Message> NewMessage() const {
    return std::unique_ptr<pb::Message>(factory_.GetPrototype(descriptor_)->New());
  }

  // Returns the index of the field with this number; -1 if there is none.
  int IndexOf(int number) const {
    const auto found =
        std::lower_bound(by_number_.begin(), by_number_.end(), number,
                         [&](size_t f, int wanted) { return fields_[f].number < wanted; });
    return found != by_number_.end() && fields_[*found].number == number ? static_cast<int>(*found)
                                                                         : -1;
  }

  std::unique_ptr<pb::DescriptorPool> pool_;  // null for linked messages
  const pb::Descriptor* descriptor_ = nullptr;
  mutable pb::DynamicMessageFactory factory_;  // thread-safe
  std::vector<Field> fields_;                  // in the order of the names
  std::vector<FieldValues> defaults_;
  std::vector<size_t> by_number_;  // indices into fields_, ordered by field number
};

}  // namespace

StatusOr<std::shared_ptr<const MessageType>> MessageType::Make(const std::string* descriptors,
                                                               const Spec& spec) {
  if (spec.field_names.size() != spec.dtypes.size()) {
    return InvalidArgument("there are ", spec.field_names.size(), " field_names, but ",
                           spec.dtypes.size(), " types");
  }
  auto type = std::make_shared<DynamicMessageType>();
  RETURN_IF_ERROR(type->Init(descriptors, spec));
  return std::shared_ptr<const MessageType>(std::move(type));
}

}  // namespace penstock
