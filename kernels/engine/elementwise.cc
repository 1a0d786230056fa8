// SPDX-License-Identifier: Apache-2.0
#include "kernels/engine/elementwise.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

const char* At(const void* base, int64_t index, size_t size) {
  return static_cast<const char*>(base) + index * size;
}
char* At(void* base, int64_t index, size_t size) { return static_cast<char*>(base) + index * size; }

Status CheckTypes(const KernelInit& node, DType in, DType out) {
  for (const EdgeType& type : node.input_types) {
    if (type.dtype != in) {
      return InvalidArgument("node '", node.name, "': an input is ", Name(type.dtype),
                             ", this kernel is for ", Name(in));
    }
  }
  if (node.output_types.size() != 1 || node.output_types[0].dtype != out) {
    return InvalidArgument("node '", node.name, "': ", node.op.name, " of ", Name(in), " gives ",
                           Name(out), ", not ", Name(node.output_types[0].dtype));
  }
  return OkStatus();
}

void RunFloat16(const UnaryLoop& loop, const void* x, void* y, int64_t n) {
  float in[kFloat16Block], out[kFloat16Block];
  for (int64_t i = 0; i < n; i += kFloat16Block) {
    const int64_t m = std::min(kFloat16Block, n - i);
    Float16ToFloat(loop.in, At(x, i, 2), in, m);
    if (IsFloat16(loop.out)) {
      loop.run(in, out, m);
      FloatToFloat16(loop.out, out, At(y, i, 2), m);
    } else {
      loop.run(in, At(y, i, SizeOf(loop.out)), m);
    }
  }
}

void RunFloat16(const BinaryLoop& loop, const BinaryRows& rows) {
  float x[kFloat16Block], y[kFloat16Block], z[kFloat16Block];
  const size_t z_size = SizeOf(loop.out);
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (int64_t i = 0; i < rows.n; i += kFloat16Block) {
      const int64_t m = std::min(kFloat16Block, rows.n - i);
      const int64_t x_at = r * rows.x_step + (rows.x_repeats ? 0 : i);
      const int64_t y_at = r * rows.y_step + (rows.y_repeats ? 0 : i);
      Float16ToFloat(loop.in, At(rows.x, x_at, 2), x, rows.x_repeats ? 1 : m);
      Float16ToFloat(loop.in, At(rows.y, y_at, 2), y, rows.y_repeats ? 1 : m);
      void* out = At(rows.z, r * rows.n + i, z_size);
      const bool convert = IsFloat16(loop.out);
      loop.run({x, y, convert ? z : out, 1, m, 0, 0, rows.x_repeats, rows.y_repeats});
      if (convert) FloatToFloat16(loop.out, z, out, m);
    }
  }
}

void RunRows(const BinaryLoop& loop, const BinaryRows& rows) {
  IsFloat16(loop.in) ? RunFloat16(loop, rows) : loop.run(rows);
}

// Runs the loop on a panel. If many short rows of one operand are combined with one row of the
// other operand, such as a bias, first fills a block with copies of that one row. Each call of the
// inner loop then computes many rows.
void RunPanel(const BinaryLoop& loop, size_t size, const BinaryRows& rows) {
  constexpr int64_t kBlock = 512;
  const bool x_same = !rows.x_repeats && rows.x_step == 0,
             y_same = !rows.y_repeats && rows.y_step == 0;
  const bool other_dense =
      x_same ? !rows.y_repeats && rows.y_step == rows.n : !rows.x_repeats && rows.x_step == rows.n;
  if (x_same == y_same || !other_dense || rows.n > kBlock / 8 || rows.rows < 8 ||
      !IsPlain(loop.in)) {
    return RunRows(loop, rows);
  }
  alignas(64) char block[kBlock * 16];
  const int64_t together = std::min(rows.rows, kBlock / rows.n);
  const int64_t row_bytes = rows.n * size;
  std::memcpy(block, x_same ? rows.x : rows.y, row_bytes);
  for (int64_t done = 1; done < together; done *= 2) {
    std::memcpy(block + done * row_bytes, block, std::min(done, together - done) * row_bytes);
  }
  const size_t z_size = SizeOf(loop.out);
  for (int64_t r = 0; r < rows.rows; r += together) {
    const int64_t n = std::min(together, rows.rows - r) * rows.n;
    const int64_t at = r * rows.n;
    RunRows(loop, {.x = x_same ? block : At(rows.x, at, size),
                   .y = y_same ? block : At(rows.y, at, size),
                   .z = At(rows.z, at, z_size),
                   .rows = 1,
                   .n = n});
  }
}

}  // namespace

UnaryKernel::UnaryKernel(const UnaryLoop& loop)
    : loop_(loop), x_size_(SizeOf(loop.in)), y_size_(SizeOf(loop.out)) {}

Status UnaryKernel::Init(const KernelInit& node) { return CheckTypes(node, loop_.in, loop_.out); }

Status UnaryKernel::Compute(KernelContext& ctx) {
  const Shape shape = ctx.input(0).shape();
  Tensor* y;
  RETURN_IF_ERROR(loop_.in == loop_.out ? ctx.ForwardOrAllocate(0, 0, shape, &y)
                                        : ctx.Allocate(0, shape, &y));
  const void* in = ctx.input(0).raw_data();
  void* out = y->mutable_raw_data();
  const int64_t n = shape.num_elements();
  if (n == 0) return OkStatus();
  if (loop_.launch != nullptr) return loop_.launch(ctx.stream(), in, out, n);
  const bool float16 = IsFloat16(loop_.in);
  ForEachBlock(ctx.threads(), n, loop_.nanos, [&](int64_t begin, int64_t end) {
    const void* x = At(in, begin, x_size_);
    void* y = At(out, begin, y_size_);
    float16 ? RunFloat16(loop_, x, y, end - begin) : loop_.run(x, y, end - begin);
  });
  return OkStatus();
}

