#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the conformance suite of the transport "verbs" and two faults in a virtual machine that has
# an RDMA device. `tools/rdma_check` runs the complete check.
set -uo pipefail

programs=tests/transport
command="
set -e
PENSTOCK_TEST_PROTOCOLS=verbs PENSTOCK_LARGE_TENSOR_BYTES=8000000 transport_test --gtest_brief=1
transport_faults verbs kill
transport_faults verbs freeze_idle
"
tools/rdma_vm --timeout=170 "$command" "$programs"/transport_{test,faults}
status=$?
if [ "$status" = 77 ]; then
  echo "SKIPPED: verbs_vm_test: this host cannot start the virtual machine (see above)" >&2
  exit 0
fi
exit "$status"
