// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "tools/package/testing/processor_level.h"

int main() { std::puts(ProcessorLevel()); }
