# SPDX-License-Identifier: Apache-2.0
"""Reads the data sets of R packages without R.

R stores them as a database: Rdata.rdx has the position of each value in Rdata.rdb. Both are in R's
serialization format (R Internals, section 1.8), compressed by zlib. This module supports only as
much of the format as the packages in use need.
"""

import gzip
import pathlib
import struct
import subprocess
import zlib

# Type codes of values, and codes that replace a value.
SYMBOL, PAIRS, CHARACTERS = 1, 2, 9
LOGICALS, INTEGERS, REALS, STRINGS, LIST = 10, 13, 14, 16, 19
NIL, REFERENCE = 254, 255


class Deserializer:
    """Reads values from R's serialization in XDR format. A vector becomes a list of its elements; a
    vector with names becomes a dict; a factor becomes a list of its levels' names."""

    def __init__(self, data):
        self.data, self.at, self.symbols = data, 0, []
        if self._take(2) != b"X\n":
            raise ValueError("not R's serialization in XDR form")
        version = self._int()
        self._take(8)  # the versions of R that wrote it, and of the oldest R that can read it
        if version == 3:
            self._take(self._int())  # the name of an encoding
        elif version != 2:
            raise ValueError("version %d of R's serialization is not known" % version)

    def _take(self, size):
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("%d bytes are wanted at %d of %d" % (size, self.at, len(self.data)))
        self.at += size
        return self.data[self.at - size:self.at]

    def _int(self):
        return struct.unpack(">i", self._take(4))[0]

    def value(self):
        flags = self._int()
        kind, has_attributes, has_tag = flags & 255, flags & 512, flags & 1024
        if kind == NIL:
            return None
        if kind == SYMBOL:
            self.symbols.append(self.value())
            return self.symbols[-1]
        if kind == REFERENCE:
            return self.symbols[(flags >> 8) - 1]
        if kind == PAIRS:
            return self._pairs(has_attributes, has_tag)
        if kind == CHARACTERS:
            size = self._int()
            return None if size == -1 else self._take(size).decode()
        size = self._int()
        if kind in (LOGICALS, INTEGERS):
            value = list(struct.unpack(">%di" % size, self._take(4 * size)))
        elif kind == REALS:
            value = list(struct.unpack(">%dd" % size, self._take(8 * size)))
        elif kind in (STRINGS, LIST):
            value = [self.value() for _ in range(size)]
        else:
            raise ValueError("type %d of R is not known here" % kind)
        attributes = (self.value() if has_attributes else None) or {}
        if attributes.get("levels"):
            return [attributes["levels"][number - 1] for number in value]
        return dict(zip(attributes["names"], value)) if attributes.get("names") else value

    def _pairs(self, has_attributes, has_tag):
        """Reads a list of pairs as a dict; drops their attributes."""
        if has_attributes:
            self.value()
        tag = self.value() if has_tag else None
        first = self.value()
        return {tag: first, **(self.value() or {})}


def unpack(package, folder):
    """Downloads a Debian package with apt-get and unpacks it to `folder`. It is not installed,
    because that would also install R."""
    subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
    (archive,) = pathlib.Path(folder).glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)


def data_sets(folder, package):
    """Yields, for each data set of the R package that is unpacked in `folder`, its name and a
    function that returns its value."""
    base = pathlib.Path(folder) / "usr/lib/R/site-library" / package / "data"
    index = Deserializer(gzip.decompress((base / "Rdata.rdx").read_bytes())).value()
    if index["compressed"] != [1]:
        raise ValueError("the data sets are not compressed by zlib")
    values = (base / "Rdata.rdb").read_bytes()
    for name, (offset, size) in index["variables"].items():
        # The first four bytes are the uncompressed size.
        yield name, lambda o=offset, n=size: Deserializer(
            zlib.decompress(values[o + 4:o + n])).value()
