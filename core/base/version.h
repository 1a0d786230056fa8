// SPDX-License-Identifier: Apache-2.0
//
// The version of this program, and the version of TensorFlow that its exported graphs name. One
// place for both, because peers, tools and files show or compare them.
#pragma once

namespace penstock {

constexpr char kVersion[] = "0.1.0";

// The versions.producer of exported GraphDefs, that of TensorFlow 1.0: later versions only forbid
// ops, and this one has shape inference.
constexpr int kGraphDefProducer = 22;

}  // namespace penstock
