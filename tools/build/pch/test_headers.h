// SPDX-License-Identifier: Apache-2.0
//
// Headers that are precompiled for tests: most tests include them, directly or through other
// headers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/build/pch/library_headers.h"
