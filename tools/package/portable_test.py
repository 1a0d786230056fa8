#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a small image of each kind, and tests which variant of its library the program loads."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LOADER = "/lib64/ld-linux-x86-64.so.2"


def levels_of_this_processor():
    """Returns the names of the folders of glibc-hwcaps that the dynamic linker searches here."""
    text = subprocess.run([LOADER, "--help"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in text.splitlines() if "(supported, searched)" in line]


class PortableTest(unittest.TestCase):
    def install(self, image):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        prefix = folder.name + "/prefix"
        done = subprocess.run([os.path.realpath(HERE + "/../install"), "--prefix=" + prefix,
                               f"--image={HERE}/{image}.tar"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return prefix

    def level(self, prefix, *loader):
        return subprocess.run([*loader, prefix + "/bin/penstock"], check=True, capture_output=True,
                              text=True).stdout.strip()

    def test_one_library_for_one_processor(self):
        prefix = self.install("small")
        self.assertEqual(self.level(prefix), "x86-64-v3")
        self.assertFalse(os.path.exists(prefix + "/lib/glibc-hwcaps"))

    def test_the_best_variant_for_this_processor(self):
        prefix = self.install("small_portable")
        wanted = [level for level in levels_of_this_processor()
                  if os.path.exists(f"{prefix}/lib/glibc-hwcaps/{level}")]
        self.assertEqual(self.level(prefix), wanted[0] if wanted else "x86-64")

    def test_the_library_for_old_processors(self):
        prefix = self.install("small_portable")
        self.assertEqual(self.level(prefix, LOADER, "--glibc-hwcaps-mask", "none"), "x86-64")
        if "x86-64-v3" in levels_of_this_processor():
            self.assertEqual(self.level(prefix, LOADER, "--glibc-hwcaps-mask", "x86-64-v3"),
                             "x86-64-v3")

    def test_removes_what_it_installed(self):
        prefix = self.install("small_portable")
        subprocess.run([os.path.realpath(HERE + "/../install"), "--uninstall",
                        "--prefix=" + prefix], check=True)
        left = [os.path.join(folder, name) for folder, _, names in os.walk(prefix)
                for name in names]
        self.assertEqual(left, [])
        self.assertFalse(os.path.exists(prefix + "/lib/glibc-hwcaps"))


if __name__ == "__main__":
    sys.exit(unittest.main())
