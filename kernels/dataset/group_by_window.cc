// SPDX-License-Identifier: Apache-2.0
//
// GroupByWindowDataset: collects elements with equal keys in groups. When a group is full, a
// function converts it to a dataset, and the elements of that dataset are the output.
#include <map>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/elements_dataset.h"
#include "kernels/dataset/keyed_input.h"

namespace penstock {
namespace {

struct GroupFunctions {
  CapturedFunction key, reduce, window_size;
};

class GroupByWindowDataset final : public Dataset {
 public:
  GroupByWindowDataset(ElementSpec spec, DatasetPtr input, GroupFunctions functions)
      : Dataset(std::move(spec), {std::move(input)}), functions_(std::move(functions)) {}
  const char* Name() const override { return "GroupByWindow"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall key, ElementCall::New(ctx, functions_.key));
    ASSIGN_OR_RETURN(ElementCall reduce, ElementCall::New(ctx, functions_.reduce));
    ASSIGN_OR_RETURN(ElementCall window_size, ElementCall::New(ctx, functions_.window_size));
    return std::make_unique<Iterator>(Self(this), std::move(input), std::move(key),
                                      std::move(reduce), std::move(window_size));
  }

 private:
  struct Group {
    int64_t window_size = 0;
    std::vector<Element> elements;
  };

  class Iterator final : public KeyedInput {
   public:
    Iterator(std::shared_ptr<const GroupByWindowDataset> dataset, IteratorPtr input,
             ElementCall key, ElementCall reduce, ElementCall window_size)
        : KeyedInput(std::move(input), std::move(key)),
          dataset_(std::move(dataset)),
          reduce_(std::move(reduce)),
          window_size_(std::move(window_size)) {}
    // Returns false because the datasets of groups may wait.
    bool NeverWaits() const override { return false; }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      while (true) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        if (current_ != nullptr) {
          RETURN_IF_ERROR(current_->GetNext(ctx, element, end));
          if (!*end) return OkStatus();
          current_ = nullptr;
          flushed_.clear();
        } else if (!ended_) {
          RETURN_IF_ERROR(ReadOne(ctx));
        } else if (!groups_.empty()) {
          RETURN_IF_ERROR(Flush(ctx, groups_.begin()->first));
        } else {
          *end = true;
          return OkStatus();
        }
      }
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("GroupByWindow");
      writer->Int(ended_);
      writer->Int(static_cast<int64_t>(groups_.size()));
      for (const auto& [key, group] : groups_) {
        writer->Int(key);
        writer->Int(group.window_size);
        SaveElements(group.elements, writer);
      }
      writer->Int(current_ != nullptr);
      if (current_ != nullptr) {
        writer->Int(flushed_key_);
        SaveElements(flushed_, writer);
        RETURN_IF_ERROR(current_->Save(ctx, writer));
      }
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("GroupByWindow"));
      ASSIGN_OR_RETURN(ended_, reader->Int(0, 1));
      ASSIGN_OR_RETURN(const int64_t groups, reader->Int());
      for (int64_t i = 0; i < groups; ++i) {
        ASSIGN_OR_RETURN(const int64_t key, reader->AnyInt());
        Group& group = groups_[key];
        ASSIGN_OR_RETURN(group.window_size, reader->Int(1, INT64_MAX));
        ASSIGN_OR_RETURN(group.elements, RestoreElements(reader));
      }
      ASSIGN_OR_RETURN(const int64_t has_current, reader->Int(0, 1));
      if (has_current == 1) {
        ASSIGN_OR_RETURN(flushed_key_, reader->AnyInt());
        ASSIGN_OR_RETURN(flushed_, RestoreElements(reader));
        RETURN_IF_ERROR(BeginFlushed(ctx));
        RETURN_IF_ERROR(current_->Restore(ctx, reader));
      }
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    static void SaveElements(const std::vector<Element>& elements, StateWriter* writer) {
      writer->Int(static_cast<int64_t>(elements.size()));
      for (const Element& element : elements) writer->Values(element);
    }
    StatusOr<std::vector<Element>> RestoreElements(StateReader* reader) const {
      std::vector<Element> elements;
      ASSIGN_OR_RETURN(const int64_t count, reader->Int());
      for (int64_t i = 0; i < count; ++i) {
        ASSIGN_OR_RETURN(Element element, reader->ElementOf(dataset_->input().spec()));
        elements.push_back(std::move(element));
      }
      return elements;
    }

