#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same command lines with two builds; says where figures or words are not the same.

OTHER_ROOT is another checkout, such as one of the commit before a refactoring, with a release build
of its own. Each program runs in the root of its checkout. A figure is a number or a truth value and
is compared as it is written: in JSON by its path, in CSV by its column and row, elsewhere in the
order of occurrence. One that is missing on either side is a difference, and so is another exit
status; JSON keys and CSV columns that only this checkout has are named as added. All else is text,
which may change. Exits 1 when figures differ.

    tools/ci/compare_builds.py OTHER_ROOT [--lines FILE] [--root DIR]
"""
import argparse
import concurrent.futures
import contextlib
import csv
import difflib
import io
import itertools
import json
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve()
PROGRAM = pathlib.Path("build/release/bin/trainyard")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
FIGURE = re.compile(NUMBER.pattern + "|true|false|[-+]?(?:nan|inf)")
AT_ONCE = 2
MOST_LINES = 12
WIDEST = 160


class Figure(str):
    """A number or truth value, as it is written."""


class Missing(str):
    """Stands where the other side has a value."""


MISSING = Missing("nothing")


class Findings:
    """What differs between two outputs. Texts are those of both, for a diff."""

    def __init__(self):
        self.figures, self.old_text, self.new_text, self.added = [], [], [], set()

    def compare(self, old, new, path=""):
        if isinstance(old, dict) and isinstance(new, dict):
            for key, value in old.items():
                self.compare(value, new.get(key, MISSING), f"{path}.{key}")
            self.added |= {re.sub(r"\[\d+\]", "[]", f"{path}.{key}") for key in new.keys() - old}
        elif isinstance(old, list) and isinstance(new, list):
            for index, pair in enumerate(itertools.zip_longest(old, new, fillvalue=MISSING)):
                self.compare(*pair, f"{path}[{index}]")
        elif {type(old), type(new)} <= {str, Missing}:
            self.old_text += [f"{path}: {old}"]
            self.new_text += [f"{path}: {new}"]
        elif type(old) is not type(new) or old != new:
            self.figures.append(f"{path}: {old} -> {new}")

    def compare_plain(self, old, new):
        self.old_text, self.new_text = old.splitlines(), new.splitlines()
        found = ([(number, figure) for number, line in enumerate(lines, 1)
                  for figure in NUMBER.findall(line)] for lines in (self.old_text, self.new_text))
        for one, other in itertools.zip_longest(*found, fillvalue=(0, MISSING)):
            if one[1] != other[1]:
                self.figures.append(f"line {one[0] or other[0]}: {one[1]} -> {other[1]}")


def parsed(words, text):
    """What is in an output as JSON or CSV; nothing for other text."""
    with contextlib.suppress(ValueError):
        return json.loads(text, parse_float=Figure, parse_int=Figure, parse_constant=Figure)
    if "csv" not in words:
        return None
    columns = {}
    for name, *cells in itertools.zip_longest(*csv.reader(io.StringIO(text)), fillvalue=""):
        columns.setdefault(name, []).extend(
            Figure(cell) if FIGURE.fullmatch(cell) else cell for cell in cells)
    return columns


def run(root, words):
    """Exit status, output without the place of the checkout, and what standard error has."""
    done = subprocess.run([root / PROGRAM, *words], cwd=root, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout.replace(f"{root}/", ""), done.stderr.strip().rpartition("\n")[2]


def compare_runs(words, old, new):
    findings = Findings()
    values = parsed(words, old[1]), parsed(words, new[1])
    if None in values:
        findings.compare_plain(old[1], new[1])
    else:
        findings.compare(*values)
    if old[0] != new[0]:
        findings.figures.insert(0, f"exit status: {old[0]} -> {new[0]} {new[2] or old[2]}")
    return findings


def report(line, findings):
    """Prints what was found of a command line; returns the verdict."""
    verdict, lines = "same", findings.figures
    if lines:
        verdict = "figures differ"
    elif findings.old_text != findings.new_text:
        verdict = "text differs"
        lines = [*difflib.unified_diff(findings.old_text, findings.new_text, lineterm="", n=0)][2:]
    print(f"{verdict:<14}  {line}", flush=True)
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"and {len(lines) - MOST_LINES} more"]
    for text in lines + [f"added: {path}" for path in sorted(findings.added)]:
        print("    " + (text if len(text) <= WIDEST else text[:WIDEST] + "..."))
    return verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other_root", type=pathlib.Path, help="checkout to compare with")
    parser.add_argument("--lines", type=pathlib.Path, default=HERE.with_name("command_lines.txt"),
                        help="command lines without the program; '#' begins a comment")
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[2],
                        help="instead of the checkout that this script is in")
    options = parser.parse_args()
    roots = options.other_root.resolve(), options.root.resolve()
    for root in roots:
        if not (root / PROGRAM).is_file():
            sys.exit(f"{root / PROGRAM}: expected a release build, found nothing")
    lines = re.findall(r"^[^#\s].*", options.lines.read_text(), re.MULTILINE)
    # "OLD => NEW" is a line whose options have other names in this checkout.
    jobs = [(root, shlex.split(line.split(" => ")[side])) for line in lines
            for side, root in zip((0, -1), roots)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = pool.map(run, *zip(*jobs))
        verdicts = [report(line, compare_runs(shlex.split(line), next(done), next(done)))
                    for line in lines]
    same, texts, figures = map(verdicts.count, ("same", "text differs", "figures differ"))
    print(f"{same} same, {texts} texts differ, {figures} figures differ")
    return int(figures > 0)


if __name__ == "__main__":
    sys.exit(main())
