// SPDX-License-Identifier: Apache-2.0
//
// AtNode: says at which node an error has happened.
#pragma once

#include "core/base/status.h"

namespace penstock {

// Returns the error with the node's name in the form that clients look for, unless it names one
// already: "text\n\t [[{{node NAME}}]]". Payloads are kept.
Status AtNode(const Status& status, string_view node);

}  // namespace penstock
