// SPDX-License-Identifier: Apache-2.0
//
// TestTable: a dynamic table in a store of its own, and the ops on it.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "core/tensor/tensor.h"

namespace penstock {

inline Tensor Ids(const std::vector<int64_t>& ids) { return Tensor::Vector(ids); }

// One table, and ops on it.
class TestTable {
 public:
  explicit TestTable(Attrs attrs, std::shared_ptr<ResourceStore> store = nullptr)
      : store_(store ? std::move(store) : std::make_shared<ResourceStore>()) {
    attrs["shared_name"] = "t";
    OpRunner run("DynamicTable", store_);
    for (const auto& [name, value] : attrs) run.Attr(name, value);
    const auto handle = run.Run1();
    status_ = handle.status();
    if (handle.ok()) handle_ = *handle;
  }
  const Status& status() const { return status_; }
  const std::shared_ptr<ResourceStore>& store() const { return store_; }

  StatusOr<std::vector<Tensor>> Do(const std::string& op, const std::vector<Tensor>& inputs) const {
    OpRunner run(op, store_);
    run.In(handle_);
    for (const Tensor& input : inputs) run.In(input);
    return run.Run();
  }
  Tensor Pull(const std::vector<int64_t>& ids) const {
    const auto rows = Do("DynamicTablePull", {Ids(ids)});
    CHECK_OK(rows.status());
    return (*rows)[0];
  }
  Status Apply(const std::string& method, const std::vector<int64_t>& ids, const Tensor& grad,
               std::vector<float> hyperparameters, int64_t step = 0) const {
    std::vector<Tensor> inputs = {Ids(ids), grad, Tensor::Scalar(step)};
    for (const float h : hyperparameters) inputs.push_back(Tensor::Scalar(h));
    return Do("DynamicTableApply" + method, inputs).status();
  }
  int64_t Size() const { return (*Do("DynamicTableSize", {}))[0].scalar<int64_t>(); }
  // Returns keys, values, slots, updates and steps, each for all wanted buckets.
  StatusOr<std::vector<Tensor>> TryExport(int64_t buckets,
                                          const std::vector<int64_t>& wanted) const {
    OpRunner run("DynamicTableExport", store_);
    return run.In(handle_)
        .Attr("N", static_cast<int64_t>(wanted.size()))
        .Attr("buckets", buckets)
        .Attr("wanted", wanted)
        .Run();
  }
  std::vector<Tensor> Export(int64_t buckets, const std::vector<int64_t>& wanted) const {
    const auto rows = TryExport(buckets, wanted);
    CHECK_OK(rows.status());
    return *rows;
  }
  // Returns the same tensors, followed by the dropped keys and the bases.
  std::vector<Tensor> ExportChanges(int64_t buckets, const std::vector<int64_t>& wanted,
                                    const std::string& mark, const std::string& base) const {
    OpRunner run("DynamicTableExportChanges", store_);
    const auto rows = run.In(handle_)
                          .In(Tensor::Scalar(mark))
                          .In(Tensor::Scalar(base))
                          .In(Tensor::Scalar(base))
                          .Attr("N", static_cast<int64_t>(wanted.size()))
                          .Attr("buckets", buckets)
                          .Attr("wanted", wanted)
                          .Run();
    CHECK_OK(rows.status());
    return *rows;
  }
  // Merges `changes`, the result of ExportChanges, into the table; returns the op's status.
  Status Merge(int64_t buckets, const std::vector<int64_t>& wanted,
               const std::vector<Tensor>& changes) const {
    OpRunner run("DynamicTableMerge", store_);
    run.In(handle_).Attr("buckets", buckets).Attr("wanted", wanted);
    for (auto begin = changes.begin(); begin != changes.end(); begin += std::ssize(wanted)) {
      run.InList({begin, begin + std::ssize(wanted)});
    }
    return run.Run().status();
  }
  Status Import(const std::vector<std::vector<Tensor>>& lists) const {
    OpRunner run("DynamicTableImport", store_);
    run.In(handle_);
    for (const auto& list : lists) run.InList(list);
    return run.Run().status();
  }

 private:
  const std::shared_ptr<ResourceStore> store_;
  Status status_;
  Tensor handle_;
};

// Returns the attributes of a table with uniformly distributed initial values.
inline Attrs Uniform(int64_t width, std::vector<float> slots = {}) {
  return {{"width", width}, {"initializer", "uniform"}, {"a", -1.0f},
          {"b", 1.0f},      {"seed", int64_t{7}},       {"slots", slots}};
}

// Returns random gradients between -1 and 1.
inline Tensor Gradients(std::mt19937_64& random, int64_t rows, int64_t width) {
  Tensor grad(DType::kFloat, {rows, width});
  for (float& x : grad.mutable_flat<float>()) {
    x = static_cast<float>(random() % 2001) / 1000 - 1;
  }
  return grad;
}

}  // namespace penstock
