# SPDX-License-Identifier: Apache-2.0
"""Arguments and input of both programs; a mistake is one line."""

import argparse
import sys

from .data import BadInput


class OneLineParser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(message)


def read_text(file):
    """Of the file, or of standard input if it is None."""
    if file is None:
        return sys.stdin.read()
    with open(file, encoding="utf-8") as stream:
        return stream.read()


def run(name, work):
    """The status of work(); what is wrong with the input is a line with the program's name and 2."""
    try:
        return work()
    except (BadInput, OSError, UnicodeDecodeError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
