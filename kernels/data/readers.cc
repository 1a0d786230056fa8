// SPDX-License-Identifier: Apache-2.0
//
// The ops that create readers.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/data/reader.h"

namespace penstock {
namespace {

class ReaderKernel : public HandleKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(HandleKernel::Init(node));
    ASSIGN_OR_RETURN(open_, Source(node));
    return OkStatus();
  }

 protected:
  virtual StatusOr<OpenSource> Source(const KernelInit& node) const = 0;
  StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const override {
    return std::make_shared<Reader>(Type(), resource_name(), open_, *ctx.step().env, ctx.threads());
  }

 private:
  OpenSource open_;
};

class IdentityReaderKernel final : public ReaderKernel {
  const char* Type() const override { return "IdentityReader"; }
  StatusOr<OpenSource> Source(const KernelInit& node) const override { return IdentitySource(); }
};

class WholeFileReaderKernel final : public ReaderKernel {
  const char* Type() const override { return "WholeFileReader"; }
  StatusOr<OpenSource> Source(const KernelInit& node) const override { return WholeFileSource(); }
};

class TextLineReaderKernel final : public ReaderKernel {
  const char* Type() const override { return "TextLineReader"; }
  StatusOr<OpenSource> Source(const KernelInit& node) const override {
    int64_t skip = 0;
    RETURN_IF_ERROR(node.Attr("skip_header_lines", &skip));
    if (skip < 0) return InvalidArgument("skip_header_lines must be >= 0 not ", skip);
    return TextLineSource(skip);
  }
};

StatusOr<Compression> CompressionAttr(const KernelInit& node, const char* attr) {
  std::string name;
  RETURN_IF_ERROR(node.Attr(attr, &name));
  const auto compression = ParseCompression(name);
  if (!compression.ok()) return Annotate(compression.status(), attr);
  return compression;
}

class TFRecordReaderKernel final : public ReaderKernel {
  const char* Type() const override { return "TFRecordReader"; }
  StatusOr<OpenSource> Source(const KernelInit& node) const override {
    ASSIGN_OR_RETURN(const Compression compression, CompressionAttr(node, "compression_type"));
    return TFRecordSource(compression);
  }
};

class FixedLengthReaderKernel final : public ReaderKernel {
  const char* Type() const override { return "FixedLengthRecordReader"; }
  StatusOr<OpenSource> Source(const KernelInit& node) const override {
    FixedLength format;
    RETURN_IF_ERROR(Bytes(node, "header_bytes", 0, &format.header));
    RETURN_IF_ERROR(Bytes(node, "record_bytes", 1, &format.record));
    RETURN_IF_ERROR(Bytes(node, "footer_bytes", 0, &format.footer));
    RETURN_IF_ERROR(Bytes(node, "hop_bytes", 0, &format.hop));
    if (node.attrs.contains("encoding")) {
      ASSIGN_OR_RETURN(format.compression, CompressionAttr(node, "encoding"));
    }
    return FixedLengthSource(format);
  }
  static Status Bytes(const KernelInit& node, const char* attr, int64_t min, int64_t* value) {
    constexpr int64_t kMax = int64_t{1} << 31;
    RETURN_IF_ERROR(node.Attr(attr, value));
    if (*value >= min && *value <= kMax) return OkStatus();
    return InvalidArgument(attr, " must be >= ", min, " and <= ", kMax, " not ", *value);
  }
};

OpDef ReaderOp(HandleForm form, std::string doc, std::vector<AttrDef> attrs = {}) {
  attrs.push_back({"container", ""});
  attrs.push_back({"shared_name", ""});
  const bool ref = form == HandleForm::kRef;
  return {.doc = std::move(doc),
          .outputs = {{"reader_handle", HandleType(form)}},
          .attrs = std::move(attrs),
          .shape = ref ? RefHandleShape : ResourceHandleShape,
          .gradient = NoGradient,
          .examples = {{}},
          .stateful = true};
}
OpDef IdentityOp(HandleForm form) {
  return ReaderOp(form, "Makes a reader whose records are the units of work themselves.");
}
OpDef WholeFileOp(HandleForm form) {
  return ReaderOp(form,
                  "Makes a reader whose records are the contents of files; the keys are their "
                  "names.");
}
OpDef TextLineOp(HandleForm form) {
  return ReaderOp(form, "Makes a reader of the lines of text files.", {{"skip_header_lines", 0}});
}
OpDef TFRecordOp(HandleForm form) {
  return ReaderOp(form, "Makes a reader of TFRecord files.", {{"compression_type", ""}});
}
OpDef FixedLengthOp(HandleForm form) {
  std::vector<AttrDef> attrs = {
      {"header_bytes", 0}, {"record_bytes", Ints{}}, {"footer_bytes", 0}, {"hop_bytes", 0}};
  if (form == HandleForm::kResource) attrs.push_back({"encoding", ""});
  OpDef op = ReaderOp(form,
                      "Makes a reader of records of equal length, which lie between a header and a "
                      "footer and begin hop_bytes apart (0: without gaps).",
                      std::move(attrs));
  op.examples = {{.attrs = {{"record_bytes", 4}}}};
  return op;
}

OP(IdentityReader) { return IdentityOp(HandleForm::kRef); }
OP(IdentityReaderV2) { return IdentityOp(HandleForm::kResource); }
OP(WholeFileReader) { return WholeFileOp(HandleForm::kRef); }
OP(WholeFileReaderV2) { return WholeFileOp(HandleForm::kResource); }
OP(TextLineReader) { return TextLineOp(HandleForm::kRef); }
OP(TextLineReaderV2) { return TextLineOp(HandleForm::kResource); }
OP(TFRecordReader) { return TFRecordOp(HandleForm::kRef); }
OP(TFRecordReaderV2) { return TFRecordOp(HandleForm::kResource); }
OP(FixedLengthRecordReader) { return FixedLengthOp(HandleForm::kRef); }
OP(FixedLengthRecordReaderV2) { return FixedLengthOp(HandleForm::kResource); }
KERNEL_ANY_TYPE(IdentityReader, IdentityReaderKernel);
KERNEL_ANY_TYPE(IdentityReaderV2, IdentityReaderKernel);
KERNEL_ANY_TYPE(WholeFileReader, WholeFileReaderKernel);
KERNEL_ANY_TYPE(WholeFileReaderV2, WholeFileReaderKernel);
KERNEL_ANY_TYPE(TextLineReader, TextLineReaderKernel);
KERNEL_ANY_TYPE(TextLineReaderV2, TextLineReaderKernel);
KERNEL_ANY_TYPE(TFRecordReader, TFRecordReaderKernel);
KERNEL_ANY_TYPE(TFRecordReaderV2, TFRecordReaderKernel);
KERNEL_ANY_TYPE(FixedLengthRecordReader, FixedLengthReaderKernel);
KERNEL_ANY_TYPE(FixedLengthRecordReaderV2, FixedLengthReaderKernel);

}  // namespace
}  // namespace penstock
