// SPDX-License-Identifier: Apache-2.0
#pragma once

// Returns the level of the processors for which this variant of the library is compiled, such as
// "x86-64-v3".
const char* ProcessorLevel();
