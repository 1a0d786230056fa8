// SPDX-License-Identifier: Apache-2.0
//
// The ops that use readers.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/data/reader.h"

namespace penstock {
namespace {

using Record = Reader::Record;

template <class T>
Status SetScalar(KernelContext& ctx, T value) {
  Tensor* output = nullptr;
  RETURN_IF_ERROR(ctx.Allocate(0, {}, &output));
  *output->mutable_data<T>() = std::move(value);
  return OkStatus();
}

class ReadKernelBase : public AsyncKernel {
 protected:
  // Reads 1 to `count` records, passes them to `receive`, and calls `done` with the status of
  // `receive`, or with the error of reading.
  static void Read(KernelContext& ctx, int64_t count,
                   Status (*receive)(KernelContext&, std::vector<Record>&), Done done) {
    auto reader = ResourceInput<Reader>(ctx, 0);
    if (!reader.ok()) return std::move(done)(reader.status());
    auto queue = ResourceInput<Queue>(ctx, 1);
    if (!queue.ok()) return std::move(done)(queue.status());
    if (queue.value()->spec().types != std::vector<DType>{DType::kString}) {
      return std::move(done)(InvalidArgument("the reader's queue '", (*queue)->name(),
                                             "' must hold strings, one per element"));
    }
    auto records = std::make_shared<std::vector<Record>>();
    Done ended([records, &ctx, receive, done = std::move(done)](Status status) mutable {
      if (status.ok()) status = receive(ctx, *records);
      std::move(done)(std::move(status));
    });
    (*reader)->Read(*queue, count, records.get(), CallerOf(ctx), std::move(ended));
  }
};

class ReadKernel final : public ReadKernelBase {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override { Read(ctx, 1, One, std::move(done)); }

 private:
  static Status One(KernelContext& ctx, std::vector<Record>& records) {
    Tensor *key = nullptr, *value = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, {}, &key));
    RETURN_IF_ERROR(ctx.Allocate(1, {}, &value));
    *key->mutable_data<std::string>() = std::move(records[0].key);
    *value->mutable_data<std::string>() = std::move(records[0].value);
    return OkStatus();
  }
};

class ReadUpToKernel final : public ReadKernelBase {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    const auto count = IntScalar(ctx.input(2), "num_records");
    if (!count.ok()) return std::move(done)(count.status());
    if (*count < 0) {
      return std::move(done)(InvalidArgument("num_records must be >= 0, is ", *count));
    }
    if (*count == 0) {
      std::vector<Record> none;
      return std::move(done)(OutputRecords(ctx, none));
    }
    Read(ctx, *count, OutputRecords, std::move(done));
  }

 private:
  static Status OutputRecords(KernelContext& ctx, std::vector<Record>& records) {
    const Shape shape({static_cast<int64_t>(records.size())});
    Tensor *keys = nullptr, *values = nullptr;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &keys));
    RETURN_IF_ERROR(ctx.Allocate(1, shape, &values));
    for (size_t i = 0; i < records.size(); ++i) {
      keys->mutable_flat<std::string>()[i] = std::move(records[i].key);
      values->mutable_flat<std::string>()[i] = std::move(records[i].value);
    }
    return OkStatus();
  }
};

template <int64_t (Reader::*kCount)() const>
class CountKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto reader, ResourceInput<Reader>(ctx, 0));
    return SetScalar<int64_t>(ctx, ((*reader).*kCount)());
  }
};

class SerializeStateKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto reader = ResourceInput<Reader>(ctx, 0);
    if (!reader.ok()) return std::move(done)(reader.status());
    auto state = std::make_shared<Reader::State>();
    Done saved([state, &ctx, done = std::move(done)](Status status) mutable {
      if (status.ok()) status = SetScalar<std::string>(ctx, EncodeReaderState(*state));
      std::move(done)(std::move(status));
    });
    (*reader)->Save(state.get(), CallerOf(ctx), std::move(saved));
  }
};

// Restores the state from input 1 or, with kReset, resets to the beginning.
template <bool kReset>
class RestoreStateKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    auto reader = ResourceInput<Reader>(ctx, 0);
    if (!reader.ok()) return std::move(done)(reader.status());
    auto state = StateInput(ctx);
    if (!state.ok()) return std::move(done)(state.status());
    (*reader)->Restore(*std::move(state), CallerOf(ctx), std::move(done));
  }

 private:
  static StatusOr<Reader::State> StateInput(const KernelContext& ctx) {
    if (kReset) return Reader::State();
    const Tensor& input = ctx.input(1);
    if (input.dtype() == DType::kString && input.rank() == 0) {
      return DecodeReaderState(input.scalar<std::string>());
    }
    return InvalidArgument("state must be one string, is ", Name(input.dtype()),
                           input.shape().ToString());
  }
};

Status ReadUpToShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(2, 0).status());
  for (int i = 0; i < 2; ++i) s.set_output(i, PartialShape({PartialShape::kUnknown}));
  return OkStatus();
}
Status RestoreStateShape(ShapeScope& s) { return s.WithRank(1, 0).status(); }

