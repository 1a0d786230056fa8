// SPDX-License-Identifier: Apache-2.0
//
// TableView: the interface through which lookups use any kind of table. The EmbeddingLookup
// functions of each kind of table make a view of the table, and pass it to Lookup or LookupSparse.
#pragma once

#include <functional>
#include <string>

#include "client/embedding/lookup.h"

namespace penstock::client {

struct TableView {
  // The parts and rows of some ids: vectors with one element for each id.
  struct Places {
    Output part;  // int32
    Output row;   // the row, or the id, to read from the part
  };

  Program* program = nullptr;
  std::string name;
  PartialShape shape;  // shape of the complete table; dimension 0 counts the ids
  int parts = 0;       // 0 if the table is invalid
  std::function<Places(Output ids)> places;
  std::function<Output(int part, Output rows)> rows_of;
};

Output Lookup(const TableView& table, const LocatedOutput& ids,
              const EmbeddingLookupOptions& options);
Output LookupSparse(const TableView& table, const IdLists& lists,
                    const EmbeddingLookupSparseOptions& options);

}  // namespace penstock::client
