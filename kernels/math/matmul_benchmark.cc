// SPDX-License-Identifier: Apache-2.0
//
// Measures MatMul on typical shapes of neural networks, by the kernel and by each library alone, on
// one thread. gemm.cc chooses between the libraries by these results.
#include <cblas.h>
#include <dnnl.h>

#include "kernels/math/testing/kernel_loop.h"

extern "C" void omp_set_num_threads(int);

namespace penstock {
namespace {

struct Case {
  int64_t m, k, n;
  bool ta = false, tb = false;
};
const Case kCases[] = {
    {256, 256, 256},
    {512, 512, 512},
    {1024, 1024, 1024},
    {128, 784, 512},
    {128, 512, 512},
    {784, 128, 512, true},
    {128, 512, 512, false, true},
    {128, 512, 10},
    {512, 128, 10, true},
    {128, 10, 512, false, true},
    {20, 400, 800},
    {1, 512, 512},
    {1, 512, 512, false, true},
    {512, 512, 1},
    {2, 512, 512},
    {8, 512, 512},
    {128, 512, 10000},
    {16, 16, 16},
    {64, 64, 64},
};

Tensor Ones(int64_t rows, int64_t columns) {
  Tensor t(DType::kFloat, Shape{rows, columns});
  for (float& v : t.mutable_flat<float>()) v = 1;
  return t;
}

struct Operands {
  explicit Operands(const Case& c)
      : a(c.ta ? Ones(c.k, c.m) : Ones(c.m, c.k)),
        b(c.tb ? Ones(c.n, c.k) : Ones(c.k, c.n)),
        c(Ones(c.m, c.n)) {}
  Tensor a, b, c;
};

void Report(benchmark::State& state, const Case& c) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * c.m * c.k * c.n * state.iterations(), benchmark::Counter::kIsRate);
}

void Kernel(benchmark::State& state, const Case& c, int threads) {
  Operands x(c);
  KernelLoop loop("MatMul", {{"transpose_a", c.ta}, {"transpose_b", c.tb}}, {x.a, x.b},
                  DType::kFloat, threads);
  loop.Run(state);
  Report(state, c);
}

void OpenBlas(benchmark::State& state, const Case& c) {
  Operands x(c);
  openblas_set_num_threads(1);
  for (auto _ : state) {
    cblas_sgemm(CblasRowMajor, c.ta ? CblasTrans : CblasNoTrans, c.tb ? CblasTrans : CblasNoTrans,
                c.m, c.n, c.k, 1, x.a.data<float>(), c.ta ? c.m : c.k, x.b.data<float>(),
                c.tb ? c.k : c.n, 0, x.c.mutable_data<float>(), c.n);
  }
  Report(state, c);
}

void OneDnn(benchmark::State& state, const Case& c) {
  Operands x(c);
  omp_set_num_threads(1);
  for (auto _ : state) {
    dnnl_sgemm(c.ta ? 'T' : 'N', c.tb ? 'T' : 'N', c.m, c.n, c.k, 1, x.a.data<float>(),
               c.ta ? c.m : c.k, x.b.data<float>(), c.tb ? c.k : c.n, 0, x.c.mutable_data<float>(),
               c.n);
  }
  Report(state, c);
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    const std::string shape = StrCat(c.m, "x", c.k, "x", c.n, c.ta ? "/TN" : c.tb ? "/NT" : "/NN");
    benchmark::RegisterBenchmark(StrCat("Kernel/", shape).c_str(), Kernel, c, 1);
    benchmark::RegisterBenchmark(StrCat("OpenBLAS/", shape).c_str(), OpenBlas, c);
    benchmark::RegisterBenchmark(StrCat("oneDNN/", shape).c_str(), OneDnn, c);
    benchmark::RegisterBenchmark(StrCat("Kernel2Threads/", shape).c_str(), Kernel, c, 2)
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace penstock
