# SPDX-License-Identifier: Apache-2.0
"""Collective algorithms as Python functions, written as lists of messages for --algo-file."""

import dataclasses
import json
import operator
import os
import re
import tempfile
from typing import Iterable, Optional, Union

from trainyard import _core


@dataclasses.dataclass(frozen=True)
class Send:
    """A message from one rank to another: docs/models/collectives.md says what its parts mean."""

    step: int
    source: int
    destination: int
    chunk: Union[int, Iterable[int]]  # One, or several that are one message.
    reduce: bool = False
    channel: int = 0
    flow: Optional[int] = None


def algorithm(chunks=None, rendezvous=False):
    """A decorator that says into how many chunks a function cuts the data, and whether it waits.

    `chunks` is a number, or a function of the number of ranks; as many chunks as ranks without it.
    """
    def decorate(function):
        function.trainyard_chunks = chunks
        function.trainyard_rendezvous = rendezvous
        return function

    return decorate


def _chunk_count(function, ranks):
    chunks = getattr(function, "trainyard_chunks", None)
    return ranks if chunks is None else chunks(ranks) if callable(chunks) else chunks


def _line(name, number, message):
    if not isinstance(message, Send):
        raise TypeError(f"{name}: yield {number}: expected a trainyard.Send, found {message!r}")
    one = hasattr(message.chunk, "__index__")
    row = {"step": operator.index(message.step), "from": operator.index(message.source),
           "to": operator.index(message.destination),
           "chunks": operator.index(message.chunk) if one else
           [operator.index(each) for each in message.chunk]}
    row |= {"reduce": True} if message.reduce else {}
    row |= {"channel": operator.index(message.channel)} if message.channel else {}
    row |= {} if message.flow is None else {"flow": operator.index(message.flow)}
    return f"- {json.dumps(row)}"  # JSON is YAML.


def algorithm_text(function, operation, ranks, root=0):
    """The file for --algo-file with what `function(ranks, chunks)` yields."""
    chunks = _chunk_count(function, ranks)
    name = getattr(function, "__name__", type(function).__name__)
    lines = [f"operation: {json.dumps(operation)}", f"name: {json.dumps(name)}",
             f"ranks: {ranks}", f"root: {root}", f"chunks: {chunks}"]
    if getattr(function, "trainyard_rendezvous", False):
        lines.append("rendezvous: true")
    messages = [_line(name, number, message)
                for number, message in enumerate(function(ranks, chunks))]
    lines += ["messages:", *messages] if messages else ["messages: []"]
    return "\n".join(lines) + "\n"


def _listed(ranks):
    """How many ranks there are in a number or a list such as "0,8,16" or "0-63:8"."""
    if hasattr(ranks, "__index__"):
        return operator.index(ranks)
    parts = ranks.split(",") if isinstance(ranks, str) else [str(each) for each in ranks]
    if len(parts) == 1 and parts[0].isdigit():
        return int(parts[0])
    count = 0
    for part in parts:
        bounds, _, stride = part.partition(":")
        first, _, last = bounds.partition("-")
        count += len(range(int(first), int(last or first) + 1, int(stride or 1)))
    return count


def run(call, rows, function, operation, options, progress):
    """Runs `collective` with an algorithm of Python; errors name the function instead of a file."""
    ranks = options.get("ranks")
    if ranks is None:
        shared = {row["name"].replace("-", "_") for row in rows["topology"]["options"]}
        cluster = call("topology", **{key: value for key, value in options.items()
                                      if key in shared - {"format", "output"}})["cluster"]
        ranks = int(cluster["GPUs"])
    text = algorithm_text(function, operation, _listed(ranks), options.get("root") or 0)
    options = {"runtime": "plain", **options}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "algorithm.yaml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        try:
            return call("collective", operation, progress=progress, algo_file=file, **options)
        except _core.Error as error:
            name = getattr(function, "__name__", type(function).__name__)
            place = re.compile(re.escape(file) + r"(:\d+:\d+)?")
            named = _core.Error(place.sub(name, str(error)))
            named.place = place.sub(name, error.place)
            raise named from None
