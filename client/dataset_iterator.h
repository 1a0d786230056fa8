// SPDX-License-Identifier: Apache-2.0
//
// Iterator: reads a dataset in steps. It must be initialised once per session, before the first
// step: by the hook RunIterators (run_iterators.h) in a training loop, else by the program:
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
  // a step that uses the results of two calls takes two elements. After a mistake in the program
  // the results are not valid, and there may be more than the dataset has. If the mistake is in a
  // function that makes the elements, their number is not known, and GetNext returns 16 results.
  Outputs GetNext(SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

  // Returns the op with which the iterator begins to read the dataset, from its beginning.
  Output initializer() const { return initializer_; }
  // Returns an op with which the iterator begins to read another dataset instead, with elements of
  // the same types and of shapes that are at least as specific: data for a test, for example.
  Output InitializerFor(const Dataset& other,
                        SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

  const Dataset& dataset() const { return dataset_; }
  Output handle() const { return handle_; }

 private:
  Dataset dataset_;
  Output handle_, initializer_;
};

}  // namespace penstock::client
