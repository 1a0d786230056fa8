// SPDX-License-Identifier: Apache-2.0
//
// Dataset: a sequence of elements, described but not yet read; DatasetIterator: one reading of it.
//
// A Dataset is immutable and thread-safe; many iterators may read it at once. It is the value of
// the variant tensors along which tf.data's ops hand datasets on, and stays in the process that
// made it. An element is a list of tensors, its components.
//
// A DatasetIterator has one caller at a time, on any thread. It may have threads of its own that
// read ahead; they end with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/callable/callable.h"
#include "core/op/resource.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variant.h"
#include "kernels/dataset/iterator_state.h"

namespace penstock {

using Element = std::vector<Tensor>;

// The types and shapes of the components of all elements.
struct ElementSpec {
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // as many as types
};
// InvalidArgument, in TensorFlow's words, unless elements of `received` may be used where
// `expected` is declared.
Status CheckTypes(const ElementSpec& expected, const ElementSpec& received);
Status CheckShapes(const ElementSpec& expected, const ElementSpec& received);

// The context of a call of an iterator. Borrowed for the time of the call, but for `threads`, `env`
// and `resources`, which outlive the iterator. A step's deadline comes as its cancellation.
struct IteratorContext {
  Scheduler* threads = nullptr;
  Env* env = nullptr;
  ResourceStore* resources = nullptr;
  Cancellation* cancellation = nullptr;
  int64_t step_id = 0;

  CallPlace place() const {
    return {.resources = resources, .cancellation = cancellation, .step_id = step_id};
  }
  // The same for work that outlives the call.
  IteratorContext With(Cancellation* other) const {
    IteratorContext copy = *this;
    copy.cancellation = other;
    return copy;
  }
};

class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // Replaces `*element` by the next element, or sets `*end`; at the end again and again. An error
  // costs the element that could not be made: the next call goes on after it. Ends with the
  // cancellation's status when cancelled.
  virtual Status GetNext(const IteratorContext& ctx, Element* element, bool* end) = 0;
  // True if no call ever waits: neither for files nor for other threads. So it may be called on a
  // thread of the pool.
  virtual bool NeverWaits() const { return false; }
  // True if the next call does not wait.
  virtual bool ReadyNow() const { return NeverWaits(); }

  // The state, for a new iterator of an equal dataset to go on from. Unimplemented if that
  // cannot be done.
  virtual Status Save(const IteratorContext& ctx, StateWriter* writer) = 0;
  // REQUIRES that GetNext has not been called. InvalidArgument if the state, which comes from
  // outside, does not fit; the iterator is of no use then.
  virtual Status Restore(const IteratorContext& ctx, StateReader* reader) = 0;
};

inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;

class Dataset;
using DatasetPtr = std::shared_ptr<const Dataset>;
using IteratorPtr = std::unique_ptr<DatasetIterator>;

class Dataset : public std::enable_shared_from_this<Dataset> {
 public:
  Dataset(ElementSpec spec, std::vector<DatasetPtr> inputs)
      : spec_(std::move(spec)), inputs_(std::move(inputs)) {}
  virtual ~Dataset() = default;

  virtual StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const = 0;
  // The number of elements if it is known without reading.
  virtual int64_t Cardinality() const { return kUnknownCardinality; }
  // Its name in errors and states: "Batch".
  virtual const char* Name() const = 0;

  const ElementSpec& spec() const { return spec_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Dataset& input(int i = 0) const { return *inputs_[i]; }

  // This, as a D that lives as long as the result.
  template <class D>
  static std::shared_ptr<const D> Self(const D* dataset) {
    return std::static_pointer_cast<const D>(dataset->shared_from_this());
  }

 private:
  const ElementSpec spec_;
  const std::vector<DatasetPtr> inputs_;
};

// An iterator with one input.
class UnaryIterator : public DatasetIterator {
 public:
  explicit UnaryIterator(IteratorPtr input) : input_(std::move(input)) {}
  bool NeverWaits() const override { return input_->NeverWaits(); }
  Status Save(const IteratorContext& ctx, StateWriter* writer) override {
    return input_->Save(ctx, writer);
  }
  Status Restore(const IteratorContext& ctx, StateReader* reader) override {
    return input_->Restore(ctx, reader);
  }

 protected:
  IteratorPtr input_;
};

// The value of a variant tensor.
class DatasetValue final : public VariantValue {
 public:
  // Datasets stand on each other so high and no higher: iterators call each other as deep.
  static constexpr int kHeightMax = 1000;

  DatasetValue(DatasetPtr dataset, int height) : dataset_(std::move(dataset)), height_(height) {}
  const char* TypeName() const override { return "tensorflow::DatasetVariantWrapper"; }
  std::string ToString() const override { return StrCat("a dataset: ", dataset_->Name()); }
  Status Encode(std::string*, std::vector<Tensor>*) const override;

  const DatasetPtr& dataset() const { return dataset_; }
  int height() const { return height_; }

 private:
  const DatasetPtr dataset_;
  const int height_;
};

// The dataset in a scalar variant tensor. InvalidArgument if there is none.
StatusOr<DatasetPtr> DatasetOf(const Tensor& tensor);

// A tensor in host memory whose size may come from outside: ResourceExhausted if there is no
// memory for it.
StatusOr<Tensor> NewTensor(DType dtype, const Shape& shape);

}  // namespace penstock
