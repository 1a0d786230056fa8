# SPDX-License-Identifier: Apache-2.0
"""Hosts for tasks: network namespaces joined by a bridge, which can be disconnected; or the
loopback interface, which cannot."""

import os
import subprocess

from cluster import free_ports


class Loopback:
    """Runs all tasks on this host."""

    can_cut = False

    def __init__(self, count):
        self.addresses = ["127.0.0.1:%d" % port for port in free_ports(count)]

    def command(self, host, command):
        return command

    def close(self):
        pass


class Namespaces:
    """A network namespace for each task: 10.77.0.1, 10.77.0.2, ... Needs root and iproute2.

    A disconnected host keeps its link, but all packets from and to it are lost without an error, as
    when a switch fails.
    """

    can_cut = True
    PORT = 2222

    def __init__(self, count):
        # an interface's name has at most 15 characters
        self.prefix = "ps%d" % (os.getpid() % 100000)
        self.bridge = self.prefix + "br"
        self.count = count
        self.addresses = ["10.77.0.%d:%d" % (i + 1, self.PORT) for i in range(count)]
        try:
            self._ip("link", "add", self.bridge, "type", "bridge")
            self._ip("link", "set", self.bridge, "up")
            for i in range(count):
                self._add_host(i)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def missing():
        """Returns why this machine cannot have namespaces, or "" if it can."""
        if os.geteuid() != 0:
            return "network namespaces need root"
        name = "ps%dtry" % (os.getpid() % 100000)
        for command in (["ip", "netns", "add", name],
                        ["ip", "link", "add", name, "type", "bridge"]):
            try:
                tried = subprocess.run(command, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                return "the command ip is missing (package iproute2)"
            undo = ["ip", "netns" if "netns" in command else "link", "del", name]
            subprocess.run(undo, capture_output=True, check=False)
            if tried.returncode != 0:
                return "%s: %s" % (" ".join(command), tried.stderr.strip())
        return ""

    def _ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    def _name(self, host):
        return "%sh%d" % (self.prefix, host)

    def _add_host(self, host):
        name, inner = self._name(host), self._name(host) + "i"
        self._ip("netns", "add", name)
        self._ip("link", "add", name, "type", "veth", "peer", "name", inner)
        self._ip("link", "set", inner, "netns", name)
        self._ip("link", "set", name, "master", self.bridge, "up")
        address = self.addresses[host].split(":")[0] + "/24"
        for arguments in (["addr", "add", address, "dev", inner], ["link", "set", inner, "up"],
                          ["link", "set", "lo", "up"]):
            self._ip("-netns", name, *arguments)

    def command(self, host, command):
        return ["ip", "netns", "exec", self._name(host), *command]

    def cut(self, host):
        self._ip("link", "set", self._name(host), "nomaster")

    def mend(self, host):
        self._ip("link", "set", self._name(host), "master", self.bridge)

    def close(self):
        for i in range(self.count):
            subprocess.run(["ip", "netns", "del", self._name(i)], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True, check=False)
