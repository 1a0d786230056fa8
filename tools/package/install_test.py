#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs to an empty folder and runs the commands of docs/install.md and docs/custom-ops.md
there."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

TREE = os.getcwd()  # the test's runfiles
IMAGE = TREE + "/tools/package/penstock.tar"
W = r"w = float\[2,1\] 3 -1\n"


def blocks(language, page="install.md"):
    with open(TREE + "/docs/" + page, encoding="utf-8") as file:
        return re.findall(rf"```{language}\n(.*?)```", file.read(), re.DOTALL)


class InstallTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.home)
        self.prefix = self.home + "/penstock"
        self.environment = dict(os.environ, HOME=self.home, DPKG_DEB_COMPRESSOR_TYPE="none")

    def run_shell(self, script, expected=0):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.home,
                              env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=800, check=False)
        self.assertEqual(done.returncode, expected, script + "\n" + done.stdout)
        return done.stdout

    def install(self, flags, expected=0):
        return self.run_shell(f"{TREE}/tools/install --image={IMAGE} {flags}", expected)

    def files(self):
        return {os.path.relpath(os.path.join(folder, name), self.prefix)
                for folder, _, names in os.walk(self.prefix) for name in names}

    def write(self, name, text):
        with open(self.home + "/" + name, "w", encoding="utf-8") as file:
            file.write(text)

    def test_what_the_page_says(self):
        install, cmake, pkg_config, cluster, examples = blocks("sh")
        self.run_shell(install.replace("tools/install", f"{TREE}/tools/install --image={IMAGE}"))
        # No installed file may contain the path of the folder that it was installed to.
        os.rename(self.prefix, self.home + "/elsewhere")
        self.prefix = self.home + "/elsewhere"
        self.write("CMakeLists.txt", blocks("cmake")[0])
        shutil.copy(TREE + "/client/examples/least_squares.cc", self.home + "/program.cc")
        here = [script.replace("$HOME/penstock", self.prefix)
                for script in (cmake, pkg_config, cluster, examples)]
        self.assertRegex(self.run_shell(here[0]), W)
        self.assertRegex(self.run_shell(here[1]), W)
        # The ps is asked to end when the workers have ended, perhaps before it prints its line.
        self.assertEqual(set(re.findall(r"\[(.*)\] " + W, self.run_shell(here[2]))) - {"ps/0"},
                         {"worker/0", "worker/1"})
        # Only configures: the tree builds the same sources anyway.
        self.run_shell(here[3].splitlines()[0])

        self.write("CMakeLists.txt", blocks("cmake")[0].replace("penstock 0.1", "penstock 0.2"))
        said = self.run_shell(here[0].splitlines()[0].replace("build", "later"), expected=1)
        self.assertRegex(said, r'compatible with requested\s+version "0.2"')

    def test_a_program_with_an_op_of_its_own(self):
        self.install("--prefix=" + self.prefix)
        shutil.copy(TREE + "/tools/package/own_op.cc", self.home)
        said = self.run_shell(f"""
            export PKG_CONFIG_PATH={self.prefix}/lib/pkgconfig
            g++ own_op.cc -o own_op $(pkg-config --cflags --libs penstock)
            LD_LIBRARY_PATH={self.prefix}/lib ./own_op""")
        self.assertEqual(said, "y = float[2] 3 6\ndx = float[2] 3 3\n")

    def start_server(self, command):
        """Starts a server, on a free port if the command has port 2222; returns its address."""
        process = subprocess.Popen(
            ["bash", "-c", "exec " + command.replace("127.0.0.1:2222", "127.0.0.1:0")],
            cwd=self.home, env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.terminate)
        for line in process.stdout:
            if " serves at grpc://" in line:
                return line.split()[-1]
        self.fail(command + " does not serve")

    def test_a_library_of_ops(self):
        self.install("--prefix=" + self.prefix)
        pkg_config, cmake, load, from_cpp = blocks("sh", "custom-ops.md")
        op = blocks("cpp", "custom-ops.md")[0]
        with open(TREE + "/client/examples/cube_root_op.cc", encoding="utf-8") as file:
            self.assertTrue(file.read().endswith(op), "the page shows another file")
        self.write("cube_root_op.cc", op)
        shutil.copy(TREE + "/client/examples/cube_root.cc", self.home)
        self.write("CMakeLists.txt", blocks("cmake", "custom-ops.md")[0])
        self.run_shell(pkg_config)
        self.run_shell(cmake)

        show, serve = load.replace("\\\n", " ").splitlines()
        self.assertRegex(self.run_shell(show), r"(?s)cube is x.*CPU +double float.*Gradient: yes")
        target = self.start_server(serve)
        here, remote = from_cpp.splitlines()
        self.assertEqual(self.run_shell(here), "x = 7.998\n")
        self.assertEqual(
            self.run_shell(remote.replace("grpc://127.0.0.1:2222", target)), "x = 7.998\n")
        # The library built with pkg-config has the same op, and a process accepts an op only once.
        self.assertIn("CubeRoot, which '" + self.home, self.run_shell(
            show.replace("--load=", "--load=libcube_root_op.so,"), expected=2))

        # A server that has not loaded the library reports that.
        target = self.start_server(re.sub(r"--load=\S+", "", serve))
        self.assertIn("start that task with --load=LIBRARY", self.run_shell(
            remote.replace("grpc://127.0.0.1:2222", target), expected=1))

    def test_libraries_of_ops_that_were_built_otherwise(self):
        self.install("--prefix=" + self.prefix)
        shutil.copy(TREE + "/client/examples/cube_root_op.cc", self.home)
        self.environment["PKG_CONFIG_PATH"] = self.prefix + "/lib/pkgconfig"
        load = self.prefix + "/bin/penstock ops --load=libx.so CubeRoot"
        # A library linked with libpenstock.so works if the process has loaded libpenstock.so as
        # well.
        self.run_shell("g++ -shared -fPIC cube_root_op.cc -o libx.so "
                       "$(pkg-config --cflags --libs penstock)")
        self.assertIn("cube is x", self.run_shell(load))
        version = self.prefix + "/include/penstock/core/base/version.h"
        self.run_shell(f"rm libx.so && sed -i 's/kVersion.*/kVersion[] = \"7.5.0\";/' {version} && "
                       "g++ -shared -fPIC cube_root_op.cc -o libx.so "
                       "$(pkg-config --cflags penstock)")
        self.assertRegex(self.run_shell(load, expected=2),
                         r"built for penstock 7\.5\.0 .* this process is penstock [\d.]+ ")

    def test_a_program_in_c(self):
        self.install("--prefix=" + self.prefix)
        with open(TREE + "/client/c/c_api_test.c", encoding="utf-8") as file:
            self.write("program.c", file.read().replace('"client/c/c_api.h"', "<penstock/c_api.h>"))
        said = self.run_shell(f"""
            export PKG_CONFIG_PATH={self.prefix}/lib/pkgconfig
            flags=$(pkg-config --cflags --libs penstock-c)
            gcc -std=c11 -D_DEFAULT_SOURCE program.c -o program $flags -lm
            export LD_LIBRARY_PATH={self.prefix}/lib
            graphs={TREE}/client/c/least_squares
            ./program ${{graphs}}_local.pb ${{graphs}}_cluster.pb""")
        self.assertRegex(said, r"(w = 3.000 -1.000\n){4}passed\n$")

    def test_what_is_installed(self):
        self.assertRegex(self.install("--prefix=" + self.prefix),
                         rf"^Installed penstock [\d.]+ in {self.prefix}\n$")
        files = self.files()
        version = re.search(r"[\d.]+", self.run_shell(self.prefix + "/bin/penstock --version"))[0]
        minor = version.rsplit(".", 1)[0]
        self.assertLessEqual({
            "lib/libpenstock.so", "lib/libpenstock.so." + minor, "lib/libpenstock.so." + version,
            "include/penstock/client/session.h", "include/penstock/client/ops/ops.h",
            "include/penstock/core/op/registry.h", "include/penstock/distributed/rpc/server.h",
            "include/penstock/core/op/op_library.h", "include/penstock/core/op/load_library.h",
            "share/penstock/examples/cube_root_op.cc", "share/penstock/python/tf_ops.py",
            "share/doc/penstock/custom-ops.md", "include/penstock/c_api.h",
            "share/doc/penstock/adding-an-op.md", "share/doc/penstock/compatibility.md",
            "share/doc/penstock/LICENSE", "share/doc/penstock/licences/libeigen3-dev",
        }, files)
        dynamic = self.run_shell(f"readelf -d {self.prefix}/lib/libpenstock.so")
        self.assertIn(f"soname: [libpenstock.so.{minor}]", dynamic)
        with open(self.prefix + "/share/penstock/installed", encoding="utf-8") as file:
            self.assertEqual(set(file.read().split("\n")) - {""}, files)
        # Headers of tests, kernels and internal libraries must not be installed.
        for name in files:
            self.assertNotRegex(name, r"include/.*(testing/|kernels/|core/compiler/|grpc)")

    def test_installing_again_and_removing(self):
        self.install("--prefix=" + self.prefix)
        self.write("penstock/own.txt", "not Penstock's")
        before = self.files()
        # A file of an earlier version that this version does not have.
        self.write("penstock/include/penstock/client/old.h", "")
        with open(self.prefix + "/share/penstock/installed", "a", encoding="utf-8") as file:
            file.write("include/penstock/client/old.h\n")
        self.install("--prefix=" + self.prefix)
        self.assertEqual(self.files(), before)
        self.install("--uninstall --prefix=" + self.prefix)
        self.assertEqual(self.files(), {"own.txt"})
        self.assertIn("nothing is installed in", self.install("--uninstall --prefix=" + self.prefix,
                                                              expected=1))

    def test_destdir(self):
        self.install(f"--destdir={self.home}/stage --prefix=/opt/penstock")
        self.assertTrue(os.access(self.home + "/stage/opt/penstock/bin/penstock", os.X_OK))

    def test_debian_package(self):
        self.install("--deb=penstock.deb")
        fields = self.run_shell("dpkg-deb --field penstock.deb")
        self.assertRegex(fields, r"(?m)^Package: penstock$")
        self.assertRegex(fields, r"(?m)^Depends: .*\blibgrpc\+\+.*\blibprotobuf")
        self.assertNotRegex(fields, r"(?m)^Depends: .*\bpenstock\b")
        self.run_shell("dpkg-deb --extract penstock.deb root && root/usr/bin/penstock --version")

    def test_mistakes_in_flags(self):
        for flags, message in (("--prefx=/x", "--prefx=/x: not a flag"),
                               ("--prefix=", "lacks its value"),
                               ("--deb=x.deb --prefix=/usr", "--deb=FILE goes with")):
            with self.subTest(flags=flags):
                self.assertIn(message, self.install(flags, expected=2))
        self.assertIn("there is no file", self.run_shell(
            f"{TREE}/tools/install --image=none.tar --prefix={self.prefix}", expected=1))


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed")
    raise SystemExit(1 if failed or not program.result.testsRun else 0)
