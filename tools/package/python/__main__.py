# SPDX-License-Identifier: Apache-2.0
"""Runs the command `penstock` as `python -m penstock`."""

import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "penstock")
    os.execv(program, [program] + sys.argv[1:])


if __name__ == "__main__":
    main()
