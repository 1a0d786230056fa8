// SPDX-License-Identifier: Apache-2.0
//
// The dynamic tables of a program (client/embedding/dynamic_table.h) as Saver sees them: nodes of
// op DynamicTable that carry the attributes below.
//
// A checkpoint has the rows of each of a table's buckets in five tensors of their own, such as
// "users/bucket_3_of_32/keys". A part holds some of the buckets, and restores these, however many
// parts the table had when it was saved. A checkpoint of changes has, in the same tensors, only
// rows that were updated since the checkpoint that "users/bucket_3_of_32/base_checkpoint" names,
// and in ".../dropped" the keys that have no row any more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/program.h"

namespace penstock::client {

// Attributes of a DynamicTable node: the table's name in checkpoints; which part of how many it is;
// how many buckets the table has; the variable whose initial value says that the part is ready.
inline constexpr char kTableNameAttr[] = "_table_name", kTablePartAttr[] = "_table_part",
                      kTablePartsAttr[] = "_table_parts", kTableBucketsAttr[] = "_table_buckets",
                      kTableReadyAttr[] = "_table_ready";

struct SavedTable {
  Output handle;
  std::string name;
  std::string ready;             // name of a variable, which is not saved
  std::vector<int64_t> buckets;  // that it holds
  int64_t num_buckets = 0;       // of the whole table

  // The tensors' names, in the order of the outputs and inputs of the ops below. `changes`: of
  // ExportChanges and Merge; else of Export and Import.
  std::vector<std::string> TensorNames(bool changes) const;
  std::vector<DType> TensorTypes(bool changes) const;
  // Adds the op that gives the rows, beside the table.
  Outputs Export() const;
  // Adds the op that replaces the rows. `tensors` are as many as names.
  Output Import(const Outputs& tensors) const;
  // Adds DynamicTableExportChanges and DynamicTableMerge, which describe the arguments.
  Outputs ExportChanges(Output mark, Output base_mark, Output base) const;
  Output Merge(const Outputs& tensors) const;
};

std::vector<SavedTable> SavedTablesOf(Program& program);

}  // namespace penstock::client
