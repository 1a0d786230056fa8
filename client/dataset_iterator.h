// SPDX-License-Identifier: Apache-2.0
//
// Iterator: reads a dataset in steps. It must be initialised once per session, before the first
// step that uses it: by the hook RunIterators (run_iterators.h) in a training loop, else by the
// program:
//
//   Iterator iterator(dataset);
//   const Outputs batch = iterator.GetNext();
//   RETURN_IF_ERROR(session->Execute(iterator.initializer()));
//
// An iterator and its position belong to a session. The position is not in checkpoints: a Saver
// does not save it.
#pragma once

#include "client/dataset.h"

namespace penstock::client {

// A value type; it borrows the program.
class Iterator {
 public:
  // The iterator is on the dataset's device.
  explicit Iterator(const Dataset& dataset, SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns the components of the next element, with the dataset's types and shapes. At the end of
  // the dataset the step fails with OutOfRange, which ends a training loop. Each call adds a node:
  // a step that uses the results of two calls takes two elements. If the program has an error, the
  // results are not valid outputs, and there may be more of them than components. If the error is
  // in a function that makes the elements, the number of components is not known, and GetNext
  // returns 16 results.
  Outputs GetNext(SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

  // Returns the op that makes the iterator read the dataset from its beginning.
  Output initializer() const { return initializer_; }
  // Returns an op that makes the iterator read `other` instead, such as test data. Its elements
  // must have the same types, and shapes that are at least as specific as those of dataset().
  Output InitializerFor(const Dataset& other,
                        SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

  const Dataset& dataset() const { return dataset_; }
  Output handle() const { return handle_; }

 private:
  Dataset dataset_;
  Output handle_, initializer_;
};

}  // namespace penstock::client
