// SPDX-License-Identifier: Apache-2.0
//
// For tests of datasets: makes datasets by running their ops, and reads them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/op/testing/op_runner.h"
#include "kernels/dataset/dataset.h"
#include "kernels/dataset/iterator_state.h"

namespace penstock {

// Owns the objects that an IteratorContext borrows.
class Place {
 public:
  IteratorContext Context() {
    return {.threads = &Scheduler::Real(),
            .env = &Env::Real(),
            .resources = &resources_,
            .cancellation = &cancellation};
  }
  Cancellation cancellation;

 private:
  ResourceStore resources_;
};

inline Tensor Int(int64_t value) { return Tensor::Scalar(value); }

inline Tensor Must(StatusOr<Tensor> tensor) {
  CHECK_OK(tensor.status());
  return *std::move(tensor);
}

inline OpRunner DatasetRunner(const char* op, std::vector<DType> types = {DType::kInt64},
                              std::vector<PartialShape> shapes = {PartialShape()}) {
  return OpRunner(op).Attr("output_types", types).Attr("output_shapes", shapes);
}

inline Tensor Range(int64_t stop) {
  return Must(DatasetRunner("RangeDataset").In(Int(0)).In(Int(stop)).In(Int(1)).Run1());
}

inline IteratorPtr NewIterator(Place& place, const Tensor& dataset) {
  const auto found = DatasetOf(dataset);
  CHECK_OK(found.status());
  auto iterator = (*found)->NewIterator(place.Context());
  CHECK_OK(iterator.status());
  return *std::move(iterator);
}

// Returns the next element as text, "end" after the last element, or the text of the error.
inline std::string Next(Place& place, DatasetIterator& iterator) {
  Element element;
  bool end = false;
  const Status status = iterator.GetNext(place.Context(), &element, &end);
  if (!status.ok()) return std::string(status.message());
  if (end) return "end";
  if (element[0].dtype() == DType::kVariant) return "a window";
  std::string text;
  for (const int64_t number : element[0].flat<int64_t>()) StrAppend(&text, number, " ");
  return text.substr(0, text.size() - 1);
}

inline std::vector<std::string> Rest(Place& place, DatasetIterator& iterator) {
  std::vector<std::string> rest;
  do {
    rest.push_back(Next(place, iterator));
  } while (rest.back() != "end" && rest.size() < 1000);
  return rest;
}

inline std::vector<std::string> All(const Tensor& dataset) {
  Place place;
  return Rest(place, *NewIterator(place, dataset));
}

inline std::vector<Tensor> Save(Place& place, DatasetIterator& iterator) {
  StateWriter writer;
  CHECK_OK(iterator.Save(place.Context(), &writer));
  return writer.Take();
}

}  // namespace penstock
