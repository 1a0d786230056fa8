// SPDX-License-Identifier: Apache-2.0
//
// The interface of a fuzz target, which is libFuzzer's: a function that passes `size` bytes of
// input to the code under test. The function must return 0 for any input: a crash, a failed CHECK,
// a sanitizer's finding or a hang is a bug.
//
// Each target is one .cc file, linked with replay.cc, which makes it a test, or with libFuzzer.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
