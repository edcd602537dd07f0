#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the type stubs of the module trainyard from the tables of commands and options.

    python3 python/tools/stubs.py FILE
"""

import keyword
import sys

import trainyard

HEAD = '''# Made by python/tools/stubs.py from the tables of options.
from typing import Any, Callable, Iterable, Literal, Mapping, Optional, Union

_Plain = Union[str, int, float]
_Many = Union[_Plain, Iterable[_Plain], Mapping[str, Any]]
_Progress = Optional[Callable[[str], None]]
__version__: str

class Error(Exception):
    place: str

class Cancelled(Exception): ...
class Warning(UserWarning): ...

class Result(dict[str, Any]):
    @property
    def text(self) -> str: ...
    @property
    def status(self) -> int: ...
    @property
    def log(self) -> list[str]: ...
    def csv(self) -> str: ...
    def rows(self, path: Optional[str] = ...) -> list[dict[str, Any]]: ...
    def frame(self, path: Optional[str] = ...) -> Any: ...
    def plot(self, x: Optional[str] = ..., y: Optional[str] = ...,
             path: Optional[str] = ...) -> Any: ...

class FlowSignal:
    kind: Literal["start", "ack", "loss", "timeout"]
    flow: int
    now_ps: int
    line_bits_per_second: int
    base_rtt_ps: int
    packet_bytes: int
    rtt_ps: int
    acked: int
    next: int
    size_bytes: int
    is_marked: bool

_Pace = Union[None, float, tuple[Optional[float], Optional[float]]]
_Control = Callable[[FlowSignal], Callable[[FlowSignal], _Pace]]

class Send:
    def __init__(self, step: int, source: int, destination: int, chunk: Union[int, Iterable[int]],
                 reduce: bool = ..., channel: int = ..., flow: Optional[int] = ...) -> None: ...

_Algorithm = Callable[[int, int], Iterable[Send]]

def algorithm(chunks: Union[None, int, Callable[[int], int]] = ...,
              rendezvous: bool = ...) -> Callable[[_Algorithm], _Algorithm]: ...
def algorithm_text(function: _Algorithm, operation: str, ranks: int, root: int = ...) -> str: ...
def commands() -> dict[str, dict[str, Any]]: ...
def call(command: str, *arguments: _Plain, progress: _Progress = ..., **options: Any) -> Result: ...
'''


def type_of(option):
    if option["choices"] and not option["repeats"]:
        return "Literal[" + ", ".join(repr(each) for each in option["choices"]) + "]"
    if not option["value"]:
        return "bool"
    return "_Many"


def parameters(row, is_method):
    names = [option["name"] for option in row["options"]]
    arguments = [option for option in row["options"] if option["is_argument"]]
    options = [option for option in row["options"] if not option["is_argument"]]
    made = ["self"] if is_method else []
    if row["name"] == "sweep":
        made.append("spec: Union[str, Mapping[str, Any]]")
    elif arguments:
        made.append("*arguments: _Plain")
    elif "workload" in names:
        made.append("workload: Optional[str] = ...")
        options = [option for option in options if option["name"] != "workload"]
    if not made or not made[-1].startswith("*"):
        made.append("*")
    made.append("progress: _Progress = ...")
    if row["name"] == "collective":
        made.append("algorithm: Optional[_Algorithm] = ...")
    for option in options:
        if is_method and option["name"] == "cluster":
            continue
        name = option["name"].replace("-", "_")
        name += "_" if keyword.iskeyword(name) else ""
        kind = "Union[str, _Control]" if name == "control" else type_of(option)
        made.append(f"{name}: Optional[{kind}] = ...")
    return ", ".join(made)


def main():
    lines = [HEAD]
    rows = trainyard.commands().values()
    for row in rows:
        name = trainyard._calls.function_name(row["name"])
        lines.append(f"def {name}({parameters(row, False)}) -> Result: ...")
    lines += ["", "class Cluster:", "    options: dict[str, Any]",
              "    def __init__(self, name_or_file: str, *, nodes: Optional[int] = ..., "
              "set: Optional[_Many] = ..., **options: Any) -> None: ..."]
    for row in rows:
        if any(option["name"] == "cluster" for option in row["options"]):
            name = trainyard._calls.function_name(row["name"])
            lines.append(f"    def {name}({parameters(row, True)}) -> Result: ...")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
