// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/samples.h"

#include <cmath>
#include <complex>
#include <utility>

#include "core/op/variable.h"
#include "kernels/tensor_list/tensor_list.h"
#include "tests/conformance/sample_types.h"

namespace penstock {
namespace {

constexpr int64_t kListLength = 2;

// Returns the default value of element k of argument `arg`: distinct, between 0.1 and 0.9, and
// irregular.
double Fraction(int arg, int64_t k) {
  const double golden = 0.6180339887498949;
  return 0.1 + 0.8 * std::fmod(golden * static_cast<double>(k + 1) + 0.37 * (arg + 1), 1.0);
}

template <class T>
void Assign(T* to, double v) {
  *to = T(v);
}
void Assign(half* to, double v) { *to = half(static_cast<float>(v)); }
void Assign(bfloat16* to, double v) { *to = bfloat16(static_cast<float>(v)); }
void Assign(bool* to, double v) { *to = v != 0; }
void Assign(std::string* to, double v) { *to = std::string(1, static_cast<char>('a' + v)); }
template <class F>
void Assign(std::complex<F>* to, double v) {
  *to = {static_cast<F>(v), static_cast<F>(v * 0.5 + 0.1)};
}
template <class B, int kTag>
void Assign(Quantized<B, kTag>* to, double v) {
  to->value = static_cast<B>(v);
}

template <class T>
Tensor Filled(const ExampleTensor& example, int arg, const Shape& shape) {
  Tensor t(kDTypeOf<T>, shape);
  const bool fractions = IsFloating(t.dtype()) || IsComplex(t.dtype());
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    double v = fractions                     ? Fraction(arg, k)
               : t.dtype() == DType::kBool   ? static_cast<double>((k + arg) % 2)
               : t.dtype() == DType::kString ? static_cast<double>((k + arg) % 26)
                                             : static_cast<double>(k % 100 + 1);
    if (k < static_cast<int64_t>(example.values.size())) v = example.values[k];
    Assign(&t.mutable_data<T>()[k], v);
  }
  return t;
}

StatusOr<Tensor> Make(const ExampleTensor& example, int arg, DType dtype) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(example.shape));
  if (!example.values.empty() &&
      static_cast<int64_t>(example.values.size()) != shape.num_elements()) {
    return InvalidArgument("an example of shape ", shape.ToString(), " has ", example.values.size(),
                           " values");
  }
  Tensor sample;
  if (!WithElementType(dtype, [&]<class T>() { sample = Filled<T>(example, arg, shape); })) {
    return InvalidArgument("no sample of type ", Name(dtype));
  }
  return sample;
}

// Makes a variable with `value` and returns its handle.
Tensor VariableHolding(Tensor value, const std::string& name, ResourceStore& store) {
  const ResourceHandle::Element element{value.dtype(), PartialShape(value.shape())};
  auto variable = std::make_shared<Variable>(name, value.dtype(), PartialShape(value.shape()));
  CHECK_OK(variable->Assign(std::move(value), true, {}));
  CHECK_OK(store
               .LookupOrCreate("", name, "Variable",
                               [&]() -> StatusOr<std::shared_ptr<Resource>> { return variable; })
               .status());
  return Tensor::Scalar(ResourceHandle{.device = "/job:localhost/replica:0/task:0/device:CPU:0",
                                       .container = kDefaultContainer,
                                       .name = name,
                                       .type = "Variable",
                                       .elements = {element},
                                       .resource = variable});
}

// Returns a list of the slices of `value` along dimension 0.
Variant ListOfRows(const Tensor& value) {
  auto list = std::make_shared<TensorListValue>(value.dtype(), PartialShape());
  Shape each = value.shape();
  each.RemoveDim(0);
  for (int64_t i = 0; i < value.dim(0); ++i) {
    CHECK_OK(list->Push(value.Slice(i, i + 1).Reshaped(each)));
  }
  return {std::move(list)};
}

// Returns one list of rows, or a vector of lists if `several`.
StatusOr<Tensor> Lists(const Tensor& value, bool several) {
  const int rank_min = several ? 2 : 1;
  if (value.rank() < rank_min) {
    return InvalidArgument("an example of a list must have rows, is ", value.ToString());
  }
  if (!several) return Tensor::Scalar(ListOfRows(value));
  Tensor lists(DType::kVariant, {value.dim(0)});
  Shape each = value.shape();
  each.RemoveDim(0);
  for (int64_t i = 0; i < value.dim(0); ++i) {
    lists.mutable_data<Variant>()[i] = ListOfRows(value.Slice(i, i + 1).Reshaped(each));
  }
  return lists;
}

// Builds the sample of one example for one choice of types.
class Sampler {
 public:
  Sampler(const OpDef& op, const Example& example, std::map<std::string, DType> types,
          const StoreMaker& make_store)
      : op_(op), example_(example) {
    call_ = {.op = &op,
             .attrs = example.attrs,
             .types = std::move(types),
             .check_gradient = example.check_gradient,
             .resources = make_store()};
    for (const auto& [name, dtype] : call_.types) call_.attrs[name] = dtype;
  }

  StatusOr<SampleCall> Sample() && {
    for (size_t i = 0; i < op_.inputs.size(); ++i) {
      call_.args.emplace_back();
      const std::vector<ExampleTensor>& tensors = example_.inputs[i];
      for (const ExampleTensor& tensor : tensors) {
        ASSIGN_OR_RETURN(Tensor value, One(op_.inputs[i], tensor));
        call_.args.back().push_back(std::move(value));
      }
    }
    return std::move(call_);
  }

