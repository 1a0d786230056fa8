// SPDX-License-Identifier: Apache-2.0
//
// The ops DynamicTable, which returns a table's handle, DynamicTablePull, -Size, -Erase, -Clear;
// and DynamicTablePart, which returns the part of a table to which a key belongs.
#include <algorithm>
#include <iterator>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/dynamic_table/dynamic_table.h"
#include "kernels/dynamic_table/table_op.h"

namespace penstock {
namespace {

constexpr const char* kInitializers[] = {"constant", "uniform", "normal"};

class TableKernel final : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    std::string initializer;
    RETURN_IF_ERROR(node.Attr("width", &spec_.width));
    RETURN_IF_ERROR(node.Attr("initializer", &initializer));
    RETURN_IF_ERROR(node.Attr("a", &spec_.initializer.a));
    RETURN_IF_ERROR(node.Attr("b", &spec_.initializer.b));
    RETURN_IF_ERROR(node.Attr("seed", &spec_.initializer.seed));
    RETURN_IF_ERROR(node.Attr("slots", &spec_.slots));
    RETURN_IF_ERROR(node.Attr("admit_after", &spec_.admit_after));
    RETURN_IF_ERROR(node.Attr("default_value", &spec_.default_value));
    RETURN_IF_ERROR(node.Attr("filter_counters", &spec_.filter_counters));
    RETURN_IF_ERROR(node.Attr("max_rows", &spec_.max_rows));
    RETURN_IF_ERROR(node.Attr("max_bytes", &spec_.max_bytes));
    RETURN_IF_ERROR(node.Attr("max_age", &spec_.max_age));
    RETURN_IF_ERROR(node.Attr("spill_directory", &spec_.spill_directory));
    RETURN_IF_ERROR(node.Attr("spill_max_bytes", &spec_.spill_max_bytes));
    const auto* const kind =
        std::find(std::begin(kInitializers), std::end(kInitializers), initializer);
    spec_.initializer.kind = static_cast<RowInitializer::Kind>(kind - kInitializers);
    RETURN_IF_ERROR(spec_.Check());
    return HandleKernel::Init(node);
  }

 protected:
  const char* Type() const override { return DynamicTable::kType; }
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    ASSIGN_OR_RETURN(std::shared_ptr<DynamicTable> table,
                     DynamicTable::Make(resource_name(), spec_, *ctx.step().env));
    return std::shared_ptr<Resource>(std::move(table));
  }
  Status Check(const Resource& resource) const override {
    const auto& table = static_cast<const DynamicTable&>(resource);
    const TableSpec& other = table.spec();
    if (other == spec_) return OkStatus();
    if (other.width != spec_.width || other.slots.size() != spec_.slots.size()) {
      return InvalidArgument("table '", table.name(), "' exists with rows of width ", other.width,
                             " and ", other.slots.size(), " slots; this node says width ",
                             spec_.width, " and ", spec_.slots.size(), " slots");
    }
    return InvalidArgument("table '", table.name(),
                           "' exists with another initializer, admission or limit than this node "
                           "says. All programs that share a table must say the same");
  }

 private:
  TableSpec spec_;
};

class PullKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    ASSIGN_OR_RETURN(Tensor rows, table->Pull(ctx.input(1), TableCaller(ctx)));
    ctx.SetOutput(0, std::move(rows));
    return OkStatus();
  }
};

class EraseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    return table->Erase(ctx.input(1), TableCaller(ctx));
  }
};

class ClearKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    return table->Import({}, TableCaller(ctx));
  }
};

class SizeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    ctx.SetOutput(0, Tensor::Scalar<int64_t>(table->size()));
    return OkStatus();
  }
};

class PartKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("buckets", &buckets_));
    RETURN_IF_ERROR(node.Attr("parts", &parts_));
    if (parts_ <= buckets_ && buckets_ <= kTableBucketsMax) return OkStatus();
    return InvalidArgument("parts must be at most buckets, and these at most ", kTableBucketsMax,
                           "; are ", parts_, " and ", buckets_);
  }
  Status Compute(KernelContext& ctx) override {
    Tensor* parts;
    RETURN_IF_ERROR(ctx.Allocate(0, ctx.input(0).shape(), &parts));
    const auto ids = ctx.input(0).flat<int64_t>();
    const auto out = parts->mutable_flat<int32_t>();
    for (size_t i = 0; i < ids.size(); ++i) {
      out[i] = static_cast<int32_t>(BucketOf(ids[i], buckets_) % parts_);
    }
    return OkStatus();
  }

 private:
  int64_t buckets_ = 1, parts_ = 1;
};

// Sets the shape of Pull's output: a row for each id.
Status PullShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape ids, s.WithRank(1, 1));
  PartialShape rows({ids.dim(0), -1});
  const auto* const element = s.element(0);
  if (element != nullptr && element->shape.known_rank() && element->shape.rank() == 2) {
    rows.set_dim(1, element->shape.dim(1));
  }
  s.set_output(0, rows);
  return OkStatus();
}

std::vector<Gradient> PullGradient(const GradientScope& g) {
  if (!g.has_dy()) return {Gradient(), Gradient()};
  // A table has no fixed number of rows, so it has no dense gradient.
  const Output dense_shape = g.Const(Tensor::Vector<int64_t>({INT64_MAX, INT64_MAX}));
  return {Gradient(g.dy(), g.x(1), dense_shape), Gradient()};
}

