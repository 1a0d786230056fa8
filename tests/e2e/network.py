# SPDX-License-Identifier: Apache-2.0
"""A network between processes of one host. The connection between two of them can be cut."""

import glob
import os
import socket
import threading


class Proxy:
    """Forwards connections to one address, but drops all bytes from and to the processes that are
    cut off.

    Their connections stay open, as when packets are lost. A process is recognised by its end of
    the connection, so a cut needs no special permission.
    """

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._to = None
        self._cut = set()

    def forward_to(self, address):
        host, port = address.split(":")
        self._to = (host, int(port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, pid):
        self._cut.add(pid)

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near, peer = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near, peer[1]), daemon=True).start()

    def _serve(self, near, port):
        pid = owner(port)
        try:
            far = socket.create_connection(self._to)
        except OSError:
            near.close()
            return
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._copy, args=(pid, source, sink), daemon=True).start()

    def _copy(self, pid, source, sink):
        try:
            while data := source.recv(65536):
                if pid not in self._cut:
                    sink.sendall(data)
        except OSError:
            pass
        if pid not in self._cut:
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def owner(port):
    """Returns the process that has a connection from this port of the loopback interface."""
    inode = None
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as f:
            for line in list(f)[1:]:
                fields = line.split()
                if int(fields[1].rsplit(":", 1)[1], 16) == port:
                    inode = inode or "socket:[%s]" % fields[9]
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) == inode:
                return int(link.split("/")[2])
        except OSError:
            pass
    return None
