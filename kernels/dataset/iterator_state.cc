// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/iterator_state.h"

#include "kernels/dataset/dataset.h"

namespace penstock {

StatusOr<Tensor> StateReader::Value() {
  if (next_ == values_.size()) {
    return InvalidArgument("the state of an iterator ends early, after ", next_, " tensors");
  }
  return values_[next_++];
}

Status StateReader::Label(const char* label) {
  ASSIGN_OR_RETURN(const std::string found, Text());
  if (found == label) return OkStatus();
  return InvalidArgument("the state of an iterator is that of '", found, "' where '", label,
                         "' is expected: it was saved by another pipeline");
}

StatusOr<int64_t> StateReader::Int(int64_t min, int64_t max) {
  ASSIGN_OR_RETURN(const Tensor value, Value());
  if (value.dtype() != DType::kInt64 || value.num_elements() != 1 ||
      value.scalar<int64_t>() < min || value.scalar<int64_t>() > max) {
    return InvalidArgument("the state of an iterator has ", value.ToString(),
                           " where an int64 in [", min, ", ", max, "] is expected");
  }
  return value.scalar<int64_t>();
}

StatusOr<std::string> StateReader::Text() {
  ASSIGN_OR_RETURN(const Tensor value, Value());
  if (value.dtype() != DType::kString || value.num_elements() != 1) {
    return InvalidArgument("the state of an iterator has ", value.ToString(),
                           " where a string is expected");
  }
  return value.scalar<std::string>();
}

StatusOr<std::vector<Tensor>> StateReader::Values() {
  ASSIGN_OR_RETURN(const int64_t count, Int(0, static_cast<int64_t>(values_.size())));
  std::vector<Tensor> values;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(Tensor value, Value());
    values.push_back(std::move(value));
  }
  return values;
}

StatusOr<std::vector<Tensor>> StateReader::ElementOf(const ElementSpec& spec) {
  ASSIGN_OR_RETURN(std::vector<Tensor> element, Values());
  ElementSpec found;
  for (const Tensor& component : element) found.types.push_back(component.dtype());
  const Status fits = CheckTypes(spec, found);
  if (fits.ok()) return element;
  return InvalidArgument("the state of an iterator has an element of another pipeline: ",
                         fits.message());
}

Status StateReader::Error(Status* status) {
  constexpr int64_t kCodeMax = 16;
  ASSIGN_OR_RETURN(const int64_t code, Int(0, kCodeMax));
  ASSIGN_OR_RETURN(const std::string text, Text());
  *status = Status(static_cast<StatusCode>(code), text);
  return OkStatus();
}

Status StateReader::Result(const ElementSpec& spec, Status* status, std::vector<Tensor>* element) {
  RETURN_IF_ERROR(Error(status));
  ASSIGN_OR_RETURN(*element, status->ok() ? ElementOf(spec) : Values());
  return OkStatus();
}

Status StateReader::AtEnd() const {
  if (next_ == values_.size()) return OkStatus();
  return InvalidArgument("the state of an iterator has ", values_.size() - next_,
                         " tensors too many: it was saved by another pipeline");
}

}  // namespace penstock
