// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/ragged_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

const bool registered = RegisterVariantDecoder(RaggedValue::kTypeName, RaggedValue::Decode);

bool HaveEqualSplits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

}  // namespace

StatusOr<Variant> RaggedValue::Of(std::vector<Tensor> splits, Tensor values) {
  auto made = std::make_shared<RaggedValue>();
  RETURN_IF_ERROR(made->Admit(values));
  made->splits_ = std::move(splits);
  made->values_ = std::move(values);
  return Variant{std::move(made)};
}

std::string RaggedValue::ToString() const {
  return StrCat("a ragged tensor of ", splits_.size(), " ragged dimensions: ", values_.ToString());
}

Status RaggedValue::Encode(std::string* metadata, std::vector<Tensor>* tensors) const {
  metadata->clear();
  *tensors = splits_;
  tensors->push_back(values_);
  return OkStatus();
}

StatusOr<Variant> RaggedValue::ZerosLike(KernelContext& ctx) const {
  ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(ctx, values_));
  return Of(splits_, std::move(zeros));
}

StatusOr<Variant> RaggedValue::Plus(KernelContext& ctx, const VariantValue& other) const {
  const auto* ragged = dynamic_cast<const RaggedValue*>(&other);
  if (ragged == nullptr) {
    return InvalidArgument("a ragged tensor and a variant of type '", other.TypeName(),
                           "' have no sum");
  }
  if (!std::equal(splits_.begin(), splits_.end(), ragged->splits_.begin(), ragged->splits_.end(),
                  HaveEqualSplits)) {
    return InvalidArgument("ragged tensors with different row splits have no sum");
  }
  Tensor sum = values_;
  RETURN_IF_ERROR(AddInPlace(ctx, &sum, ragged->values_));
  return Of(splits_, std::move(sum));
}

StatusOr<Variant> RaggedValue::Decode(const std::string&, const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return InvalidArgument("a variant that is a ragged tensor has no values");
  std::vector<Tensor> splits(tensors.begin(), tensors.end() - 1);
  for (const Tensor& tensor : splits) {
    const bool ints = tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kInt64;
    if (ints && tensor.rank() == 1 && tensor.num_elements() > 0) continue;
    return InvalidArgument("row splits in a variant must be a vector of int32 or int64, are ",
                           tensor.ToString());
  }
  return Of(std::move(splits), tensors.back());
}

}  // namespace penstock
