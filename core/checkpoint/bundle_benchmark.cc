// SPDX-License-Identifier: Apache-2.0
//
// Measures saving (durably) and restoring 256 MiB, and for comparison plain writes and reads of the
// same bytes.
#include <benchmark/benchmark.h>

#include <cstring>

#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/testing/test_tensors.h"

namespace penstock {
namespace {

constexpr int64_t kRows = 16, kRowElements = 4 << 20;  // 16 tensors of 16 MiB
constexpr int64_t kBytes = kRows * kRowElements * 4;
const char* const kPrefix = "/tmp/penstock_bundle_benchmark/model";

const Tensor& Data() {
  static const Tensor& data = *new Tensor(Counting<float>({kRows, kRowElements}));
  return data;
}

Status Save() {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(Env::Real(), kPrefix));
  for (int64_t row = 0; row < kRows; ++row) {
    RETURN_IF_ERROR(writer->Add(StrCat("w", row), Data().Slice(row, row + 1)));
  }
  return writer->Finish();
}

Status WritePlain() {
  ASSIGN_OR_RETURN(const auto file, Env::Real().NewWritableFile(StrCat(kPrefix, ".plain")));
  RETURN_IF_ERROR(file->Append({static_cast<const char*>(Data().raw_data()), size_t{kBytes}}));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

void Report(benchmark::State& state, const Status& status) {
  if (!status.ok()) state.SkipWithError(std::string(status.message()).c_str());
  state.SetBytesProcessed(state.iterations() * kBytes);
}

void BM_Save(benchmark::State& state) {
  Data();
  Status status;
  for (auto _ : state) status = Save();
  Report(state, status);
}
BENCHMARK(BM_Save)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_WriteAndSync(benchmark::State& state) {
  Status status = Save();
  for (auto _ : state) status = WritePlain();
  Report(state, status);
}
BENCHMARK(BM_WriteAndSync)->Unit(benchmark::kMillisecond)->UseRealTime();

Status Restore() {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(Env::Real(), kPrefix));
  for (int64_t row = 0; row < kRows; ++row) {
    RETURN_IF_ERROR(reader->Read(StrCat("w", row)).status());
  }
  return OkStatus();
}

void BM_Restore(benchmark::State& state) {
  Status status = Save();
  for (auto _ : state) {
    if (status.ok()) status = Restore();
  }
  Report(state, status);
}
BENCHMARK(BM_Restore)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_ReadCached(benchmark::State& state) {
  Status status = Save();
  const auto file = Env::Real().OpenFile(DataPath(kPrefix, 0, 1));
  Tensor to(DType::kFloat, {kRowElements});
  for (auto _ : state) {
    for (int64_t row = 0; row < kRows && status.ok(); ++row) {
      status = (*file)->Read(row * 4 * kRowElements, 4 * kRowElements,
                             static_cast<char*>(to.mutable_raw_data()));
    }
  }
  Report(state, status);
}
BENCHMARK(BM_ReadCached)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace penstock