    Status ReadOne(const IteratorContext& ctx) {
      Element next;
      int64_t key = 0;
      ASSIGN_OR_RETURN(const bool read, ReadKeyed(ctx, &next, &key));
      if (!read) return OkStatus();
      Group& group = groups_[key];
      if (group.window_size == 0) {
        const StatusOr<int64_t> size = window_size_.Number(ctx, {Tensor::Scalar(key)});
        if (!size.ok() || *size <= 0) groups_.erase(key);
        if (!size.ok()) return size.status();
        if (*size <= 0) {
          return InvalidArgument("Window size must be greater than zero, but got ", *size, ".");
        }
        group.window_size = *size;
      }
      group.elements.push_back(std::move(next));
      if (static_cast<int64_t>(group.elements.size()) < group.window_size) return OkStatus();
      return Flush(ctx, key);
    }

    // Calls the function to make the dataset of a group, and removes the group.
    Status Flush(const IteratorContext& ctx, int64_t key) {
      flushed_key_ = key;
      flushed_ = std::move(groups_[key].elements);
      groups_.erase(key);
      return BeginFlushed(ctx);
    }
    Status BeginFlushed(const IteratorContext& ctx) {
      ASSIGN_OR_RETURN(
          const DatasetPtr made,
          reduce_.NewDataset(ctx, {Tensor::Scalar(flushed_key_),
                                   ElementsTensor(dataset_->input().spec(), flushed_)}));
      RETURN_IF_ERROR(CheckTypes(dataset_->spec(), made->spec()));
      ASSIGN_OR_RETURN(current_, made->NewIterator(ctx));
      return OkStatus();
    }

    const std::shared_ptr<const GroupByWindowDataset> dataset_;
    const ElementCall reduce_, window_size_;
    std::map<int64_t, Group> groups_;
    // The group whose dataset is being read: its key, its elements, and the iterator of the
    // dataset, which is null if there is no such group.
    int64_t flushed_key_ = 0;
    std::vector<Element> flushed_;
    IteratorPtr current_;
  };

  const GroupFunctions functions_;
};

class GroupByWindowKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(key_.Init(node, "key_func", "Tkey_func_other_arguments"));
    RETURN_IF_ERROR(reduce_.Init(node, "reduce_func", "Treduce_func_other_arguments"));
    RETURN_IF_ERROR(
        window_size_.Init(node, "window_size_func", "Twindow_size_func_other_arguments"));
    return DatasetKernel::Init(node);
  }

 private:
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    Captures captures(ctx, 1);
    ASSIGN_OR_RETURN(CapturedFunction key, captures.Take(key_));
    ASSIGN_OR_RETURN(CapturedFunction reduce, captures.Take(reduce_));
    ASSIGN_OR_RETURN(CapturedFunction window_size, captures.Take(window_size_));
    return std::make_shared<GroupByWindowDataset>(
        spec(), std::move(input),
        GroupFunctions{std::move(key), std::move(reduce), std::move(window_size)});
  }

  FunctionAttr key_, reduce_, window_size_;
};

DatasetOp GroupOp(bool metadata) {
  return {
      .doc =
          "Groups elements by key. Each window of elements of one key becomes a dataset, and a "
          "function converts it to another dataset, whose elements are returned.",
      .inputs = {{"input_dataset", "variant"},
                 {"key_func_other_arguments", List("Tkey_func_other_arguments")},
                 {"reduce_func_other_arguments", List("Treduce_func_other_arguments")},
                 {"window_size_func_other_arguments", List("Twindow_size_func_other_arguments")}},
      .attrs = {{"key_func", Functions{}},
                {"reduce_func", Functions{}},
                {"window_size_func", Functions{}},
                TypesAttr("Tkey_func_other_arguments", 0),
                TypesAttr("Treduce_func_other_arguments", 0),
                TypesAttr("Twindow_size_func_other_arguments", 0)},
      .metadata = metadata};
}
OP(GroupByWindowDataset) { return GroupOp(true); }
OP(ExperimentalGroupByWindowDataset) { return GroupOp(false); }
KERNEL_ANY_TYPE(GroupByWindowDataset, GroupByWindowKernel);
KERNEL_ANY_TYPE(ExperimentalGroupByWindowDataset, GroupByWindowKernel);

}  // namespace
}  // namespace penstock
