// SPDX-License-Identifier: Apache-2.0
//
// The ops that savers use: DynamicTableExport and DynamicTableImport for all rows;
// DynamicTableExportChanges and DynamicTableMerge for the rows that have changed since an earlier
// export.
#include <set>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/dynamic_table/dynamic_table.h"
#include "kernels/dynamic_table/table_op.h"

namespace penstock {
namespace {

constexpr int kRowTensors = 5;  // tensors per bucket: keys, values, slots, updates, steps

// Writes the rows to the outputs from output 0 on.
void SetRows(KernelContext& ctx, std::vector<TableRows> rows) {
  const int n = static_cast<int>(rows.size());
  for (int i = 0; i < n; ++i) {
    ctx.SetOutput(i, std::move(rows[i].keys));
    ctx.SetOutput(n + i, std::move(rows[i].values));
    ctx.SetOutput(2 * n + i, std::move(rows[i].slots));
    ctx.SetOutput(3 * n + i, std::move(rows[i].updates));
    ctx.SetOutput(4 * n + i, std::move(rows[i].steps));
  }
}

// Reads the rows of `n` buckets from the inputs from input 1 on.
std::vector<TableRows> GetRows(const KernelContext& ctx, int n) {
  std::vector<TableRows> rows;
  for (int i = 1; i <= n; ++i) {
    rows.push_back({ctx.input(i), ctx.input(n + i), ctx.input(2 * n + i), ctx.input(3 * n + i),
                    ctx.input(4 * n + i)});
  }
  return rows;
}

StatusOr<std::string> StringInput(const KernelContext& ctx, int i, const char* name) {
  const Tensor& tensor = ctx.input(i);
  if (tensor.rank() == 0) return tensor.scalar<std::string>();
  return InvalidArgument(name, " must be a scalar, has shape ", tensor.shape().ToString());
}

// The base of kernels with the attributes `buckets` and `wanted`.
class BucketsKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("buckets", &buckets_));
    RETURN_IF_ERROR(node.Attr("wanted", &wanted_));
    int64_t n;
    RETURN_IF_ERROR(node.Attr("N", &n));
    if (buckets_ > kTableBucketsMax) {
      return InvalidArgument("buckets must be at most ", kTableBucketsMax, ", are ", buckets_);
    }
    if (n != std::ssize(wanted_)) {
      return InvalidArgument("N must be the length of wanted, which is ", wanted_.size());
    }
    std::set<int64_t> seen;
    for (const int64_t bucket : wanted_) {
      if (bucket < 0 || bucket >= buckets_) {
        return InvalidArgument("wanted must be from 0 to ", buckets_ - 1, ", has ", bucket);
      }
      if (!seen.insert(bucket).second) {
        return InvalidArgument("wanted must have each bucket once, has ", bucket, " twice");
      }
    }
    return OkStatus();
  }

 protected:
  int num_wanted() const { return static_cast<int>(wanted_.size()); }

  int64_t buckets_ = 1;
  std::vector<int64_t> wanted_;
};

class ExportKernel final : public BucketsKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    ASSIGN_OR_RETURN(std::vector<TableRows> rows,
                     table->Export(wanted_, buckets_, TableCaller(ctx)));
    SetRows(ctx, std::move(rows));
    return OkStatus();
  }
};

class ImportKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    return table->Import(GetRows(ctx, (ctx.num_inputs() - 1) / kRowTensors), TableCaller(ctx));
  }
};

class ExportChangesKernel final : public BucketsKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    ASSIGN_OR_RETURN(const std::string mark, StringInput(ctx, 1, "mark"));
    ASSIGN_OR_RETURN(const std::string base_mark, StringInput(ctx, 2, "base_mark"));
    ASSIGN_OR_RETURN(const std::string base, StringInput(ctx, 3, "base"));
    ASSIGN_OR_RETURN(TableChanges changes,
                     table->ExportChanges(wanted_, buckets_, mark, base_mark, TableCaller(ctx)));
    SetRows(ctx, std::move(changes.rows));
    for (int i = 0; i < num_wanted(); ++i) {
      ctx.SetOutput(kRowTensors * num_wanted() + i, std::move(changes.dropped[i]));
      ctx.SetOutput((kRowTensors + 1) * num_wanted() + i,
                    Tensor::Scalar(changes.complete ? std::string() : base));
    }
    return OkStatus();
  }
};

