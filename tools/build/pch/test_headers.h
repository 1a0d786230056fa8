// SPDX-License-Identifier: Apache-2.0
//
// Headers that most tests include, directly or not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/build/pch/library_headers.h"
