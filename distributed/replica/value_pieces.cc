// SPDX-License-Identifier: Apache-2.0
#include "distributed/replica/value_pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/wire/attr_proto.h"
#include "core/wire/tensor_proto.h"

namespace penstock {

bool TravelsInPieces(const Tensor& value, int64_t piece_bytes) {
  return IsPlain(value.dtype()) && static_cast<int64_t>(value.bytes()) > piece_bytes;
}

Status SendPieces(const Tensor& value, int64_t piece_bytes,
                  absl::FunctionRef<Status(wire::ValuePiece piece)> send) {
  const int64_t count = value.num_elements();
  const Tensor flat = value.Reshaped(Shape({count}));
  const int64_t step =
      std::max<int64_t>(1, piece_bytes / static_cast<int64_t>(SizeOf(value.dtype())));
  wire::ValuePiece piece;
  piece.mutable_whole()->set_dtype(static_cast<tensorflow::DataType>(Number(value.dtype())));
  ShapeToProto(value.shape(), piece.mutable_whole()->mutable_tensor_shape());
  for (int64_t begin = 0; begin < count; begin += step) {
    piece.set_begin(begin);
    const int64_t end = std::min(count, begin + step);
    RETURN_IF_ERROR(TensorToProto(flat.Slice(begin, end), piece.mutable_elements()));
    RETURN_IF_ERROR(send(std::exchange(piece, {})));
  }
  return OkStatus();
}

Status PieceReader::BeginValue(const tensorflow::TensorProto& whole, int64_t bytes_max) {
  if (next_.valid()) return InvalidArgument("a value begins before the one ahead of it is whole");
  ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(whole.dtype()));
  ASSIGN_OR_RETURN(const PartialShape declared, ShapeFromProto(whole.tensor_shape()));
  if (!IsPlain(dtype) || !declared.fully_known()) {
    return InvalidArgument("a ", Name(dtype), " value of shape ", declared.ToString(),
                           " does not travel in pieces");
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(declared.dims()));
  int64_t bytes = 0;
  const bool too_many =
      __builtin_mul_overflow(shape.num_elements(), static_cast<int64_t>(SizeOf(dtype)), &bytes);
  if (too_many || bytes > bytes_max - bytes_) {
    return ResourceExhausted("a ", Name(dtype), " value of shape ", shape.ToString(),
                             " is too large: at most ", bytes_max - bytes_,
                             " bytes are allowed here");
  }
  ASSIGN_OR_RETURN(next_, Tensor::Make(CpuAllocator(), dtype, shape));
  filled_ = 0;
  bytes_ += bytes;
  return OkStatus();
}

Status PieceReader::Add(const wire::ValuePiece& piece, int64_t bytes_max) {
  if (piece.begin() == 0) RETURN_IF_ERROR(BeginValue(piece.whole(), bytes_max));
  if (!next_.valid() || piece.begin() != filled_) {
    return InvalidArgument("a piece of a value from element ", piece.begin(), ", expected from ",
                           filled_);
  }
  // Decodes the piece into memory of its own, and then copies it into the value.
  ASSIGN_OR_RETURN(const Tensor elements, TensorFromProto(piece.elements(), bytes_max));
  if (elements.dtype() != next_.dtype() || elements.num_elements() == 0 ||
      elements.num_elements() > next_.num_elements() - filled_) {
    return InvalidArgument("a piece of ", elements.num_elements(), " elements of type ",
                           Name(elements.dtype()), ", expected at most ",
                           next_.num_elements() - filled_, " of type ", Name(next_.dtype()));
  }
  std::memcpy(static_cast<char*>(next_.mutable_raw_data()) + filled_ * SizeOf(next_.dtype()),
              elements.raw_data(), elements.bytes());
  filled_ += elements.num_elements();
  if (filled_ == next_.num_elements()) complete_.push_back(std::exchange(next_, Tensor()));
  return OkStatus();
}

StatusOr<Tensor> PieceReader::Take() {
  if (complete_.empty()) return InvalidArgument("the pieces of a value have not come");
  Tensor value = std::move(complete_.front());
  complete_.pop_front();
  bytes_ -= static_cast<int64_t>(value.bytes());
  return value;
}

void PieceReader::Clear() { *this = PieceReader(); }

}  // namespace penstock
