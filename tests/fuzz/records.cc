// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reading of TFRecord files: the first byte selects the compression.
#include "core/base/check.h"
#include "core/checkpoint/testing/crash_env.h"
#include "core/record/record_reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

// A file may unpack to any number of records; this target reads at most this many.
constexpr int kRecordsMax = 1000;

void Read(const uint8_t* data, size_t size) {
  if (size == 0) return;
  CrashEnv env;
  const string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  CHECK_OK(env.WriteFileAtomically("/file", bytes));
  constexpr Compression kKinds[] = {Compression::kNone, Compression::kZlib, Compression::kGzip};
  StatusOr<RecordReader> reader = RecordReader::Open(env, "/file", kKinds[data[0] % 3]);
  std::string record;
  for (int i = 0; i < kRecordsMax && reader.ok(); ++i) {
    const StatusOr<bool> more = reader->Read(&record);
    if (!more.ok() || !*more) return;
  }
}

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Read(data, size);
  return 0;
}
