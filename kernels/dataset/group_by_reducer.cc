// SPDX-License-Identifier: Apache-2.0
//
// GroupByReducerDataset: reduces the elements of each key to one element. It reads its whole input
// before the first output; the outputs are in the order of their keys.
#include <map>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/dataset/keyed_input.h"

namespace penstock {
namespace {

struct ReducerFunctions {
  CapturedFunction key, init, reduce, finalize;
};

class GroupByReducerDataset final : public Dataset {
 public:
  GroupByReducerDataset(ElementSpec spec, DatasetPtr input, ReducerFunctions functions)
      : Dataset(std::move(spec), {std::move(input)}), functions_(std::move(functions)) {}
  const char* Name() const override { return "GroupByReducer"; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    ASSIGN_OR_RETURN(IteratorPtr input, this->input().NewIterator(ctx));
    ASSIGN_OR_RETURN(ElementCall key, ElementCall::New(ctx, functions_.key));
    ASSIGN_OR_RETURN(ElementCall init, ElementCall::New(ctx, functions_.init));
    ASSIGN_OR_RETURN(ElementCall reduce, ElementCall::New(ctx, functions_.reduce));
    ASSIGN_OR_RETURN(ElementCall finalize, ElementCall::New(ctx, functions_.finalize));
    return std::make_unique<Iterator>(Self(this), std::move(input), std::move(key), std::move(init),
                                      std::move(reduce), std::move(finalize));
  }

 private:
  class Iterator final : public KeyedInput {
   public:
    Iterator(std::shared_ptr<const GroupByReducerDataset> dataset, IteratorPtr input,
             ElementCall key, ElementCall init, ElementCall reduce, ElementCall finalize)
        : KeyedInput(std::move(input), std::move(key)),
          dataset_(std::move(dataset)),
          init_(std::move(init)),
          reduce_(std::move(reduce)),
          finalize_(std::move(finalize)) {}
    bool NeverWaits() const override {
      return input_->NeverWaits() && !key_.waits() && !init_.waits() && !reduce_.waits() &&
             !finalize_.waits();
    }

    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      while (!ended_) {
        if (ctx.cancellation->cancelled()) return ctx.cancellation->status();
        RETURN_IF_ERROR(ReadOne(ctx));
      }
      *end = states_.empty();
      if (*end) return OkStatus();
      Element state = std::move(states_.begin()->second);
      states_.erase(states_.begin());
      return finalize_.Run(ctx, std::move(state), element);
    }

    Status Save(const IteratorContext& ctx, StateWriter* writer) override {
      writer->Label("GroupByReducer");
      writer->Int(ended_);
      writer->Int(static_cast<int64_t>(states_.size()));
      for (const auto& [key, state] : states_) {
        writer->Int(key);
        writer->Values(state);
      }
      return UnaryIterator::Save(ctx, writer);
    }
    Status Restore(const IteratorContext& ctx, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("GroupByReducer"));
      ASSIGN_OR_RETURN(ended_, reader->Int(0, 1));
      ASSIGN_OR_RETURN(const int64_t states, reader->Int());
      for (int64_t i = 0; i < states; ++i) {
        ASSIGN_OR_RETURN(const int64_t key, reader->AnyInt());
        ASSIGN_OR_RETURN(states_[key], reader->Values());
      }
      return UnaryIterator::Restore(ctx, reader);
    }

   private:
    Status ReadOne(const IteratorContext& ctx) {
      Element next;
      int64_t key = 0;
      ASSIGN_OR_RETURN(const bool read, ReadKeyed(ctx, &next, &key));
      if (!read) return OkStatus();
      auto found = states_.find(key);
      if (found == states_.end()) {
        Element first;
        RETURN_IF_ERROR(init_.Run(ctx, {Tensor::Scalar(key)}, &first));
        found = states_.emplace(key, std::move(first)).first;
      }
      Element args = found->second, state;
      args.insert(args.end(), next.begin(), next.end());
      RETURN_IF_ERROR(reduce_.Run(ctx, std::move(args), &state));
      found->second = std::move(state);
      return OkStatus();
    }

    const std::shared_ptr<const GroupByReducerDataset> dataset_;
    const ElementCall init_, reduce_, finalize_;
    std::map<int64_t, Element> states_;  // by key; without the states whose elements were returned
  };

  const ReducerFunctions functions_;
};

class GroupByReducerKernel final : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(key_.Init(node, "key_func", "Tkey_func_other_arguments"));
    RETURN_IF_ERROR(init_.Init(node, "init_func", "Tinit_func_other_arguments"));
    RETURN_IF_ERROR(reduce_.Init(node, "reduce_func", "Treduce_func_other_arguments"));
    RETURN_IF_ERROR(finalize_.Init(node, "finalize_func", "Tfinalize_func_other_arguments"));
    return DatasetKernel::Init(node);
  }

 private:
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    Captures captures(ctx, 1);
    ASSIGN_OR_RETURN(CapturedFunction key, captures.Take(key_));
    ASSIGN_OR_RETURN(CapturedFunction init, captures.Take(init_));
    ASSIGN_OR_RETURN(CapturedFunction reduce, captures.Take(reduce_));
    ASSIGN_OR_RETURN(CapturedFunction finalize, captures.Take(finalize_));
    return std::make_shared<GroupByReducerDataset>(
        spec(), std::move(input),
        ReducerFunctions{std::move(key), std::move(init), std::move(reduce), std::move(finalize)});
  }

  FunctionAttr key_, init_, reduce_, finalize_;
};

DatasetOp GroupByReducerOp() {
  return {.doc =
              "Groups elements by key, and reduces each group to one element: init_func makes the "
              "first state for a key, reduce_func computes the next state from a state and an "
              "element, and finalize_func computes the output from the last state.",
          .inputs = {{"input_dataset", "variant"},
                     {"key_func_other_arguments", List("Tkey_func_other_arguments")},
                     {"init_func_other_arguments", List("Tinit_func_other_arguments")},
                     {"reduce_func_other_arguments", List("Treduce_func_other_arguments")},
                     {"finalize_func_other_arguments", List("Tfinalize_func_other_arguments")}},
          .attrs = {{"key_func", Functions{}},
                    {"init_func", Functions{}},
                    {"reduce_func", Functions{}},
                    {"finalize_func", Functions{}},
                    TypesAttr("Tkey_func_other_arguments", 0),
                    TypesAttr("Tinit_func_other_arguments", 0),
                    TypesAttr("Treduce_func_other_arguments", 0),
                    TypesAttr("Tfinalize_func_other_arguments", 0)},
          .metadata = false,
          .stateful = true};
}
OP(GroupByReducerDataset) { return GroupByReducerOp(); }
OP(ExperimentalGroupByReducerDataset) { return GroupByReducerOp(); }
KERNEL_ANY_TYPE(GroupByReducerDataset, GroupByReducerKernel);
KERNEL_ANY_TYPE(ExperimentalGroupByReducerDataset, GroupByReducerKernel);

}  // namespace
}  // namespace penstock
