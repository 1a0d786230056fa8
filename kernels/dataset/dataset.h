// SPDX-License-Identifier: Apache-2.0
//
// Dataset: describes a sequence of elements, without reading them; DatasetIterator: one pass over
// the sequence.
//
// A Dataset is immutable and thread-safe; many iterators may read it at once. tf.data's ops pass
// datasets on as the values of variant tensors, which do not leave the process that made them. An
// element is a list of tensors, its components.
//
// A DatasetIterator has one caller at a time, on any thread. It may have threads of its own that
// read ahead; its destructor ends them.
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
class IteratorCalls;  // captured_function.h

// The types and shapes of the components of all elements.
struct ElementSpec {
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // as many as types
};
// InvalidArgument, with TensorFlow's text, unless elements with the types (CheckTypes) or shapes
// (CheckShapes) of `received` may be used where `expected` is declared.
Status CheckTypes(const ElementSpec& expected, const ElementSpec& received);
Status CheckShapes(const ElementSpec& expected, const ElementSpec& received);

// The context of a call of an iterator. Borrowed during the call, except that `threads`, `env`,
// `resources` and `calls` outlive the iterator. When a step's deadline passes, the step is
// cancelled.
struct IteratorContext {
  Scheduler* threads = nullptr;
  Env* env = nullptr;
  ResourceStore* resources = nullptr;
  Cancellation* cancellation = nullptr;
  int64_t step_id = 0;
  UpdateOrigin origin = {};  // origin of the changes that the call makes
  // The state of the functions that the pipeline calls. Null: each iterator of the pipeline has a
  // state of its own.
  IteratorCalls* calls = nullptr;

  CallPlace place() const {
    return {.resources = resources, .cancellation = cancellation, .step_id = step_id};
  }
  // Returns a copy with another cancellation, for work that outlives the call. Its changes belong
  // to no step.
  IteratorContext With(Cancellation* other) const {
    IteratorContext copy = *this;
    copy.cancellation = other;
    copy.origin = {};
    return copy;
  }
};

class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // Replaces `*element` by the next element. After the last element, this call and all further ones
  // set `*end`. Returns the error if the element cannot be made; the next call continues with the
  // following element. Returns the cancellation's status if the step is cancelled.
  virtual Status GetNext(const IteratorContext& ctx, Element* element, bool* end) = 0;
  // Returns true if GetNext never waits for files or other threads. Such an iterator may be called
  // on a thread of the pool.
  virtual bool NeverWaits() const { return false; }
  // Returns true if the next call of GetNext does not wait.
  virtual bool ReadyNow() const { return NeverWaits(); }

  // Writes the state. A new iterator of an equal dataset can continue from it. Unimplemented if
  // this iterator cannot be saved.
  virtual Status Save(const IteratorContext& ctx, StateWriter* writer) = 0;
  // Continues from a saved state. REQUIRES: GetNext has not been called. InvalidArgument if the
  // state, which may come from outside the process, does not fit; the iterator must then not be
  // used.
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
  // Returns the number of elements, kInfiniteCardinality, or kUnknownCardinality if the number is
  // not known without reading them.
  virtual int64_t Cardinality() const { return kUnknownCardinality; }
  // Returns the name, such as "Batch", that appears in errors and in saved states.
  virtual const char* Name() const = 0;

  const ElementSpec& spec() const { return spec_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Dataset& input(int i = 0) const { return *inputs_[i]; }

  // Returns a pointer to `dataset` that keeps it alive.
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

// A dataset as the value of a variant tensor.
class DatasetValue final : public VariantValue {
 public:
  // The largest depth of nested datasets. Their iterators call each other recursively, so the stack
  // limits the depth.
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

// Returns the dataset in a scalar variant tensor. InvalidArgument if it holds none.
StatusOr<DatasetPtr> DatasetOf(const Tensor& tensor);

// Allocates a tensor in host memory; its size may come from an untrusted source. ResourceExhausted
// if there is no memory for it.
StatusOr<Tensor> NewTensor(DType dtype, const Shape& shape);

}  // namespace penstock
