// SPDX-License-Identifier: Apache-2.0
//
// The dynamic tables of a program (client/embedding/dynamic_table.h), for Saver. SavedTablesOf
// returns one SavedTable for each node that has all attributes below.
//
// A table's rows are in buckets. A checkpoint has five tensors for each bucket, such as
// "users/bucket_3_of_32/keys". Each part of a table holds some of the buckets, and restores these,
// for any number of parts that the table had when it was saved. In a checkpoint of changes, these
// tensors have only the rows that were updated since the checkpoint that
// "users/bucket_3_of_32/base_checkpoint" names. The tensor ".../dropped" has the keys of the rows
// that were dropped since then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/program.h"

namespace penstock::client {

// Attributes of a DynamicTable node: the table's name in checkpoints; the index of the part and the
// number of parts; the number of buckets; and the name of a variable that is initialised when the
// part is ready.
inline constexpr char kTableNameAttr[] = "_table_name", kTablePartAttr[] = "_table_part",
                      kTablePartsAttr[] = "_table_parts", kTableBucketsAttr[] = "_table_buckets",
                      kTableReadyAttr[] = "_table_ready";

struct SavedTable {
  Output handle;
  std::string name;
  std::string ready;             // name of the variable of kTableReadyAttr, which is not saved
  std::vector<int64_t> buckets;  // buckets that the part holds
  int64_t num_buckets = 0;       // number of buckets in the whole table

  // Returns the names of the tensors in checkpoints, in the order of the outputs and inputs of the
  // ops below: of ExportChanges and Merge if `changes`, else of Export and Import.
  std::vector<std::string> TensorNames(bool changes) const;
  std::vector<DType> TensorTypes(bool changes) const;
  // Adds the op that outputs the rows, on the table's device.
  Outputs Export(SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Adds the op that replaces the rows. `tensors`: one for each of TensorNames.
  Output Import(const Outputs& tensors,
                SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Add the ops DynamicTableExportChanges and DynamicTableMerge, whose documentation describes the
  // arguments.
  Outputs ExportChanges(Output mark, Output base_mark, Output base,
                        SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  Output Merge(const Outputs& tensors,
               SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
};

std::vector<SavedTable> SavedTablesOf(Program& program);

}  // namespace penstock::client
