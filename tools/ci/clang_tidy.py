#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-14 over src/ and tools/ with the commands of a build folder; prints its findings.

A file is skipped when its preprocessed text, comments included, was clean before under the same
.clang-tidy: a run after a small change takes seconds. The memory is build/tidy-cache; remove it to
run everything again.

Most of the time for a file goes into the headers of the system, so that files of a folder are
looked at together, as one text: checks such as misc-unused-using-decls ignore what is included.
Where that is not clean, each is looked at alone, and what is said then counts.

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
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tools")
CACHE = ROOT / "build" / "tidy-cache"
TIDY = "clang-tidy-14"
TOGETHER = 10


def compiler_arguments(entry):
    """Of one file, without ccache and precompiled headers."""
    arguments = shlex.split(entry["command"])
    if pathlib.Path(arguments[0]).name == "ccache":
        arguments = arguments[1:]
    rest = []
    tokens = iter(arguments)
    for token in tokens:
        if token != "-Xclang":
            rest.append(token)
            continue
        token = next(tokens)
        if token in ("-include-pch", "-include"):
            next(tokens)
            next(tokens)
        else:
            rest += ["-Xclang", token]
    return rest


def preprocessed(entry):
    """The text the compiler sees, with comments (NOLINT is one); None if it does not preprocess."""
    arguments = list(entry["arguments"])
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


def local_names(text):
    """What is declared for this file alone: aliases, and names in unnamed namespaces, which
    clang-format does not indent."""
    names = set(re.findall(r"^ *using [\w:]*?(\w+);", text, re.M))
    names.update(re.findall(r"^ *namespace (\w+) =", text, re.M))
    for part in re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", text, re.M | re.S):
        for line in part.splitlines():
            declared = re.match(r"(?:struct|class|enum class|using) (\w+)", line) or re.match(
                r"(?!namespace|template)\w.*?(\w+)(?:[(\[{;]| = )", line
            )
            if declared:
                names.add(declared.group(1))
    return names


def batches(entries):
    """Files of one folder in lists of TOGETHER at most that share no local name."""
    lists = []
    for entry in entries:
        names = local_names(pathlib.Path(entry["file"]).read_text())
        folder = pathlib.Path(entry["file"]).parent
        for batch in lists:
            if (
                batch["folder"] == folder
                and len(batch["entries"]) < TOGETHER
                and not names & batch["names"]
            ):
                break
        else:
            batch = {"folder": folder, "names": set(), "entries": []}
            lists.append(batch)
        batch["entries"].append(entry)
        batch["names"] |= names
    return sorted((batch["entries"] for batch in lists), key=len, reverse=True)


def write_commands(folder, lists):
    """A compile_commands.json in `folder`; the name there of the text of each list."""
    commands = []
    names = []
    for number, entries in enumerate(lists):
        name = folder / f"{number}.cpp"
        texts = [pathlib.Path(entry["file"]).read_text() for entry in entries]
        name.write_text("\n".join(texts))
        names.append(name)
        for file, entry in [(str(name), entries[0])] + [(e["file"], e) for e in entries]:
            arguments = [file if a == entry["file"] else a for a in entry["arguments"]]
            commands.append(
                {"directory": entry["directory"], "file": file, "arguments": arguments}
            )
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return names


def complaints(name, folder):
    """What clang-tidy says about one file; empty when it is clean."""
    run = subprocess.run(
        [TIDY, "-p", folder, "--config-file", ROOT / ".clang-tidy", "--quiet", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return "" if run.returncode == 0 else run.stdout + run.stderr


def all_complaints(name, entries, folder):
    """What clang-tidy says about the files whose texts `name` holds."""
    texts = []
    if len(entries) == 1 or complaints(name, folder):
        texts = [complaints(entry["file"], folder) for entry in entries]
    for entry, text in zip(entries, texts or [""] * len(entries)):
        if entry["marker"] and not text:
            entry["marker"].touch()
    return "".join(texts)


def changed_lately(commits):
    """Paths without their suffix of files of which the last commits changed more than what they
    include, as moves do; None where git cannot say."""
    run = subprocess.run(
        ["git", "diff", "-M", "-U0", f"HEAD~{commits}", "HEAD", "--", *FOLDERS],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    if run.returncode != 0:
        return None
    changed = set()
    for line in run.stdout.splitlines():
        if line.startswith("+++ b/"):
            path = (ROOT / line.removeprefix("+++ b/")).with_suffix("")
        elif line.startswith("+") and not re.match(r"\+\s*(#include|//|$)", line):
            changed.add(path)
    return changed


def marker_of(entry, common):
    """The file that says that this text was clean; None if it does not preprocess."""
    text = preprocessed(entry)
    return text and CACHE / hashlib.sha256(common + text).hexdigest()


def sources_of(entry, folder):
    """The entry, or one for each file that it joins: src/CMakeLists.txt compiles those of a room as
    one that includes them all."""
    file = pathlib.Path(entry["file"])
    if folder / "src" / "rooms" not in file.parents:
        return [entry]
    names = re.findall(r'^#include "(.*)"$', file.read_text(), re.M)
    files = [str(ROOT / "src" / name) for name in names]
    return [{**entry, "file": f, "command": entry["command"].replace(str(file), f)} for f in files]


def chosen_entries(folder, commits):
    entries = json.loads((folder / "compile_commands.json").read_text())
    entries = [one for entry in entries for one in sources_of(entry, folder)]
    sources = {ROOT / name for name in FOLDERS}
    entries = [e for e in entries if sources & set(pathlib.Path(e["file"]).parents)]
    if not entries:
        sys.exit(f"clang_tidy.py: no file of src/ or tools/ in {folder}/compile_commands.json")
    changed = changed_lately(commits) if commits else None
    if changed is not None:
        entries = [e for e in entries if pathlib.Path(e["file"]).with_suffix("") in changed]
    for entry in entries:
        entry["arguments"] = compiler_arguments(entry)
    return entries


def main():
    parser = argparse.ArgumentParser(description="clang-tidy over src/ and tools/")
    parser.add_argument("folder", nargs="?", default=ROOT / "build" / "clang", type=pathlib.Path)
    parser.add_argument("--last", metavar="N", type=int, help="of the last N commits alone")
    arguments = parser.parse_args()
    entries = chosen_entries(arguments.folder.resolve(), arguments.last)
    version = subprocess.run([TIDY, "--version"], check=True, stdout=subprocess.PIPE).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(
        os.cpu_count()
    ) as pool:
        markers = list(pool.map(lambda entry: marker_of(entry, common), entries))
        waiting = []
        for entry, marker in zip(entries, markers):
            if not marker or not marker.exists():
                waiting.append({**entry, "marker": marker})
        lists = batches(waiting)
        names = write_commands(pathlib.Path(scratch), lists)
        texts = pool.map(lambda name, some: all_complaints(name, some, scratch), names, lists)
        found = [text for text in texts if text]
    print("".join(found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