Status HandleShape(ShapeScope& s) {
  RETURN_IF_ERROR(ScalarShape(s));
  s.set_output_element(0, {DType::kFloat, PartialShape({-1, s.attr<int64_t>("width")})});
  return OkStatus();
}

}  // namespace

// Returns the bytes that a table with these attributes may take. A table without a limit counts as
// one of 1 M rows, so that its parts are spread evenly even if there are variables.
double TableBytes(const Attrs& attrs) {
  const auto number = [&](const char* attr) {
    const auto it = attrs.find(attr);
    const auto* const value = it == attrs.end() ? nullptr : it->second.get<int64_t>();
    return value == nullptr ? 0 : static_cast<double>(std::max<int64_t>(0, *value));
  };
  const auto slots = attrs.find("slots");
  const auto* const initial =
      slots == attrs.end() ? nullptr : slots->second.get<std::vector<float>>();
  const double states = 1 + (initial == nullptr ? 0 : static_cast<double>(initial->size()));
  const double row = number("width") * states * sizeof(float);
  constexpr double kRows = 1e6;
  const double bytes = row * (number("max_rows") > 0 ? number("max_rows") : kRows);
  return number("max_bytes") > 0 ? std::min(bytes, number("max_bytes")) : bytes;
}

OP(DynamicTable) {
  return {
      .doc =
          "Makes a table of rows of `width` floats. Any int64 is a key; the row of a key is made "
          "when the key is first updated. `initializer` fills a new row: with the constant a, with "
          "uniform numbers from a to b, or with normal numbers of mean a and standard deviation b, "
          "which depend only on seed and key. `slots` has the initial value of each optimizer "
          "slot. With `admit_after`, a key gets its row with its admit_after-th update and reads "
          "as default_value before; updates are counted in filter_counters bytes. If there are "
          "more than max_rows rows, or more than max_bytes of memory, the least recently updated "
          "rows are dropped; so are rows without an update for more than max_age steps. 0 means no "
          "limit. With spill_directory, rows beyond max_rows or max_bytes are kept in files there, "
          "of at most spill_max_bytes in rows; reads leave them in the files, and an update moves "
          "its row back to memory.",
      .outputs = {{"table", "resource"}},
      .attrs = {{"width", Ints{.min = 1}},
                {"initializer", OneOf{{"constant", "uniform", "normal"}}, "constant"},
                {"a", 0.0f},
                {"b", 0.0f},
                {"seed", int64_t{0}},
                {"slots", FloatList{}, std::vector<float>{}},
                {"admit_after", int64_t{1}},
                {"default_value", 0.0f},
                {"filter_counters", int64_t{1 << 20}},
                {"max_rows", int64_t{0}},
                {"max_bytes", int64_t{0}},
                {"max_age", int64_t{0}},
                {"spill_directory", ""},
                {"spill_max_bytes", int64_t{0}},
                {"container", ""},
                {"shared_name", ""}},
      .shape = HandleShape,
      .gradient = NoGradient,
      .examples = {Example{.attrs = {{"width", int64_t{2}}}}},
      .stateful = true,
      .holds_parameters = true,
      .state_bytes = TableBytes,
  };
}
KERNEL_ANY_TYPE(DynamicTable, TableKernel);

OP(DynamicTablePull) {
  OpDef op = TableOp(
      "Returns the rows of ids, which may repeat. An id without a row reads as the row "
      "that it would get, or as the table's default_value if admit_after is set. Does "
      "not change the table.",
      {{"ids", "int64"}}, {{"rows", "float"}});
  op.shape = PullShape;
  op.gradient = PullGradient;
  op.only_reads = true;
  return op;
}
KERNEL_ANY_TYPE(DynamicTablePull, PullKernel);

OP(DynamicTableErase) {
  OpDef op = TableOp("Deletes the rows of ids; ignores ids without a row.", {{"ids", "int64"}}, {});
  op.shape = NoOutputs;
  return op;
}
KERNEL_ANY_TYPE(DynamicTableErase, EraseKernel);

OP(DynamicTableClear) {
  OpDef op = TableOp("Deletes all rows.", {}, {});
  op.shape = NoOutputs;
  return op;
}
KERNEL_ANY_TYPE(DynamicTableClear, ClearKernel);

OP(DynamicTableSize) {
  OpDef op = TableOp("Returns the number of rows.", {}, {{"size", "int64"}});
  op.shape = ScalarShape;
  op.only_reads = true;
  return op;
}
KERNEL_ANY_TYPE(DynamicTableSize, SizeKernel);

OP(DynamicTablePart) {
  return {
      .doc =
          "Returns the part of a table, from 0 to `parts` - 1, that has each id. All ids of "
          "one of the `buckets` buckets are in the same part.",
      .inputs = {{"ids", "int64"}},
      .outputs = {{"part", "int32"}},
      .attrs = {{"buckets", Ints{.min = 1}}, {"parts", Ints{.min = 1}}},
      .shape = SameShape,
      .gradient = NoGradient,
      .examples = {Example{.inputs = {{{{3}}}},
                           .attrs = {{"buckets", int64_t{4}}, {"parts", int64_t{2}}}}},
  };
}
KERNEL_ANY_TYPE(DynamicTablePart, PartKernel);

}  // namespace penstock
