#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a Python wheel of an image (make_image.py). Called by `tools/install --wheel=DIR`.

The wheel contains the command, the library, and the shared libraries of this system that they
need, except those that every system with the GNU C library has. The programs find the libraries
through an rpath relative to their own path (DT_RPATH, which also applies to the dependencies of
libraries), so the system's files are packed unchanged. The tag of the wheel names the required
version of the C library.
"""

import argparse
import base64
import csv
import glob
import hashlib
import io
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
COMMON_LICENCES = "/usr/share/common-licenses/"
PROGRAMS = ("bin/penstock", "libexec/penstock/fashion_mnist")

# Libraries of the C library and the compiler that every system has (as in manylinux, PEP 600).
OF_THE_SYSTEM = re.compile(
    r"(linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libutil|libstdc\+\+"
    r"|libgcc_s)[.]so[.]\d+")

METADATA = """\
Metadata-Version: 2.1
Name: penstock
Version: {version}
Summary: Dataflow graphs on a parameter-server cluster that speaks TensorFlow's protocol
License: Apache-2.0; bundled libraries: see the folder licenses
Platform: linux-x86_64
Requires-Python: >=3.8
Provides-Extra: tensorflow
Requires-Dist: tensorflow ; extra == 'tensorflow'
Description-Content-Type: text/markdown

