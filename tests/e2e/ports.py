# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that a test starts later. No other test of this machine gets them meanwhile:
each port has a lock file, which the test holds until its process ends."""

import fcntl
import os
import random
import socket
import tempfile

FIRST, END = 10000, 30000  # below the range from which the system takes ports for connections
FOLDER = os.path.join(tempfile.gettempdir(), "penstock-test-ports-%d" % os.getuid())

_locks = []


def _reserve(port):
    lock = os.open(os.path.join(FOLDER, str(port)), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as probe:
            probe.bind(("", port))
    except OSError:  # another test or another program has the port
        os.close(lock)
        return False
    _locks.append(lock)
    return True


def free_ports(count):
    os.makedirs(FOLDER, exist_ok=True)
    ports = []
    while len(ports) < count:
        port = random.randrange(FIRST, END)
        if _reserve(port):
            ports.append(port)
    return ports
