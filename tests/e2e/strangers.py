# SPDX-License-Identifier: Apache-2.0
"""Programs that are no tasks of Penstock, at addresses where one is expected; and certificates."""

import http.server
import os
import re
import socket
import subprocess
import tempfile
import threading


class Silent:
    """Accepts connections, and sends nothing."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]

    def close(self):
        self.listener.close()


class BlackHole:
    """Answers no attempt to connect, as if a firewall dropped the packets: its queue of new
    connections is full."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        host, port = self.listener.getsockname()
        self.address = "%s:%d" % (host, port)
        self.queued = []
        for _ in range(4):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex((host, port))
            self.queued.append(connection)

    def close(self):
        for connection in self.queued:
            connection.close()
        self.listener.close()


class QuietHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Web:
    """An HTTP/1.1 server."""

    def __init__(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), QuietHandler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def frame(kind, flags, stream, payload=b""):
    """Returns an HTTP/2 frame."""
    return (len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
            + payload)


def field(number, value):
    """Returns a field of a protocol buffer: bytes, or a number below 128."""
    if isinstance(value, int):
        return bytes(varint(number << 3)) + bytes([value])
    return bytes(varint(number << 3 | 2)) + bytes([len(value)]) + value


def varint(number):
    while number > 127:
        yield number & 127 | 128
        number >>= 7
    yield number


class OtherGrpc:
    """A gRPC server that has none of Penstock's services: it answers each call that it does not
    know the method. With `message`, it answers each call with that message."""

    DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
    ACK, END_STREAM, END_HEADERS = 1, 1, 4
    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    def __init__(self, message=None):
        self.message = message
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _answer(self, stream):
        def literal(name, value):  # HPACK: a header that is not indexed
            return bytes([0, len(name)]) + name + bytes([len(value)]) + value
        begin = b"\x88" + literal(b"content-type", b"application/grpc")
        last = self.END_HEADERS | self.END_STREAM
        if self.message is None:
            return frame(self.HEADERS, last, stream, begin + literal(b"grpc-status", b"12"))
        data = b"\0" + len(self.message).to_bytes(4, "big") + self.message
        return (frame(self.HEADERS, self.END_HEADERS, stream, begin)
                + frame(self.DATA, 0, stream, data)
                + frame(self.HEADERS, last, stream, literal(b"grpc-status", b"0")))

    def _serve(self, connection):
        try:
            self._answer_calls(connection)
        except ConnectionError:  # the client has gone
            pass

    def _answer_calls(self, connection):
        with connection, connection.makefile("rb") as source:
            if source.read(len(self.PREFACE)) != self.PREFACE:
                return
            connection.sendall(frame(self.SETTINGS, 0, 0))
            while len(head := source.read(9)) == 9:
                payload = source.read(int.from_bytes(head[:3], "big"))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                if kind == self.SETTINGS and not flags & self.ACK:
                    connection.sendall(frame(self.SETTINGS, self.ACK, 0))
                elif kind == self.PING and not flags & self.ACK:
                    connection.sendall(frame(self.PING, self.ACK, 0, payload))
                elif kind == self.HEADERS:
                    connection.sendall(self._answer(stream))


def task_of_another_version():
    """Answers for the first ps, like a task of a Penstock of long ago: with a TaskReport of
    proto/penstock/insight.proto."""
    incarnation = field(1, b"/job:ps/replica:0/task:0")
    return OtherGrpc(field(1, incarnation) + field(2, b"0.0.1") + field(15, 1) + field(16, b"auto"))


def certificates():
    """Returns a new folder with ca.pem, task.pem, task.key, token, made as SECURITY.md says, and
    expired.pem."""
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    with open("SECURITY.md") as f:
        script = re.search(r"^```sh\n(.*?)^```$", f.read(), re.DOTALL | re.MULTILINE).group(1)
    script += ("openssl x509 -req -in task.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days -1 "
               "-extfile names -out expired.pem\n")
    subprocess.run(["bash", "-euc", script], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return folder
