// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor_list/tensor_map.h"

#include <memory>
#include <utility>

#include "kernels/tensor_list/tensor_list.h"

namespace penstock {
namespace {

const bool map_registered =
    RegisterVariantDecoder(TensorMapValue::kTypeName, TensorMapValue::Decode);

void AppendNumber(uint64_t number, std::string* bytes) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes->push_back(static_cast<char>(number >> shift));
}

// Returns a string that is equal for two keys if and only if the keys are equal.
std::string BytesOfKey(const Tensor& key) {
  std::string bytes;
  AppendNumber(static_cast<uint64_t>(Number(key.dtype())), &bytes);
  AppendNumber(static_cast<uint64_t>(key.rank()), &bytes);
  for (const int64_t dim : key.shape().dims()) AppendNumber(static_cast<uint64_t>(dim), &bytes);
  if (key.dtype() != DType::kString) {
    bytes.append(static_cast<const char*>(key.raw_data()), key.bytes());
    return bytes;
  }
  for (int64_t i = 0; i < key.num_elements(); ++i) {
    const std::string& text = key.data<std::string>()[i];
    AppendNumber(text.size(), &bytes);
    bytes += text;
  }
  return bytes;
}

bool MayBeKey(const Tensor& tensor) {
  return tensor.dtype() != DType::kVariant && tensor.dtype() != DType::kResource;
}

}  // namespace

std::string TensorMapValue::ToString() const { return StrCat("a map of ", size(), " tensors"); }

Status TensorMapValue::Encode(std::string* metadata, std::vector<Tensor>* tensors) const {
  metadata->clear();
  tensors->clear();
  for (const auto& [bytes, entry] : entries_) {
    tensors->push_back(entry.key);
    tensors->push_back(entry.value);
  }
  return OkStatus();
}

StatusOr<Variant> TensorMapValue::Decode(const std::string& metadata,
                                         const std::vector<Tensor>& tensors) {
  if (!metadata.empty() || tensors.size() % 2 != 0) {
    return InvalidArgument("a map whose metadata is malformed: it must be pairs of tensors");
  }
  auto map = std::make_shared<TensorMapValue>();
  for (size_t i = 0; i < tensors.size(); i += 2) {
    RETURN_IF_ERROR(map->Insert(tensors[i], tensors[i + 1]));
  }
  return Variant{std::move(map)};
}

StatusOr<Variant> TensorMapValue::ZerosLike(KernelContext&) const {
  return Variant{std::make_shared<TensorMapValue>()};
}

StatusOr<Variant> TensorMapValue::Plus(KernelContext& ctx, const VariantValue& other) const {
  const auto* addend = dynamic_cast<const TensorMapValue*>(&other);
  if (addend == nullptr) {
    return InvalidArgument("a map and a variant of type '", other.TypeName(), "' have no sum");
  }
  auto sum = std::make_shared<TensorMapValue>(*this);
  for (const auto& [bytes, entry] : addend->entries_) {
    const auto found = sum->entries_.find(bytes);
    if (found != sum->entries_.end()) {
      RETURN_IF_ERROR(AddInPlace(ctx, &found->second.value, entry.value));
    } else {
      RETURN_IF_ERROR(sum->Insert(entry.key, entry.value));
    }
  }
  return Variant{std::move(sum)};
}

Status TensorMapValue::Insert(const Tensor& key, Tensor value) {
  if (!MayBeKey(key)) {
    return InvalidArgument("key must not have type ", Name(key.dtype()),
                           ": such tensors have no bytes to compare");
  }
  RETURN_IF_ERROR(Admit(value));
  entries_[BytesOfKey(key)] = {key, std::move(value)};
  return OkStatus();
}

const Tensor* TensorMapValue::Find(const Tensor& key) const {
  if (!MayBeKey(key)) return nullptr;
  const auto found = entries_.find(BytesOfKey(key));
  return found == entries_.end() ? nullptr : &found->second.value;
}

bool TensorMapValue::Erase(const Tensor& key) {
  return MayBeKey(key) && entries_.erase(BytesOfKey(key)) > 0;
}

std::vector<Tensor> TensorMapValue::Keys() const {
  std::vector<Tensor> keys;
  for (const auto& [bytes, entry] : entries_) keys.push_back(entry.key);
  return keys;
}

StatusOr<const TensorMapValue*> MapInput(KernelContext& ctx, int i) {
  const Tensor& handle = ctx.input(i);
  if (handle.rank() != 0) {
    return InvalidArgument("Input handle must be a scalar, has shape ", handle.shape().ToString());
  }
  const VariantValue* const value = handle.scalar<Variant>().value.get();
  const auto* map = dynamic_cast<const TensorMapValue*>(value);
  if (map != nullptr) return map;
  return InvalidArgument("Input handle is not a map. Saw: '",
                         value == nullptr ? "nothing" : value->ToString(), "'");
}

StatusOr<OwnMap> TakeMap(KernelContext& ctx, int i) {
  ASSIGN_OR_RETURN(const TensorMapValue* map, MapInput(ctx, i));
  Tensor handle = ctx.TakeInput(i);
  if (!IsUnshared(handle)) {
    handle = Tensor::Scalar(Variant{std::make_shared<TensorMapValue>(*map)});
  }
  VariantValue* const own = handle.scalar<Variant>().value.get();
  return OwnMap{std::move(handle), static_cast<TensorMapValue*>(own)};
}

}  // namespace penstock
