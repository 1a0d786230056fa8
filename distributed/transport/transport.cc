// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/transport.h"

#include <utility>

namespace penstock {

void TensorSink::Send(int64_t step_id, const HashedKey& key, Tensor value, bool is_dead,
                      HandedOver handed_over) {
  OutgoingTensor tensor(step_id, key, std::move(value), is_dead);
  if (tensor.status().ok()) return SendEncoded(std::move(tensor), std::move(handed_over));
  Refuse(step_id, Annotate(tensor.status(), StrCat("sending '", key.key().tensor, "'")));
  std::move(handed_over)();
}

}  // namespace penstock
