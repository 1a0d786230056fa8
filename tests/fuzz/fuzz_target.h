// SPDX-License-Identifier: Apache-2.0
//
// A fuzz target is one function, libFuzzer's: it gives `size` bytes from outside to the code that
// reads them. Whatever they are, it must return: a crash, a failed CHECK, a sanitizer's finding or
// a hang is what is looked for. Always returns 0.
//
// Each target is a file of its own, linked with replay.cc (a test, see there) or with libFuzzer.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
