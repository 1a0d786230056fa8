// SPDX-License-Identifier: Apache-2.0
//
// OfferReader: the consumer's end of a ring whose large tensors wait in the producer's
// memory.
//
// Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "distributed/transport/records/tensor_record_reader.h"

namespace penstock {

// A large tensor that waits in the producer's memory.
using TensorOffer = TensorRecord;

class OfferReader final : public TensorRecordReader {
 public:
  using TensorRecordReader::TensorRecordReader;

  // Returns the offers read since the last call, including those that no step wants: the caller has
  // to answer each of them.
  std::vector<TensorOffer> TakeOffers() { return std::exchange(offers_, {}); }

 private:
  Status ReadElsewhere(TensorRecord record, bool, Received*) override {
    offers_.push_back(std::move(record));
    return OkStatus();
  }

  std::vector<TensorOffer> offers_;
};

}  // namespace penstock