class MergeKernel final : public BucketsKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    const int n = num_wanted();
    TableChanges changes{.rows = GetRows(ctx, n)};
    std::vector<int64_t> complete;
    for (int i = 0; i < n; ++i) {
      changes.dropped.push_back(ctx.input(1 + kRowTensors * n + i));
      ASSIGN_OR_RETURN(const std::string base,
                       StringInput(ctx, 1 + (kRowTensors + 1) * n + i, "bases"));
      if (base.empty()) complete.push_back(wanted_[i]);
    }
    return table->Merge(changes, complete, buckets_, TableCaller(ctx));
  }
};

std::vector<ArgDef> RowArgs() {
  return {{"keys", Repeat("N", "int64")},
          {"values", Repeat("N", "float")},
          {"slots", Repeat("N", "float")},
          {"updates", Repeat("N", "int64")},
          {"steps", Repeat("N", "int64")}};
}

std::vector<ArgDef> ChangeArgs() {
  std::vector<ArgDef> args = RowArgs();
  args.push_back({"dropped", Repeat("N", "int64")});
  args.push_back({"bases", Repeat("N", "string")});
  return args;
}

std::vector<AttrDef> BucketAttrs() {
  return {{"N", Ints{.min = 1}}, {"buckets", Ints{.min = 1}}, {"wanted", IntList{}}};
}

}  // namespace

OP(DynamicTableExport) {
  OpDef op = TableOp(
      "Returns the rows of each of the buckets `wanted`, where each key belongs to one "
      "of `buckets` buckets: keys[n], values[n, width], slots[n, slots, width], the "
      "number of updates [n] of each row, and the step [n] of its last update.",
      {}, RowArgs());
  op.attrs = BucketAttrs();
  op.only_reads = true;
  return op;
}
KERNEL_ANY_TYPE(DynamicTableExport, ExportKernel);

OP(DynamicTableImport) {
  OpDef op = TableOp("Replaces all rows by rows that DynamicTableExport returned.", RowArgs(), {});
  op.attrs = {{"N", Ints{.min = 1}}};
  op.shape = NoOutputs;
  return op;
}
KERNEL_ANY_TYPE(DynamicTableImport, ImportKernel);

OP(DynamicTableExportChanges) {
  OpDef op = TableOp(
      "Like DynamicTableExport, but returns only the rows that have changed since the export whose "
      "`mark` was `base_mark`, and in `dropped` the keys[n] whose rows were dropped since; each of "
      "`bases` then equals `base`. If the table does not remember that export, or base_mark is "
      "empty, returns all rows, and the bases are empty. The table remembers its newest four "
      "marks; a mark that is empty is not remembered.",
      {{"mark", "string"}, {"base_mark", "string"}, {"base", "string"}}, ChangeArgs());
  op.attrs = BucketAttrs();
  return op;
}
KERNEL_ANY_TYPE(DynamicTableExportChanges, ExportChangesKernel);

OP(DynamicTableMerge) {
  OpDef op = TableOp(
      "Applies what DynamicTableExportChanges returned with the same attributes: adds and replaces "
      "rows, and deletes those of `dropped`. If one of `bases` is empty, the old rows of its "
      "bucket are deleted first.",
      ChangeArgs(), {});
  op.attrs = BucketAttrs();
  op.shape = NoOutputs;
  return op;
}
KERNEL_ANY_TYPE(DynamicTableMerge, MergeKernel);

}  // namespace penstock
