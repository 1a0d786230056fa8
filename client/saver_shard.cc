// SPDX-License-Identifier: Apache-2.0
#include "client/saver_shard.h"

#include <utility>

namespace penstock::client {

std::vector<std::string> SaverShard::Names() const {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.saved_name());
  for (const SavedTable& table : tables) {
    for (std::string& name : table.TensorNames(saves_changes)) names.push_back(std::move(name));
  }
  for (std::string& name : PositionNames()) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> SaverShard::PositionNames() const {
  std::vector<std::string> names;
  for (const Iterator& iterator : iterators) {
    names.push_back(iterator.dataset().graph().NodeOf(iterator.handle())->name());
  }
  return names;
}

std::vector<std::string> SaverShard::Slices() const {
  std::vector<std::string> slices;
  for (const Variable& variable : variables) slices.push_back(variable.saved_slice());
  slices.resize(Types().size());  // tables and iterators are saved as whole tensors
  return slices;
}

std::vector<DType> SaverShard::Types() const {
  std::vector<DType> types;
  for (const Variable& variable : variables) types.push_back(variable.dtype());
  for (const SavedTable& table : tables) {
    const std::vector<DType> own = table.TensorTypes(saves_changes);
    types.insert(types.end(), own.begin(), own.end());
  }
  types.insert(types.end(), iterators.size(), DType::kVariant);
  return types;
}

}  // namespace penstock::client