"""


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def libraries_of(program):
    """Returns {soname: path} of the libraries outside the image that a program needs."""
    found = {}
    for line in output_of("ldd", program).splitlines():
        name = os.path.basename(line.split()[0])
        if OF_THE_SYSTEM.fullmatch(name):
            continue
        match = re.search(r"=> (/\S+)", line)
        if not match:
            sys.exit(f"{program} needs {name}, which this system does not have")
        found[name] = os.path.realpath(match[1])
    return found


def c_library_version(paths):
    """Returns the version of the GNU C library that the files need, as (2, 36)."""
    versions = {(2, 17)}  # the oldest version that has a wheel tag
    for path in paths:
        needed = output_of("readelf", "--version-info", "--wide", path)
        versions.update((2, int(minor)) for minor in re.findall(r"Name: GLIBC_2[.](\d+)", needed))
    return max(versions)


def packages_of(paths):
    """Returns {path: (package, version, source package)} for files of Debian packages."""
    # A package may list a file as /lib/x although /lib is a link to /usr/lib, so try both names.
    names = {name: path for path in paths for name in (path, path.removeprefix("/usr"))}
    # The exit status is not checked: dpkg-query fails because it knows only one of the two names of
    # each file.
    found = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True,
                           check=False).stdout
    package = {names[name]: owner.split(":")[0]
               for owner, name in re.findall(r"(?m)^(\S+): (.*)$", found)}
    for path in paths:
        if path not in package:
            sys.exit(f"{path} is of no Debian package, so its licence is not known")
    shown = output_of("dpkg-query", "--show",
                      "--showformat=${Package} ${Version} ${source:Package}\n",
                      *set(package.values()))
    facts = {line.split()[0]: tuple(line.split()) for line in shown.splitlines()}
    return {path: facts[package[path]] for path in paths}


class Wheel:
    def __init__(self, path, info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info = info
        self.record = []

    def add(self, name, data, mode=0o644):
        # a fixed date, so that the wheel is reproducible
        entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
        entry.external_attr = (stat.S_IFREG | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append((name, "sha256=" + digest, len(data)))

    def add_file(self, name, path):
        with open(path, "rb") as file:
            self.add(name, file.read(), 0o755 if os.access(path, os.X_OK) else 0o644)

    def close(self):
        name = self.info + "/RECORD"
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.record + [(name, "", "")])
        self.add(name, text.getvalue().encode())
        self.zip.close()


def variants_of(root):
    """Returns the paths, relative to the image, of libpenstock for newer processors."""
    return sorted(os.path.relpath(path, root)
                  for path in glob.glob(root + "/lib/glibc-hwcaps/*/libpenstock.so.*"))


def own_library(root):
    """Returns the soname of libpenstock, which is the name of one of the links to the library."""
    names = [name for name in os.listdir(root + "/lib")
             if re.fullmatch(r"libpenstock[.]so[.]\d+[.]\d+", name)]
    if len(names) != 1:
        sys.exit(f"the image has not one library lib/libpenstock.so.MAJOR.MINOR, but {names}")
    return names[0]


def add_licences(wheel, root, libraries):
    """Adds the licences of Penstock, of code compiled into it, and of the bundled libraries."""
    documents = root + "/share/doc/penstock"
    folder = wheel.info + "/licenses/"
    files = {package: f"{documents}/licences/{package}"
             for package in os.listdir(documents + "/licences")}
    lines = ["Libraries of Debian in penstock/lib, unchanged. Their licences are beside this file.",
             "Their source: apt-get source NAME=VERSION, or https://snapshot.debian.org", ""]
    packages = packages_of(libraries.values())
    for soname, path in sorted(libraries.items()):
        package, version, source = packages[path]
        lines.append(f"{soname}: package {package} {version}, source {source}")
        files[package] = f"/usr/share/doc/{package}/copyright"
    # Licence texts that several packages refer to.
    for path in list(files.values()):
        with open(path, encoding="utf-8") as file:
            for name in re.findall(COMMON_LICENCES + r"([\w.-]*\w)", file.read()):
                if os.path.isfile(COMMON_LICENCES + name):
                    files["common-licenses/" + name] = COMMON_LICENCES + name
    wheel.add_file(folder + "LICENSE", documents + "/LICENSE")
    for name, path in sorted(files.items()):
        wheel.add_file(folder + name, path)
    wheel.add(folder + "BUNDLED", "\n".join(lines + [""]).encode())


def make(root, output):
    """Writes the wheel of the image that is unpacked in `root`; returns its path."""
    with open(root + "/lib/pkgconfig/penstock.pc", encoding="utf-8") as file:
        version = re.search(r"(?m)^Version: (.*)$", file.read())[1]
    own = own_library(root)
    programs = {name: f"{root}/{name}" for name in PROGRAMS}
    libraries = {}
    for path in programs.values():
        libraries.update(libraries_of(path))
    libraries.pop(own, None)
    files = [*programs.values(), f"{root}/lib/{own}", *libraries.values()]
    tag = "py3-none-manylinux_%d_%d_x86_64" % c_library_version(files)

    path = f"{output}/penstock-{version}-{tag}.whl"
    wheel = Wheel(path, f"penstock-{version}.dist-info")
    for name in ("__init__.py", "__main__.py"):
        wheel.add_file("penstock/" + name, f"{HERE}/python/{name}")
    for name in ("tf_ops.py", "tf_server.py"):
        wheel.add_file("penstock/" + name, f"{root}/share/penstock/python/{name}")
    for name, program in programs.items():
        wheel.add_file("penstock/" + name, program)
    for soname, library in sorted({**libraries, own: f"{root}/lib/{own}"}.items()):
        wheel.add_file("penstock/lib/" + soname, library)
    for name in variants_of(root):
        wheel.add_file("penstock/" + name, f"{root}/{name}")
    add_licences(wheel, root, libraries)
    with open(HERE + "/python/README.md", encoding="utf-8") as file:
        wheel.add(wheel.info + "/METADATA",
                  (METADATA.format(version=version) + file.read()).encode())
    wheel.add(wheel.info + "/WHEEL", f"Wheel-Version: 1.0\nGenerator: penstock ({version})\n"
              f"Root-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(wheel.info + "/entry_points.txt",
              b"[console_scripts]\npenstock = penstock.__main__:main\n")
    wheel.add(wheel.info + "/top_level.txt", b"penstock\n")
    wheel.close()
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", required=True, help="the tar file of //tools/package:penstock")
    parser.add_argument("--output", required=True, help="the folder of the wheel")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    with tempfile.TemporaryDirectory() as root, tarfile.open(args.image) as image:
        image.extractall(root)
        print(make(root, args.output))


if __name__ == "__main__":
    main()
