// SPDX-License-Identifier: Apache-2.0
//
// MapStage, MapUnstage and the other ops on staging maps, ordered and unordered. Both kinds of maps
// are kept in the order of their keys. No op holds a thread while it waits.
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/data/staging_kernel.h"
#include "kernels/data/staging_map.h"

namespace penstock {
namespace {

template <const char* kType>
class MapKernel : public StagingKernel<StagingMap> {
 protected:
  MapKernel() : StagingKernel(kType) {}
  std::shared_ptr<StagingMap> Make(const std::string& name,
                                   const StagingArea::Limits& limits) const final {
    return std::make_shared<StagingMap>(kType, name, limits);
  }
};

StatusOr<int64_t> KeyInput(const KernelContext& ctx) { return IntScalar(ctx.input(0), "key"); }

StatusOr<StagingMap::Indices> IndicesInput(const KernelContext& ctx, int i) {
  ASSIGN_OR_RETURN(const Dims indices, IntVector(ctx.input(i), "indices"));
  return StagingMap::Indices(indices.begin(), indices.end());
}

template <const char* kType>
class MapStageKernel final : public MapKernel<kType> {
 protected:
  void Use(StagingMap& map, KernelContext& ctx, Done done) const override {
    StatusOr<StagingMap::Piece> piece = Read(ctx);
    if (!piece.ok()) return std::move(done)(piece.status());
    map.Stage(*std::move(piece), CallerOf(ctx), std::move(done));
  }

 private:
  StatusOr<StagingMap::Piece> Read(KernelContext& ctx) const {
    StagingMap::Piece piece{.types = this->dtypes()};
    ASSIGN_OR_RETURN(piece.key, KeyInput(ctx));
    ASSIGN_OR_RETURN(piece.indices, IndicesInput(ctx, 1));
    for (int i = 2; i < ctx.num_inputs(); ++i) piece.values.push_back(ctx.TakeInput(i));
    return piece;
  }
};

enum class Get { kPeek, kTake, kTakeAny };

template <const char* kType, Get kGet>
class MapGetKernel final : public MapKernel<kType> {
 protected:
  void Use(StagingMap& map, KernelContext& ctx, Done done) const override {
    StatusOr<StagingMap::Request> request = Read(ctx);
    if (!request.ok()) return std::move(done)(request.status());
    auto receive = [&ctx](int64_t key, Element values) {
      int output = 0;
      if (kGet == Get::kTakeAny) ctx.SetOutput(output++, Tensor::Scalar(key));
      for (Tensor& value : values) ctx.SetOutput(output++, std::move(value));
    };
    map.Get(*std::move(request), std::move(receive), CallerOf(ctx), std::move(done));
  }

 private:
  StatusOr<StagingMap::Request> Read(const KernelContext& ctx) const {
    StagingMap::Request request{.types = this->dtypes(), .keep = kGet == Get::kPeek};
    if (kGet != Get::kTakeAny) {
      ASSIGN_OR_RETURN(request.key, KeyInput(ctx));
    }
    ASSIGN_OR_RETURN(request.indices, IndicesInput(ctx, kGet == Get::kTakeAny ? 0 : 1));
    if (request.indices.size() == request.types.size()) return request;
    return InvalidArgument("there are ", request.indices.size(), " indices and ",
                           request.types.size(), " dtypes");
  }
};

template <const char* kType, int64_t (StagingMap::*kSize)() const>
class MapSizeKernel final : public MapKernel<kType> {
 public:
  bool WaitsForNodes() const override { return false; }

 protected:
  void Use(StagingMap& map, KernelContext& ctx, Done done) const override {
    ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>((map.*kSize)())));
    std::move(done)(OkStatus());
  }
};

template <const char* kType>
class MapClearKernel final : public MapKernel<kType> {
 protected:
  void Use(StagingMap& map, KernelContext& ctx, Done done) const override {
    map.Clear(ctx.origin());
    std::move(done)(OkStatus());
  }
};

OpDef MapStageOp() {
  OpDef op = StagingOp(
      "Adds the tensors `values` under `key` to a staging map. They are the components at `indices`"
      " (a vector, strictly increasing) of a tuple whose types are `dtypes`; other nodes may add "
      "the other components. Components can be taken when all are there. Waits while the map has "
      "`capacity` complete tuples (a node that adds only some components does not wait for these), "
      "and while the map's tensors would take more than `memory_limit` bytes; 0 means no limit. If "
      "the map has a complete tuple with this key, the new one is dropped. InvalidArgument if "
      "indices are not in order or out of bounds, a component is there already, or types differ; "
      "ResourceExhausted if `values` alone take more than memory_limit.",
      0);
  op.inputs = {{"key", "int64"}, {"indices", "int32"}, {"values", List("fake_dtypes")}};
  op.attrs.insert(op.attrs.begin() + 3, {"fake_dtypes", TypeList{.min_length = 1}});
  op.may_wait = true;
  op.examples = {{.inputs = {{{.shape = {}, .values = {1}}},
                             {{.shape = {1}, .values = {0}}},
                             {{.shape = {2}}}},
                  .attrs = {{"dtypes", std::vector<DType>{DType::kFloat}}}}};
  return op;
}

