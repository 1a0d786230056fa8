// SPDX-License-Identifier: Apache-2.0
//
// TableView: a table as lookups see it, whatever it is made of. Lookups of a view are behind the
// EmbeddingLookup functions of each kind of table.
#pragma once

#include <functional>
#include <string>

#include "client/embedding/lookup.h"

namespace penstock::client {

struct TableView {
  // The places of some ids' rows, an element for each id.
  struct Places {
    Output part;  // int32
    Output row;   // the row, or the id, that the part is asked for
  };

  Program* program = nullptr;
  std::string name;
  PartialShape shape;  // of the whole; dimension 0 is that of ids
  int parts = 0;       // 0 after a mistake
  std::function<Places(Output ids)> places;
  std::function<Output(int part, Output rows)> rows_of;
};

Output Lookup(const TableView& table, Output ids, const EmbeddingLookupOptions& options);
Output LookupSparse(const TableView& table, const IdLists& lists,
                    const EmbeddingLookupSparseOptions& options);

}  // namespace penstock::client
