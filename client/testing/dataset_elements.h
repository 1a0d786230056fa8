// SPDX-License-Identifier: Apache-2.0
//
// DatasetElements: for tests, reads all elements of a dataset in a session in this process.
#pragma once

#include <string>
#include <vector>

#include "client/dataset_iterator.h"
#include "client/session.h"
#include "gtest/gtest.h"

namespace penstock::client {

// Returns the elements of `dataset` up to its end, as text: "int64[] 1; int64[] 2" for an element
// of two components. Fails the test if the reading ends with an error, or if a component does not
// have the dataset's type and shape.
inline std::vector<std::string> DatasetElements(const Dataset& dataset) {
  std::vector<std::string> all;
  const Iterator iterator(dataset);
  const Outputs next = iterator.GetNext();
  EXPECT_TRUE(dataset.graph().status().ok()) << dataset.graph().status();
  const auto session = Session::New(dataset.graph());
  const Status started = (*session)->Execute(iterator.initializer());
  EXPECT_TRUE(started.ok()) << started;
  while (started.ok() && all.size() < 10000) {
    const auto element =
        (*session)->Run({}, {next.begin(), next.end()}, {}, {.timeout_ms = 20'000});
    if (!element.ok()) {
      EXPECT_EQ(element.status().code(), StatusCode::kOutOfRange) << element.status();
      break;
    }
    std::string text;
    for (size_t i = 0; i < element->size(); ++i) {
      const Tensor& component = (*element)[i];
      EXPECT_EQ(component.dtype(), dataset.types()[i]);
      EXPECT_TRUE(dataset.shapes()[i].Compatible(component.shape()))
          << dataset.shapes()[i].ToString() << " " << component.shape().ToString();
      StrAppend(&text, i == 0 ? "" : "; ", component.ToString());
    }
    all.push_back(text);
  }
  return all;
}

// Returns a constant int64 scalar.
inline Output Int64(GraphBuilder& graph, int64_t value) {
  return Constant(graph, Tensor::Scalar(value));
}

}  // namespace penstock::client