OpDef MapGetOp(const char* doc) {
  OpDef op = StagingOp(doc, 1);
  op.inputs = {{"key", "int64"}, {"indices", "int32"}};
  op.outputs = {{"values", List("dtypes")}};
  op.shape = UnknownShape;
  op.may_wait = true;
  op.untestable_alone = "waits for another op: kernels/data has its tests";
  return op;
}
OpDef MapPeekOp() {
  return MapGetOp(
      "Returns the components at `indices` (a vector, strictly increasing; one for each of "
      "`dtypes`) of the tuple with this key, and keeps them in the staging map. Waits until the "
      "tuple is complete. InvalidArgument if a component is out of bounds, was taken before, or "
      "has another type than dtypes says.");
}
OpDef MapUnstageOp() {
  return MapGetOp(
      "Takes the components at `indices` (a vector, strictly increasing; one for each of "
      "`dtypes`) of the tuple with this key out of a staging map. The tuple is gone when all its "
      "components have been taken. Waits until the tuple is complete. InvalidArgument if a "
      "component is out of bounds, was taken before, or has another type than dtypes says.");
}
OpDef MapUnstageNoKeyOp() {
  OpDef op = MapGetOp(
      "Takes the components at `indices` of the complete tuple with the least key, and returns the "
      "key, a scalar, too. Waits until there is a complete tuple. Errors are those of taking by "
      "key.");
  op.inputs = {{"indices", "int32"}};
  op.outputs = {{"key", "int64"}, {"values", List("dtypes")}};
  op.shape = [](ShapeScope& s) -> Status {
    s.set_output(0, PartialShape::Scalar());
    return OkStatus();
  };
  return op;
}
OpDef MapSizeOp(const char* doc) {
  OpDef op = StagingOp(doc, 0);
  op.outputs = {{"size", "int32"}};
  op.shape = ScalarShape;
  op.examples = {{.attrs = {{"dtypes", EmptyList()}}}};
  return op;
}
OpDef MapSizeOp() { return MapSizeOp("Returns the number of complete tuples in a staging map."); }
OpDef MapIncompleteSizeOp() {
  return MapSizeOp("Returns the number of incomplete tuples in a staging map.");
}
OpDef MapClearOp() {
  OpDef op = StagingOp("Removes all tuples from a staging map.", 0);
  op.may_wait = true;
  op.examples = {{.attrs = {{"dtypes", EmptyList()}}}};
  return op;
}

template <const char* kType>
struct Kernels {
  using Stage = MapStageKernel<kType>;
  using Peek = MapGetKernel<kType, Get::kPeek>;
  using Unstage = MapGetKernel<kType, Get::kTake>;
  using UnstageNoKey = MapGetKernel<kType, Get::kTakeAny>;
  using Size = MapSizeKernel<kType, &StagingMap::size>;
  using IncompleteSize = MapSizeKernel<kType, &StagingMap::incomplete_size>;
  using Clear = MapClearKernel<kType>;
};
using Map = Kernels<StagingMap::kType>;
using OrderedMap = Kernels<StagingMap::kOrderedType>;

OP(MapStage) { return MapStageOp(); }
OP(MapPeek) { return MapPeekOp(); }
OP(MapUnstage) { return MapUnstageOp(); }
OP(MapUnstageNoKey) { return MapUnstageNoKeyOp(); }
OP(MapSize) { return MapSizeOp(); }
OP(MapIncompleteSize) { return MapIncompleteSizeOp(); }
OP(MapClear) { return MapClearOp(); }
OP(OrderedMapStage) { return MapStageOp(); }
OP(OrderedMapPeek) { return MapPeekOp(); }
OP(OrderedMapUnstage) { return MapUnstageOp(); }
OP(OrderedMapUnstageNoKey) { return MapUnstageNoKeyOp(); }
OP(OrderedMapSize) { return MapSizeOp(); }
OP(OrderedMapIncompleteSize) { return MapIncompleteSizeOp(); }
OP(OrderedMapClear) { return MapClearOp(); }

KERNEL_ANY_TYPE(MapStage, Map::Stage);
KERNEL_ANY_TYPE(MapPeek, Map::Peek);
KERNEL_ANY_TYPE(MapUnstage, Map::Unstage);
KERNEL_ANY_TYPE(MapUnstageNoKey, Map::UnstageNoKey);
KERNEL_ANY_TYPE(MapSize, Map::Size);
KERNEL_ANY_TYPE(MapIncompleteSize, Map::IncompleteSize);
KERNEL_ANY_TYPE(MapClear, Map::Clear);
KERNEL_ANY_TYPE(OrderedMapStage, OrderedMap::Stage);
KERNEL_ANY_TYPE(OrderedMapPeek, OrderedMap::Peek);
KERNEL_ANY_TYPE(OrderedMapUnstage, OrderedMap::Unstage);
KERNEL_ANY_TYPE(OrderedMapUnstageNoKey, OrderedMap::UnstageNoKey);
KERNEL_ANY_TYPE(OrderedMapSize, OrderedMap::Size);
KERNEL_ANY_TYPE(OrderedMapIncompleteSize, OrderedMap::IncompleteSize);
KERNEL_ANY_TYPE(OrderedMapClear, OrderedMap::Clear);

}  // namespace
}  // namespace penstock
