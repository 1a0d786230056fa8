// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/value_pieces.h"

#include <vector>

#include "distributed/replica/record_proto.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kPiece = 12, kValueBytesMax = 1 << 20;

std::vector<wire::ValuePiece> PiecesOf(const Tensor& value) {
  std::vector<wire::ValuePiece> pieces;
  CHECK_OK(SendPieces(value, kPiece, [&](wire::ValuePiece piece) {
    pieces.push_back(std::move(piece));
    return OkStatus();
  }));
  return pieces;
}

Tensor Matrix() { return Tensor::Of<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}); }

TEST(ValuePiecesTest, OnlyLargePlainValuesTravelSo) {
  EXPECT_TRUE(TravelsInPieces(Matrix(), 31));
  EXPECT_FALSE(TravelsInPieces(Matrix(), 32));
  EXPECT_FALSE(TravelsInPieces(Tensor::Vector<std::string>({"a", "b", "c"}), 1));
}

TEST(ValuePiecesTest, AreTheValueAgain) {
  const std::vector<wire::ValuePiece> pieces = PiecesOf(Matrix());
  EXPECT_EQ(pieces.size(), 3u);  // pieces of three, three and two elements
  PieceReader reader;
  for (const wire::ValuePiece& piece : pieces) {
    EXPECT_FALSE(reader.Take().ok()) << "not all of it is there";
    ASSERT_EQ(reader.Add(piece, kValueBytesMax), OkStatus());
  }
  EXPECT_EQ(reader.bytes(), 32);
  const StatusOr<Tensor> value = reader.Take();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->ToString(), Matrix().ToString());
  EXPECT_EQ(reader.bytes(), 0);
}

TEST(ValuePiecesTest, ARecordFindsItsValues) {
  KeptChange change;
  change.parts.push_back(
      {.name = "v", .values = {Tensor::Scalar<float>(9), Matrix(), Tensor::Scalar<float>(8)}});
  wire::StateRecord record;
  ASSERT_EQ(RecordToProto(change, &record, kPiece), OkStatus());
  EXPECT_LT(record.ByteSizeLong(), 100u);
  int64_t bytes_left = 8;  // of the two values that are not split
  PieceReader reader;
  EXPECT_TRUE(absl::IsInvalidArgument(RecordFromProto(record, &bytes_left, &reader).status()));
  for (const wire::ValuePiece& piece : PiecesOf(Matrix())) {
    ASSERT_EQ(reader.Add(piece, kValueBytesMax), OkStatus());
  }
  bytes_left = 8;
  const StatusOr<KeptChange> back = RecordFromProto(record, &bytes_left, &reader);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->parts[0].values.size(), 3u);
  EXPECT_EQ(back->parts[0].values[1].ToString(), Matrix().ToString());
  EXPECT_EQ(back->parts[0].values[2].scalar<float>(), 8);

  record.mutable_part(0)->add_in_pieces(0);  // not in ascending order
  for (const wire::ValuePiece& piece : PiecesOf(Matrix())) {
    ASSERT_EQ(reader.Add(piece, kValueBytesMax), OkStatus());
  }
  bytes_left = 8;
  EXPECT_TRUE(absl::IsInvalidArgument(RecordFromProto(record, &bytes_left, &reader).status()));
}

TEST(ValuePiecesTest, MayComeFromAnybody) {
  const std::vector<wire::ValuePiece> pieces = PiecesOf(Matrix());
  PieceReader reader;
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Add(pieces[1], kValueBytesMax))) << "no value begins";
  EXPECT_TRUE(absl::IsResourceExhausted(reader.Add(pieces[0], 31)));
  ASSERT_EQ(reader.Add(pieces[0], kValueBytesMax), OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Add(pieces[0], kValueBytesMax))) << "a second begins";
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Add(pieces[2], kValueBytesMax))) << "one is missing";
  wire::ValuePiece wrong = pieces[1];
  *wrong.mutable_elements() = PiecesOf(Tensor::Vector<double>({1, 2}))[0].elements();
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Add(wrong, kValueBytesMax))) << "another type";
  wrong = pieces[1];
  wrong.mutable_elements()->mutable_tensor_shape()->mutable_dim(0)->set_size(int64_t{1} << 40);
  EXPECT_FALSE(reader.Add(wrong, kValueBytesMax).ok()) << "more elements than it has";
  wire::ValuePiece huge;
  *huge.mutable_whole() = pieces[0].whole();
  for (auto& dim : *huge.mutable_whole()->mutable_tensor_shape()->mutable_dim()) {
    dim.set_size(int64_t{1} << 30);
  }
  reader.Clear();
  EXPECT_TRUE(absl::IsResourceExhausted(reader.Add(huge, kValueBytesMax)));
}

}  // namespace
}  // namespace penstock
