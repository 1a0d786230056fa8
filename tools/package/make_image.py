#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the files to install into a tar file, with paths relative to the prefix. The rule `image`
(package.bzl) runs it with a file of arguments.

The headers to install are computed: the public headers of some libraries, and all headers that
these and the installed sources include."""

import argparse
import io
import os
import re
import subprocess
import sys
import tarfile

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
INCLUDES = "include/penstock/"
SOURCES = "share/penstock/examples/"
PROGRAMS = "libexec/"
DOCUMENTS = "share/doc/penstock/"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def pairs(arguments):
    return [argument.split("=", 1) for argument in arguments]


def headers_to_install(public, headers, sources):
    """Returns the names of the public headers, and of all headers that they and the sources
    include."""
    own = {os.path.basename(path) for path in sources}
    folders = {name.split("/")[0] for name in headers}
    found = set()
    todo = [(name, "the public interface") for name in public]
    todo += [(name, path) for path in sources for name in INCLUDE.findall(read(path))]
    while todo:
        name, includer = todo.pop()
        if name in found or os.path.basename(name) in own and name.startswith("client/examples/"):
            continue
        if name not in headers:
            if name.split("/")[0] in folders:
                sys.exit(f"{includer} includes {name}, which no library of _API in "
                         "tools/package/BUILD.bazel offers")
            continue  # a header of another library, such as "absl/strings/match.h"
        found.add(name)
        todo += [(include, name) for include in INCLUDE.findall(read(headers[name]))]
    return found


def version_in(header):
    return re.search(r'kVersion\[\] = "([\d.]+)"', read(header)).group(1)


def dynamic_section(library, tag):
    """Returns the values of a tag (SONAME, NEEDED) in a shared library's dynamic section."""
    lines = subprocess.run(["readelf", "--dynamic", "--wide", library], check=True,
                           capture_output=True, text=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", lines)


def development_packages(packages):
    """Returns the Debian packages that have headers, so that their code may be compiled in."""
    return re.findall(r"^(\S+-dev)$", read(packages), re.MULTILINE)


class Image:
    def __init__(self, output):
        self.tar = tarfile.open(output, "w")
        self.names = set()

    def _add(self, name, **fields):
        if name in self.names:
            sys.exit(f"two files are to be installed as {name}")
        self.names.add(name)
        info = tarfile.TarInfo(name)
        for key, value in fields.items():
            setattr(info, key, value)
        return info

    def add_bytes(self, name, data, mode=0o644):
        self.tar.addfile(self._add(name, size=len(data), mode=mode), io.BytesIO(data))

    def add_file(self, name, path, mode=0o644):
        with open(path, "rb") as file:
            self.add_bytes(name, file.read(), mode)

    def add_link(self, name, to):
        self.tar.addfile(self._add(name, type=tarfile.SYMTYPE, linkname=to))

    def add_list(self, name):
        """Adds a file that lists all files, including itself."""
        self.add_bytes(name, "".join(sorted(n + "\n" for n in self.names | {name})).encode())


def substitutions(version, library):
    """Returns the values of @NAME@ in the .in files."""
    # Inline functions of the installed headers call Abseil, so programs must link the same Abseil
    # libraries as libpenstock.
    abseil = [name[len("libabsl_"):].split(".so")[0] for name in dynamic_section(library, "NEEDED")
              if name.startswith("libabsl_")]
    return {
        "VERSION": version,
        "SONAME": dynamic_section(library, "SONAME")[0],
        "CMAKE_ABSEIL": ";".join("absl::" + name for name in abseil),
        "PC_ABSEIL": " ".join("absl_" + name for name in abseil),
    }


def add_library(image, library, variants, version):
    """Adds the library, and `variants`: {"x86-64-v3": the library compiled for such processors}.

    The dynamic linker of glibc 2.33 and later looks into glibc-hwcaps below each folder of its
    search path, and takes the best variant for the processor."""
    soname = dynamic_section(library, "SONAME")[0]
    for level, variant in variants.items():
        image.add_file(f"lib/glibc-hwcaps/{level}/{soname}", variant, 0o755)
    image.add_file("lib/libpenstock.so." + version, library, 0o755)
    image.add_link("lib/" + soname, "libpenstock.so." + version)
    image.add_link("lib/libpenstock.so", soname)


def add_licences(image, packages):
    for package in development_packages(packages):
        path = f"/usr/share/doc/{package}/copyright"
        if not os.path.isfile(path):
            sys.exit(f"the licence of {package} is missing: {path}")
        image.add_file(f"{DOCUMENTS}licences/{package}", path)


def main():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    for flag in ("--output", "--library", "--command", "--packages"):
        parser.add_argument(flag, required=True)
    for flag in ("--public", "--headers"):
        parser.add_argument(flag, nargs="+", required=True)
    for flag in ("--files", "--variants"):
        parser.add_argument(flag, nargs="+", action="extend", default=[])
    args = parser.parse_args()

    headers = dict(pairs(args.headers))
    files = [(folder + "/" + os.path.basename(path), path) for folder, path in pairs(args.files)]
    sources = [path for name, path in files if name.startswith(SOURCES)]
    version = version_in(headers["core/base/version.h"])
    image = Image(args.output)
    for name in sorted(headers_to_install(args.public, headers, sources)):
        image.add_file(INCLUDES + name, headers[name])
    add_library(image, args.library, dict(pairs(args.variants)), version)
    image.add_file("bin/penstock", args.command, 0o755)
    values = substitutions(version, args.library)
    for name, path in files:
        if name.endswith(".in"):
            text = re.sub(r"@(\w+)@", lambda match: values[match[1]], read(path))
            image.add_bytes(name[:-len(".in")], text.encode())
        else:
            image.add_file(name, path, 0o755 if name.startswith(PROGRAMS) else 0o644)
    add_licences(image, args.packages)
    image.add_list("share/penstock/installed")
    image.tar.close()


if __name__ == "__main__":
    main()
