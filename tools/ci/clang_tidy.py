#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-14 over src/ and tools/ with the commands of a build folder; prints its findings.

A file is skipped when its preprocessed text, comments included, was clean before under the same
.clang-tidy: a run after a small change takes seconds. The memory is build/tidy-cache; remove it to
run everything again.

With --last N only sources that the last N commits changed are looked at, themselves or by the
header of their name; all of them where the history is shorter.

    tools/ci/clang_tidy.py [build/clang] [--last N]
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tools")
CACHE = ROOT / "build" / "tidy-cache"
TIDY = "clang-tidy-14"


def preprocessed(entry):
    """The text the compiler sees, with comments (NOLINT is one); None if it does not preprocess."""
    arguments = shlex.split(entry["command"])
    if pathlib.Path(arguments[0]).name == "ccache":
        arguments = arguments[1:]
    output = arguments.index("-o")
    del arguments[output : output + 2]
    arguments[arguments.index("-c")] = "-E"
    run = subprocess.run(
        arguments + ["-CC"],
        cwd=entry["directory"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return run.stdout if run.returncode == 0 else None


def complaints(entry, folder, common):
    """What clang-tidy says about one file; empty when it is clean."""
    text = preprocessed(entry)
    marker = CACHE / hashlib.sha256(common + (text or b"")).hexdigest()
    if text is not None and marker.exists():
        return ""
    run = subprocess.run(
        [TIDY, "-p", folder, "--quiet", entry["file"]], cwd=ROOT, capture_output=True, text=True
    )
    if run.returncode == 0:
        marker.touch()
        return ""
    return run.stdout + run.stderr


def changed_lately(commits):
    """Paths without their suffix that the last commits changed; None where git cannot say."""
    run = subprocess.run(
        ["git", "diff", "--name-only", f"HEAD~{commits}", "HEAD", "--", *FOLDERS],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if run.returncode != 0:
        return None
    return {(ROOT / name).with_suffix("") for name in run.stdout.splitlines()}


def main():
    parser = argparse.ArgumentParser(description="clang-tidy over src/ and tools/")
    parser.add_argument("folder", nargs="?", default=ROOT / "build" / "clang", type=pathlib.Path)
    parser.add_argument("--last", metavar="N", type=int, help="of the last N commits alone")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    entries = json.loads((folder / "compile_commands.json").read_text())
    sources = {ROOT / name for name in FOLDERS}
    entries = [e for e in entries if sources & set(pathlib.Path(e["file"]).parents)]
    if not entries:
        sys.exit(f"clang_tidy.py: no file of src/ or tools/ in {folder}/compile_commands.json")
    changed = changed_lately(arguments.last) if arguments.last else None
    if changed is not None:
        entries = [e for e in entries if pathlib.Path(e["file"]).with_suffix("") in changed]
    version = subprocess.run([TIDY, "--version"], check=True, stdout=subprocess.PIPE).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda entry: complaints(entry, folder, common), entries)
        found = [text for text in texts if text]
    print("".join(found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
