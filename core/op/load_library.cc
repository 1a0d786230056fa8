// SPDX-License-Identifier: Apache-2.0
#include "core/op/load_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/declarations.h"
#include "core/op/elf_file.h"
#include "core/op/op_library_note.h"

namespace penstock {
namespace {

constexpr char kOurLibrary[] = "libpenstock.so";

struct LibraryTable {
  Mutex mu;
  std::vector<OpLibrary> libraries ABSL_GUARDED_BY(mu);
  // The errors of libraries that dlopen has opened but LoadLibrary has refused, by path. A second
  // LoadLibrary returns the same error, because dlopen runs initialisers only once.
  std::map<std::string, Status> refused ABSL_GUARDED_BY(mu);
};
LibraryTable& GlobalLibraries() {
  static auto& loaded = *new LibraryTable;
  return loaded;
}

// The path of the library whose initialisers this thread is running; empty: none.
thread_local std::string opening_path;

std::string Describe(const OpLibraryBuild& build) {
  const size_t size = strnlen(build.version, sizeof(build.version));
  std::string text = StrCat("penstock ", absl::CHexEscape({build.version, size}), " (Abseil ",
                            build.abseil, build.new_strings ? "" : ", strings of before C++11");
  if (build.sanitizers & 1) text += ", address sanitizer";
  if (build.sanitizers & 2) text += ", thread sanitizer";
  return text + ")";
}

// Returns "0.1" for "0.1.2".
string_view MinorVersion(const OpLibraryBuild& build) {
  const string_view version(build.version, strnlen(build.version, sizeof(build.version)));
  return version.substr(0, version.rfind('.'));
}

bool Fits(const OpLibraryBuild& library, const OpLibraryBuild& process) {
  return MinorVersion(library) == MinorVersion(process) && library.abseil == process.abseil &&
         library.new_strings == process.new_strings && library.sanitizers == process.sanitizers;
}

Status CheckNotes(const std::vector<std::string>& notes) {
  if (notes.empty()) {
    return InvalidArgument(
        "it is no op library of Penstock: one of its source files has to include "
        "core/op/op_library.h");
  }
  const OpLibraryBuild process = ThisBuild();
  for (const std::string& note : notes) {
    OpLibraryBuild build;
    std::memcpy(&build, note.data(), std::min(note.size(), sizeof(build)));
    if (note.size() != sizeof(build) || !Fits(build, process)) {
      return FailedPrecondition("it was built for ", Describe(build), ", and this process is ",
                                Describe(process), ": build it again with the headers of this one");
    }
  }
  return OkStatus();
}

// Returns the file that this code was loaded from: a program, or libpenstock.so.
std::string OwnFile() {
  Dl_info info = {};
  static const char anchor = 0;
  return dladdr(&anchor, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Rejects libraries that need libpenstock.so if the program is linked with Penstock's objects:
// libpenstock.so would bring a second copy of all code and data.
Status CheckNeeded(const std::vector<std::string>& needed) {
  if (absl::StrContains(OwnFile(), kOurLibrary)) return OkStatus();
  for (const std::string& name : needed) {
    if (!absl::StartsWith(name, kOurLibrary)) continue;
    return InvalidArgument("it is linked with ", name,
                           ", which this program contains instead of loading it: link the library "
                           "without -lpenstock, or use an installed `penstock`");
  }
  return OkStatus();
}

// Makes the symbols of libpenstock.so visible to the library, in case libpenstock.so was itself
// loaded with dlopen, as by Python's ctypes. Does nothing in a program that is linked with the
// objects.
void ShowOwnSymbols() {
  const std::string file = OwnFile();
  if (absl::StrContains(file, kOurLibrary)) {
    dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  }
}

Status CannotLinkError() {
  const char* said = dlerror();
  const std::string why = said == nullptr ? "the dynamic linker does not say why" : said;
  if (!absl::StrContains(why, "undefined symbol")) return InvalidArgument(why);
  return InvalidArgument(why, absl::StrContains(OwnFile(), kOurLibrary)
                                  ? ""
                                  : "; this program must export Penstock's symbols "
                                    "(-Wl,--export-dynamic-symbol=*8penstock*) or be linked with "
                                    "libpenstock.so (docs/custom-ops.md)");
}

Status CheckNew(const std::vector<OpDef>& ops, const std::vector<OpLibrary>& libraries) {
  for (const OpDef& op : ops) {
    if (Registry::Global().FindOp(op.name) == nullptr) continue;
    for (const OpLibrary& other : libraries) {
      if (std::count(other.ops.begin(), other.ops.end(), op.name) == 0) continue;
      return AlreadyExists("it declares the op ", op.name, ", which '", other.path,
                           "' has declared already");
    }
    return AlreadyExists("it declares the op ", op.name,
                         ", which Penstock has itself; give it another name");
  }
  return OkStatus();
}

StatusOr<OpLibrary> Register(const std::string& path, const Declarations& declared,
                             const std::vector<OpLibrary>& libraries) {
  const auto& [ops, kernels] = declared;
  if (ops.empty() && kernels.empty()) {
    return InvalidArgument(
        "it declares neither ops nor kernels, or its initialisers ran before, when the process "
        "loaded it otherwise");
  }
  RETURN_IF_ERROR(CheckNew(ops, libraries));
  RETURN_IF_ERROR(ExtendGlobalRegistry(declared));
  std::set<std::string> names, with_kernels;
  for (const OpDef& op : ops) names.insert(op.name);
  for (const KernelDef& kernel : kernels) with_kernels.insert(kernel.op);
  return OpLibrary{path, {names.begin(), names.end()}, {with_kernels.begin(), with_kernels.end()}};
}

StatusOr<OpLibrary> Open(const std::string& path, const std::vector<OpLibrary>& libraries) {
  std::error_code unused;
  if (!std::filesystem::is_regular_file(path, unused)) {
    return InvalidArgument("it is no regular file");
  }
  // dlopen reads the real file system, so the note must come from there, too, even if the caller
  // uses another Env.
  ASSIGN_OR_RETURN(const std::string bytes, Env::Real().ReadFile(path));
  ASSIGN_OR_RETURN(const ElfFile file, ReadElfFile(bytes, kNoteOwner, kNoteType));
  RETURN_IF_ERROR(CheckNotes(file.notes));
  RETURN_IF_ERROR(CheckNeeded(file.needed));
  ShowOwnSymbols();
  opening_path = path;
  const absl::Cleanup opened = [] { opening_path.clear(); };
  CollectDeclarations();
  // The library is never closed, because graphs and resources may use its code.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const Declarations declared = TakeDeclarations();
  if (handle == nullptr) return CannotLinkError();
  return Register(path, declared, libraries);
}

// Resolves symbolic links, so that each library file has only one path in the table.
StatusOr<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         std::free);
  if (real == nullptr) return NotFound("there is no such file");
  return std::string(real.get());
}

}  // namespace

StatusOr<OpLibrary> LoadLibrary(const std::string& path) {
  const auto named = [&](const Status& status) {
    return Annotate(status, StrCat("library '", path, "'"));
  };
  if (!opening_path.empty()) {  // this thread already holds the lock
    return named(FailedPrecondition("an initialiser of the library '", opening_path,
                                    "' loads it, and one library is loaded at a time"));
  }
  const StatusOr<std::string> file = RealPath(path);
  if (!file.ok()) return named(file.status());
  LibraryTable& loaded = GlobalLibraries();
  MutexLock lock(loaded.mu);
  for (const OpLibrary& library : loaded.libraries) {
    if (library.path == *file) return library;
  }
  const auto refused = loaded.refused.find(*file);
  if (refused != loaded.refused.end()) return named(refused->second);
  StatusOr<OpLibrary> library = Open(*file, loaded.libraries);
  if (library.ok()) {
    loaded.libraries.push_back(*library);
    return library;
  }
  // Keep the error if dlopen has opened the library, because its initialisers will not run again. A
  // library that did not link may be repaired and loaded later.
  void* const handle = dlopen(file->c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) loaded.refused.emplace(*file, library.status());
  return named(library.status());
}

Status LoadLibrariesOfEnvironment() {
  const char* paths = std::getenv("PENSTOCK_LOAD");
  if (paths == nullptr) return OkStatus();
  for (const string_view path : absl::StrSplit(paths, ',', absl::SkipEmpty())) {
    RETURN_IF_ERROR(Annotate(LoadLibrary(std::string(path)).status(), "PENSTOCK_LOAD"));
  }
  return OkStatus();
}

std::vector<OpLibrary> LoadedLibraries() {
  LibraryTable& loaded = GlobalLibraries();
  MutexLock lock(loaded.mu);
  return loaded.libraries;
}

}  // namespace penstock