OpDef ReaderUseOp(HandleForm form, std::string doc, std::vector<ArgDef> outputs = {}) {
  return {.doc = std::move(doc),
          .inputs = {{"reader_handle", HandleType(form)}},
          .outputs = std::move(outputs),
          .shape = ScalarShape,
          .gradient = NoGradient,
          .stateful = true};
}
OpDef ReadOp(HandleForm form) {
  OpDef op =
      ReaderUseOp(form,
                  "Reads the next record. If the current unit of work has no more records, takes "
                  "the next unit from the queue.",
                  {{"key", "string"}, {"value", "string"}});
  op.inputs.push_back({"queue_handle", HandleType(form)});
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  op.used_input = 1;
  return op;
}
OpDef ReadUpToOp(HandleForm form) {
  OpDef op =
      ReaderUseOp(form, "Reads up to num_records records; fewer only at the end of a unit of work.",
                  {{"keys", "string"}, {"values", "string"}});
  op.inputs.push_back({"queue_handle", HandleType(form)});
  op.inputs.push_back({"num_records", "int64"});
  op.shape = ReadUpToShape;
  op.may_wait = true;
  op.resource_use = ResourceUse::kTakes;
  op.used_input = 1;
  return op;
}
OpDef NumRecordsOp(HandleForm form) {
  return ReaderUseOp(form, "Returns the number of records that a reader has produced.",
                     {{"records_produced", "int64"}});
}
OpDef NumWorkOp(HandleForm form) {
  return ReaderUseOp(form, "Returns the number of units of work that a reader has read completely.",
                     {{"units_completed", "int64"}});
}
OpDef SerializeOp(HandleForm form) {
  OpDef op =
      ReaderUseOp(form,
                  "Returns the position of a reader (the unit of work, and the record in it) as "
                  "bytes for ReaderRestoreState.",
                  {{"state", "string"}});
  op.may_wait = true;  // waits for its turn, because another operation may be waiting for the queue
  return op;
}
OpDef RestoreOp(HandleForm form) {
  OpDef op = ReaderUseOp(form, "Moves a reader to a position that ReaderSerializeState returned.");
  op.inputs.push_back({"state", "string"});
  op.shape = RestoreStateShape;
  op.may_wait = true;
  return op;
}
OpDef ResetOp(HandleForm form) {
  OpDef op = ReaderUseOp(form, "Resets a reader to its initial state.");
  op.may_wait = true;
  return op;
}

OP(ReaderRead) { return ReadOp(HandleForm::kRef); }
OP(ReaderReadV2) { return ReadOp(HandleForm::kResource); }
OP(ReaderReadUpTo) { return ReadUpToOp(HandleForm::kRef); }
OP(ReaderReadUpToV2) { return ReadUpToOp(HandleForm::kResource); }
OP(ReaderNumRecordsProduced) { return NumRecordsOp(HandleForm::kRef); }
OP(ReaderNumRecordsProducedV2) { return NumRecordsOp(HandleForm::kResource); }
OP(ReaderNumWorkUnitsCompleted) { return NumWorkOp(HandleForm::kRef); }
OP(ReaderNumWorkUnitsCompletedV2) { return NumWorkOp(HandleForm::kResource); }
OP(ReaderSerializeState) { return SerializeOp(HandleForm::kRef); }
OP(ReaderSerializeStateV2) { return SerializeOp(HandleForm::kResource); }
OP(ReaderRestoreState) { return RestoreOp(HandleForm::kRef); }
OP(ReaderRestoreStateV2) { return RestoreOp(HandleForm::kResource); }
OP(ReaderReset) { return ResetOp(HandleForm::kRef); }
OP(ReaderResetV2) { return ResetOp(HandleForm::kResource); }
KERNEL_ANY_TYPE(ReaderRead, ReadKernel);
KERNEL_ANY_TYPE(ReaderReadV2, ReadKernel);
KERNEL_ANY_TYPE(ReaderReadUpTo, ReadUpToKernel);
KERNEL_ANY_TYPE(ReaderReadUpToV2, ReadUpToKernel);
KERNEL_ANY_TYPE(ReaderNumRecordsProduced, CountKernel<&Reader::records_produced>);
KERNEL_ANY_TYPE(ReaderNumRecordsProducedV2, CountKernel<&Reader::records_produced>);
KERNEL_ANY_TYPE(ReaderNumWorkUnitsCompleted, CountKernel<&Reader::work_finished>);
KERNEL_ANY_TYPE(ReaderNumWorkUnitsCompletedV2, CountKernel<&Reader::work_finished>);
KERNEL_ANY_TYPE(ReaderSerializeState, SerializeStateKernel);
KERNEL_ANY_TYPE(ReaderSerializeStateV2, SerializeStateKernel);
KERNEL_ANY_TYPE(ReaderRestoreState, RestoreStateKernel<false>);
KERNEL_ANY_TYPE(ReaderRestoreStateV2, RestoreStateKernel<false>);
KERNEL_ANY_TYPE(ReaderReset, RestoreStateKernel<true>);
KERNEL_ANY_TYPE(ReaderResetV2, RestoreStateKernel<true>);

}  // namespace
}  // namespace penstock
