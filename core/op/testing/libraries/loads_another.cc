// SPDX-License-Identifier: Apache-2.0
//
// An op library for tests, with an initialiser that loads another library. Afterwards the
// environment variable PENSTOCK_TEST_NESTED_LOAD holds the result.
#include <cstdlib>

#include "core/op/load_library.h"
#include "core/op/op_library.h"

namespace {

using namespace penstock;  // NOLINT

OP(LoadsAnother) { return {.outputs = {{"y", "float"}}, .shape = ScalarShape}; }

[[maybe_unused]] const int loaded = [] {
  const Status status = LoadLibrary("core/op/testing/libraries/libtriple.so").status();
  return setenv("PENSTOCK_TEST_NESTED_LOAD", std::string(status.message()).c_str(), 1);
}();

}  // namespace