 private:
  StatusOr<Tensor> One(const ArgDef& arg, const ExampleTensor& example) {
    const int k = count_++;
    DType dtype = DTypeFromName(arg.type.type);
    const auto attr = call_.types.find(arg.type.type);
    if (attr != call_.types.end()) dtype = attr->second;
    if (arg.type.list) dtype = DType::kFloat;
    const bool resource = dtype == DType::kResource;
    const bool list = dtype == DType::kVariant;
    if (resource || list) dtype = ElementType();
    ASSIGN_OR_RETURN(Tensor value, Make(example, k, dtype));
    if (list) return Lists(value, arg.name == "input_handles");
    if (!resource && !arg.type.ref) return value;
    return VariableHolding(std::move(value), StrCat(op_.name, "/", arg.name), *call_.resources);
  }

  // Returns the dtype of a resource argument's variable, or of a list's elements.
  DType ElementType() const {
    for (const char* name : {"dtype", "T", "element_dtype"}) {
      const auto it = call_.types.find(name);
      if (it != call_.types.end()) return it->second;
    }
    return DType::kFloat;
  }

  const OpDef& op_;
  const Example& example_;
  SampleCall call_;
  int count_ = 0;
};

DType DefaultOf(const TypeAttrDef& type) {
  if (type.default_type != DType::kInvalid) return type.default_type;
  for (DType dtype : type.allowed) {
    if (dtype == DType::kFloat) return dtype;
  }
  return type.allowed.front();
}

// Returns every choice of types that differs from the default in at most one attribute.
std::vector<std::map<std::string, DType>> TypeChoices(const OpDef& op, const Example& example) {
  std::map<std::string, DType> defaults;
  for (const TypeAttrDef& type : op.types) {
    const auto fixed = example.attrs.find(type.name);
    const EdgeType* value = fixed == example.attrs.end() ? nullptr : fixed->second.get<EdgeType>();
    defaults[type.name] = value != nullptr ? value->dtype : DefaultOf(type);
  }
  std::vector<std::map<std::string, DType>> choices = {defaults};
  for (const TypeAttrDef& type : op.types) {
    if (example.attrs.count(type.name) > 0) continue;
    for (DType dtype : type.allowed) {
      if (dtype == defaults[type.name] || dtype == DType::kResource || dtype == DType::kVariant) {
        continue;
      }
      choices.push_back(defaults);
      choices.back()[type.name] = dtype;
    }
  }
  return choices;
}

// Returns an example for an op that declares none: a small matrix for each input. InvalidArgument
// if the op has an attribute without a default that the inputs do not determine.
StatusOr<Example> DefaultExample(const OpDef& op) {
  Example example;
  for (const AttrDef& attr : op.attrs) {
    bool counts = false;
    for (const ArgDef& arg : op.inputs) counts |= arg.type.count == attr.name;
    for (const ArgDef& arg : op.inputs) counts |= arg.type.list && arg.type.type == attr.name;
    if (attr.required() && !counts) {
      return InvalidArgument("op '", op.name, "' needs attribute '", attr.name,
                             "': give it an example in its OP");
    }
  }
  for (const ArgDef& arg : op.inputs) {
    const bool list = arg.type.list || !arg.type.count.empty();
    example.inputs.push_back(std::vector<ExampleTensor>(list ? kListLength : 1, {.shape = {2, 3}}));
  }
  return example;
}

}  // namespace

std::vector<Tensor> SampleCall::Inputs() const {
  std::vector<Tensor> all;
  for (const auto& arg : args) all.insert(all.end(), arg.begin(), arg.end());
  return all;
}

StatusOr<std::vector<Tensor>> SampleCall::Run(const std::vector<Tensor>& inputs) const {
  return Run(inputs, {});
}

StatusOr<std::vector<Tensor>> SampleCall::Run(const std::vector<Tensor>& inputs,
                                              const OpRunner::Accelerator& accelerator) const {
  OpRunner run(op->name, resources);
  if (accelerator.allocator != nullptr) run.On(accelerator);
  size_t next = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::vector<Tensor> arg(inputs.begin() + next, inputs.begin() + next + args[i].size());
    next += args[i].size();
    const ArgType& type = op->inputs[i].type;
    if (type.list || !type.count.empty()) {
      run.InList(arg);
    } else {
      run.In(arg[0]);
    }
  }
  for (const auto& [name, value] : attrs) run.Attr(name, value);
  return run.Run();
}

StatusOr<std::vector<SampleCall>> SamplesOf(const OpDef& op, const StoreMaker& make_store) {
  std::vector<Example> examples = op.examples;
  if (examples.empty()) {
    ASSIGN_OR_RETURN(Example example, DefaultExample(op));
    examples.push_back(std::move(example));
  }
  std::vector<SampleCall> calls;
  for (size_t e = 0; e < examples.size(); ++e) {
    if (examples[e].inputs.size() != op.inputs.size()) {
      return InvalidArgument("example ", e, " of op '", op.name, "' has ",
                             examples[e].inputs.size(), " arguments, the op has ",
                             op.inputs.size());
    }
    for (const auto& types : TypeChoices(op, examples[e])) {
      ASSIGN_OR_RETURN(SampleCall call, Sampler(op, examples[e], types, make_store).Sample());
      call.label = StrCat(op.name, " #", e);
      for (const auto& [name, dtype] : types) StrAppend(&call.label, " ", name, "=", Name(dtype));
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

}  // namespace penstock
