// SPDX-License-Identifier: Apache-2.0
//
// Computes the types of inputs and outputs from attributes, and attributes from the types of
// inputs.
#include "absl/strings/str_join.h"
#include "core/op/op_def.h"

namespace penstock {
namespace {

// The maximum number of tensors per argument. A graph with more is a mistake or an attack.
constexpr int64_t kTensorsPerArgMax = 1'000'000;

template <class T>
StatusOr<const T*> FindAttr(const Attrs& attrs, const std::string& name, const ArgDef& arg,
                            string_view what) {
  const auto it = attrs.find(name);
  const T* value = it == attrs.end() ? nullptr : it->second.get<T>();
  if (value != nullptr) return value;
  return InvalidArgument("attribute '", name, "', ", what, " of '", arg.name, "', is ",
                         it == attrs.end() ? "missing" : StrCat("a ", it->second.kind()));
}

Status AppendList(const ArgDef& arg, const Attrs& attrs, std::vector<EdgeType>* types) {
  const auto it = attrs.find(arg.type.type);
  if (it != attrs.end() && it->second.get<EmptyList>() != nullptr) return OkStatus();
  ASSIGN_OR_RETURN(const auto* list,
                   FindAttr<std::vector<EdgeType>>(attrs, arg.type.type, arg, "the types"));
  for (EdgeType type : *list) types->push_back({type.dtype, arg.type.ref});
  return OkStatus();
}

// Collects the attributes of one op that its inputs determine.
class Inference {
 public:
  Inference(const OpDef& def, Attrs* attrs) : def_(def), attrs_(*attrs) {}

  Status Arg(const ArgDef& arg, const std::vector<EdgeType>& types, bool is_list) {
    const ArgType& declared = arg.type;
    if (is_list != (declared.list || !declared.count.empty())) {
      return InvalidArgument(Input(arg), is_list ? " is one tensor, a list was given"
                                                 : " is a list of tensors, one was given");
    }
    if (!is_list && types.size() != 1) {
      return InvalidArgument(Input(arg), " is one tensor, ", types.size(), " were given");
    }
    for (EdgeType type : types) {
      if (declared.ref && !type.ref) {
        return InvalidArgument(Input(arg), " must be a variable, got a ", Name(type), " tensor");
      }
    }
    if (declared.list) return List(arg, types);
    if (!declared.count.empty()) RETURN_IF_ERROR(Count(arg, types.size()));
    for (EdgeType type : types) RETURN_IF_ERROR(Type(arg, type.dtype));
    return OkStatus();
  }

 private:
  std::string Input(const ArgDef& arg) const {
    return StrCat("input '", arg.name, "' of op '", def_.name, "'");
  }

  Status Type(const ArgDef& arg, DType got) {
    const DType fixed = DTypeFromName(arg.type.type);
    if (fixed != DType::kInvalid) {
      if (got == fixed) return OkStatus();
      return InvalidArgument(Input(arg), " must be ", Name(fixed), ", got ", Name(got));
    }
    const AttrValue& known = attrs_.emplace(arg.type.type, got).first->second;
    if (known == AttrValue(got)) return OkStatus();
    return InvalidArgument(Input(arg), " must be ", known.ToString(), " as attribute '",
                           arg.type.type, "' is, got ", Name(got));
  }

  Status Count(const ArgDef& arg, size_t got) {
    const AttrValue value(static_cast<int64_t>(got));
    const AttrValue& known = attrs_.emplace(arg.type.count, value).first->second;
    if (known == value) return OkStatus();
    return InvalidArgument(Input(arg), " must have ", known.ToString(), " tensors as attribute '",
                           arg.type.count, "' says, got ", got);
  }

  Status List(const ArgDef& arg, const std::vector<EdgeType>& types) {
    std::vector<DType> dtypes;
    for (EdgeType type : types) dtypes.push_back(type.dtype);
    const AttrValue value(dtypes);
    const AttrValue& known = attrs_.emplace(arg.type.type, value).first->second;
    if (known == value) return OkStatus();
    return InvalidArgument(Input(arg), " must have the types ", known.ToString(), " as attribute '",
                           arg.type.type, "' says, got ", value.ToString());
  }

  const OpDef& def_;
  Attrs& attrs_;
};

}  // namespace

Status AppendArgTypes(const ArgDef& arg, const Attrs& attrs, std::vector<EdgeType>* types) {
  if (arg.type.list) return AppendList(arg, attrs, types);
  int64_t count = 1;
  if (!arg.type.count.empty()) {
    ASSIGN_OR_RETURN(const int64_t* value,
                     FindAttr<int64_t>(attrs, arg.type.count, arg, "the number of tensors"));
    count = *value;
    if (count < 0 || count > kTensorsPerArgMax) {
      return InvalidArgument("attribute '", arg.type.count, "', the number of tensors of '",
                             arg.name, "', is ", count, ", must be in [0, ", kTensorsPerArgMax,
                             "]");
    }
  }
  DType dtype = DTypeFromName(arg.type.type);
  if (dtype == DType::kInvalid) {
    ASSIGN_OR_RETURN(const EdgeType* value,
                     FindAttr<EdgeType>(attrs, arg.type.type, arg, "the type"));
    dtype = value->dtype;
  }
  types->insert(types->end(), count, EdgeType{dtype, arg.type.ref});
  return OkStatus();
}

Status InferAttrs(const OpDef& def, const std::vector<std::vector<EdgeType>>& args,
                  const std::vector<bool>& is_list, Attrs* attrs) {
  if (args.size() != def.inputs.size()) {
    return InvalidArgument(
        "op '", def.name, "' has ", def.inputs.size(), " inputs (",
        absl::StrJoin(def.inputs, ", ",
                      [](std::string* out, const ArgDef& arg) { out->append(arg.name); }),
        "), got ", args.size());
  }
  Inference inference(def, attrs);
  for (size_t i = 0; i < args.size(); ++i) {
    RETURN_IF_ERROR(inference.Arg(def.inputs[i], args[i], is_list[i]));
  }
  return OkStatus();
}

}  // namespace penstock
