// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reading of checkpoints. Blocks of a table have checksums, which a fuzzer cannot guess.
// So the input is either the bytes of a file, or the entries of a file that the target builds with
// correct checksums. The first byte selects:
//   'i' the index of a V2 checkpoint       'I' its entries
//   'v' a V1 checkpoint                    'V' its entries
// An entry is two bytes, the lengths of key and value, followed by key and value.
#include <map>
#include <memory>
#include <string>

#include "core/base/check.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/table.h"
#include "core/checkpoint/testing/crash_env.h"
#include "core/checkpoint/v1_reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

constexpr int64_t kDataBytes = 4096;
constexpr int64_t kTensorBytesMax = int64_t{16} << 20;

std::map<std::string, std::string> Entries(string_view bytes) {
  std::map<std::string, std::string> entries;
  while (bytes.size() >= 2) {
    const size_t key = static_cast<uint8_t>(bytes[0]), value = static_cast<uint8_t>(bytes[1]);
    bytes.remove_prefix(2);
    const string_view name = bytes.substr(0, key);
    bytes.remove_prefix(name.size());
    const string_view rest = bytes.substr(0, value);
    bytes.remove_prefix(rest.size());
    entries[std::string(name)] = std::string(rest);
  }
  return entries;
}

void ReadAll(const StatusOr<std::unique_ptr<CheckpointReader>>& reader) {
  if (!reader.ok()) return;
  for (const std::string& name : (*reader)->names()) {
    const StatusOr<SavedTensor> saved = (*reader)->Describe(name);
    // Skip tensors that claim to be large: callers read those in slices.
    if (!saved.ok() || saved->shape.num_elements() > kTensorBytesMax / 16) continue;
    (void)(*reader)->ReadAs(saved->dtype, name, "", CpuAllocator());
  }
}

void Read(string_view input) {
  if (input.empty()) return;
  const char kind = input[0];
  std::string file(input.substr(1));
  if (kind == 'I' || kind == 'V') {
    StatusOr<std::string> built = BuildTable(Entries(input.substr(1)));
    CHECK_OK(built.status());
    file = *std::move(built);
  }
  CrashEnv env;
  const bool v1 = kind == 'v' || kind == 'V';
  CHECK_OK(env.WriteFileAtomically(v1 ? "/c" : "/c.index", file));
  CHECK_OK(env.WriteFileAtomically("/c.data-00000-of-00001", std::string(kDataBytes, 'd')));
  ReadAll(OpenCheckpoint(env, "/c"));
}

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
