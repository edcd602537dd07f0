# SPDX-License-Identifier: Apache-2.0
"""Hosts, switches and cables of a cluster file, as `trainyard topology` reads it: the file has one
reader only."""

import json
import subprocess
from dataclasses import dataclass, field

from plotting.data import BadInput

# A full frame of TCP: 1448 bytes of payload (1500 of IP, time stamps) in 1538 on the wire (IEEE 802.3).
PAYLOAD_OF_FRAME = 1448
WIRE_OF_FRAME = 1538


@dataclass
class Cable:
    """Joins two of the graph's devices, with the same line rate both ways."""

    ends: tuple
    bits_per_second: int


@dataclass
class Graph:
    name: str
    hosts: list = field(default_factory=list)
    switches: list = field(default_factory=list)
    cables: list = field(default_factory=list)


def host_of(node):
    return node.split("/")[0]


def graph_of(document):
    """Of the JSON that `trainyard topology` prints. Rates there are those of long transfers, without
    headers; a cable has the line rate that gives TCP with full frames just that."""
    graph = Graph(document["cluster"]["name"])
    names = {node["id"]: node["name"] for node in document["graph"]["nodes"]}
    kinds = {node["name"]: node["kind"] for node in document["graph"]["nodes"]}
    for name, kind in kinds.items():
        if kind == "nic":
            if host_of(name) in graph.hosts:
                raise BadInput(f"expected one NIC for each server, found {name}")
            graph.hosts.append(host_of(name))
        elif kind == "switch":
            graph.switches.append(name)
    pairs = {}
    for link in document["graph"]["links"]:
        if link["kind"] != "network":
            continue
        ends = []
        for end in (link["source"], link["target"]):
            name = names[end]
            if kinds[name] not in ("nic", "switch"):
                raise BadInput(f"expected cables between NICs and switches, found one at {name}")
            ends.append(host_of(name) if kinds[name] == "nic" else name)
        if ends[0] > ends[1]:
            continue  # The same cable, the other way.
        if tuple(ends) in pairs:
            raise BadInput(f"expected one cable between two devices, found more between {ends[0]} "
                           f"and {ends[1]}: bridges would send in circles")
        pairs[tuple(ends)] = link["bandwidth_bits_per_s"] * WIRE_OF_FRAME // PAYLOAD_OF_FRAME
    graph.cables = [Cable(ends, rate) for ends, rate in pairs.items()]
    if len(graph.cables) != len(graph.hosts) + len(graph.switches) - 1:
        raise BadInput(f"expected a tree of {len(graph.hosts)} hosts and {len(graph.switches)} "
                       f"switches, found {len(graph.cables)} cables: bridges would send in circles, "
                       "or some host has no way to another")
    return graph


def read_graph(trainyard, cluster):
    run = subprocess.run([trainyard, "topology", "--cluster", cluster, "--format", "json"],
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise BadInput(run.stderr.strip().removeprefix("trainyard: "))
    return graph_of(json.loads(run.stdout))
