// SPDX-License-Identifier: Apache-2.0
//
// Resources that belong to one node of one session. A queue or a reader without shared_name is not
// shared: two sessions of the same program must not meet in it. On a server whose resources outlive
// sessions, the worker gives such a node a container of its session, by this attribute, and clears
// that container with the session. Kernels of variables ignore it: a variable's node name is a name
// like any other.
#pragma once

namespace penstock {

inline constexpr char kPrivateContainerAttr[] = "_private_container";

}  // namespace penstock
