// SPDX-License-Identifier: Apache-2.0
#pragma once

// Returns the processors that the library is compiled for, such as "x86-64-v3".
const char* ProcessorLevel();
