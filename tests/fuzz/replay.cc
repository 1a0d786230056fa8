// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target on its corpus: on each file unchanged, and then on damaged copies. The damage
// is the same in every run. Inputs that once found a bug stay in the corpus as regression tests.
//
//   replay [--damaged=N] FILE...      N damaged copies of each file, 200 by default
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

int damaged = 200;
std::vector<std::string> files;

// Keeps the bytes that crash the target in the test's outputs (bazel-testlogs/.../test.outputs).
void Keep(const std::string& bytes) {
  static const int file = [] {
    const char* const folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    return folder == nullptr
               ? -1
               : open((std::string(folder) + "/last_input").c_str(), O_CREAT | O_WRONLY, 0644);
  }();
  if (file < 0) return;
  // Opens the file only once: if a file is reopened and truncated, file systems immediately write
  // it to disk, which takes 5 ms.
  ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(bytes.size())), 0);
}

void Give(const std::string& bytes) {
  Keep(bytes);
  // Copies the bytes to a buffer of exactly their size, so that AddressSanitizer detects each read
  // past its end.
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

// Returns `bytes` with some of them changed, removed or doubled, or with the end cut off.
std::string Damage(std::string bytes, std::mt19937_64& random) {
  const auto below = [&random](size_t n) { return n == 0 ? 0 : random() % n; };
  for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = below(bytes.size()), count = std::min(1 + below(16), bytes.size() - at);
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = "\x00\x01\x7f\x80\xff"[below(5)];
        break;
      case 2:
        bytes.erase(at, count);
        break;
      case 3:
        bytes.insert(below(bytes.size()), bytes.substr(at, count));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

TEST(Fuzz, CorpusIsSurvived) {
  ASSERT_FALSE(files.empty()) << "no corpus";
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path;
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    Give(bytes);
    std::mt19937_64 random(bytes.size());
    for (int i = 0; i < damaged; ++i) Give(Damage(bytes, random));
  }
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--damaged=")) {
      files.emplace_back(argv[i]);
    } else if (!absl::SimpleAtoi(argument, &damaged)) {
      std::fprintf(stderr, "%s: must be a number\n", argv[i]);
      return 2;
    }
  }
  std::sort(files.begin(), files.end());
  return RUN_ALL_TESTS();
}