bool UnaryKernel::RunsInBlocks() const {
  return loop_.run != nullptr && IsPlain(loop_.in) && IsPlain(loop_.out);
}

double UnaryKernel::BlockNanos() const {
  return loop_.nanos - TrafficNanos(x_size_ + y_size_) + kCacheNanos;
}

void UnaryKernel::RunBlock(const BlockInput* inputs, void* output, int64_t n) const {
  IsFloat16(loop_.in) ? RunFloat16(loop_, inputs[0].data, output, n)
                      : loop_.run(inputs[0].data, output, n);
}

BinaryKernel::BinaryKernel(const BinaryLoop& loop)
    : loop_(loop), in_size_(SizeOf(loop.in)), out_size_(SizeOf(loop.out)) {}

Status BinaryKernel::Init(const KernelInit& node) { return CheckTypes(node, loop_.in, loop_.out); }

Status BinaryKernel::Compute(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  // Most calls need no plan: equal shapes, or a scalar on one side.
  const bool flat = x.shape() == y.shape() || x.rank() == 0 || y.rank() == 0;
  if (flat && loop_.launch == nullptr) {
    const Tensor& larger = x.rank() != 0 ? x : y;
    RETURN_IF_ERROR(CheckRight(y, larger.num_elements()));
    Tensor* z;
    RETURN_IF_ERROR(AllocateOutput(ctx, larger.shape(), &z));
    RunFlat(ctx, z);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make({&x.shape(), &y.shape()}));
  RETURN_IF_ERROR(CheckRight(y, plan.output().num_elements()));
  Tensor* z;
  RETURN_IF_ERROR(AllocateOutput(ctx, plan.output(), &z));
  if (z->num_elements() == 0) return OkStatus();
  if (loop_.launch != nullptr) {
    return loop_.launch(ctx.stream(), plan, x.raw_data(), y.raw_data(), z->mutable_raw_data());
  }
  RunBroadcast(ctx, plan, z);
  return OkStatus();
}

bool BinaryKernel::RunsInBlocks() const {
  return loop_.run != nullptr && loop_.invalid == nullptr && IsPlain(loop_.in) &&
         IsPlain(loop_.out);
}

double BinaryKernel::BlockNanos() const {
  return loop_.nanos - TrafficNanos(2 * in_size_ + out_size_) + kCacheNanos;
}

void BinaryKernel::RunBlock(const BlockInput* inputs, void* output, int64_t n) const {
  RunRows(loop_, {.x = inputs[0].data,
                  .y = inputs[1].data,
                  .z = output,
                  .rows = 1,
                  .n = n,
                  .x_repeats = inputs[0].repeats,
                  .y_repeats = inputs[1].repeats});
}

Status BinaryKernel::CheckRight(const Tensor& y, int64_t num_outputs) const {
  if (loop_.invalid == nullptr || num_outputs == 0) return OkStatus();
  const char* message = loop_.invalid(y.raw_data(), y.num_elements());
  return message == nullptr ? OkStatus() : InvalidArgument(message);
}

Status BinaryKernel::AllocateOutput(KernelContext& ctx, const Shape& shape, Tensor** z) const {
  if (loop_.in == loop_.out) {
    for (int i = 0; i < 2; ++i) {
      const Tensor& input = ctx.input(i);
      if (input.num_elements() == shape.num_elements() && input.unique()) {
        return ctx.ForwardOrAllocate(i, 0, shape, z);
      }
    }
  }
  return ctx.Allocate(0, shape, z);
}

void BinaryKernel::RunFlat(KernelContext& ctx, Tensor* z) const {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  const int64_t n = z->num_elements();
  // A scalar operand repeats for all elements of the other one.
  const bool x_repeats = x.rank() == 0 && n > 1;
  const bool y_repeats = y.rank() == 0 && n > 1;
  ForEachBlock(ctx.threads(), n, loop_.nanos, [&](int64_t begin, int64_t end) {
    RunRows(loop_, {At(x.raw_data(), x_repeats ? 0 : begin, in_size_),
                    At(y.raw_data(), y_repeats ? 0 : begin, in_size_),
                    At(z->mutable_raw_data(), begin, out_size_), 1, end - begin, 0, 0, x_repeats,
                    y_repeats});
  });
}

void BinaryKernel::RunBroadcast(KernelContext& ctx, const BroadcastPlan& plan, Tensor* z) const {
  const void* x = ctx.input(0).raw_data();
  const void* y = ctx.input(1).raw_data();
  plan.ForEachPanel(ctx.threads(), loop_.nanos, [&](const BroadcastPanel& p) {
    BinaryRows rows = {At(x, p.offset[0], in_size_),
                       At(y, p.offset[1], in_size_),
                       At(z->mutable_raw_data(), p.out, out_size_),
                       p.rows,
                       p.n,
                       p.row_step[0],
                       p.row_step[1],
                       p.repeats[0],
                       p.repeats[1]};
    RunPanel(loop_, in_size_, rows);
  });
}

}  // namespace penstock
