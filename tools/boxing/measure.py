# SPDX-License-Identifier: Apache-2.0
"""What is run in a box, and what it took."""

import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import time

from plotting.data import BadInput

OPERATIONS = {"all_reduce": "allreduce", "broadcast": "bcast", "alltoall": "alltoall"}


def run_on(box, host, *arguments, timeout=600):
    run = subprocess.run(box.command(host, *arguments), capture_output=True, text=True,
                         timeout=timeout, check=False)
    if run.returncode != 0:
        raise BadInput(f"{arguments[0]} on {host}: {run.stderr.strip() or run.stdout.strip()}")
    return run.stdout


def transfers(box, sources, target, size):
    """One transfer of `size` bytes from each source to the target, all at once: iperf3 with a port for
    each. Rows have what had arrived when the sender was done, and when that was: a rate, not the time
    until the last byte."""
    servers = [subprocess.Popen(box.command(target, "iperf3", "--server", "--one-off", "--port",
                                            str(5201 + index)), stdout=subprocess.DEVNULL)
               for index in range(len(sources))]
    time.sleep(0.3)
    clients = [subprocess.Popen(
        box.command(source, "iperf3", "--client", box.address(target), "--port", str(5201 + index),
                    "--bytes", str(size), "--json"), stdout=subprocess.PIPE, text=True)
        for index, source in enumerate(sources)]
    rows = []
    for source, client in zip(sources, clients):
        report = json.loads(client.communicate(timeout=600)[0])
        if "error" in report:
            raise BadInput(f"iperf3 from {source} to {target}: {report['error']}")
        end = report["end"]
        rows.append({"from": source, "to": target, "bytes": end["sum_received"]["bytes"],
                     "seconds": end["sum_received"]["seconds"],
                     "retransmits": end["sum_sent"].get("retransmits", 0)})
    for server in servers:
        server.wait(timeout=30)
    return rows


def sample_of(text):
    """The window in packets, the round trip in milliseconds, the threshold of slow start in packets and
    the packets sent again so far, as `ss -tin` states them; None before a connection has them. Without
    a threshold the field is empty."""
    found = {key: re.search(rf"\b{pattern}", text) for key, pattern in (
        ("cwnd", r"cwnd:(\d+)"), ("rtt", r"(?<!min)rtt:([0-9.]+)/"), ("ssthresh", r"ssthresh:(\d+)"),
        ("retrans", r"retrans:\d+/(\d+)"))}
    if found["cwnd"] is None or found["rtt"] is None:
        return None
    return (int(found["cwnd"][1]), float(found["rtt"][1]),
            int(found["ssthresh"][1]) if found["ssthresh"] else "",
            int(found["retrans"][1]) if found["retrans"] else 0)


def windows(box, source, target, size, every=0.01):
    """Samples of one transfer of `size` bytes, one each `every` seconds or as fast as `ss` answers:
    seconds from its start to the answer, and what sample_of has."""
    with subprocess.Popen(box.command(target, "iperf3", "--server", "--one-off"),
                          stdout=subprocess.DEVNULL) as server:
        time.sleep(0.3)
        start = time.monotonic()
        samples = []
        with subprocess.Popen(
                box.command(source, "iperf3", "--client", box.address(target), "--bytes", str(size)),
                stdout=subprocess.DEVNULL) as client:
            while client.poll() is None:
                now = time.monotonic() - start
                # iperf3's control connection comes first; the one that sends has the largest window.
                lines = run_on(box, source, "ss", "-tinH", "dport", "=", ":5201").split("ESTAB")
                found = [sample for sample in map(sample_of, lines) if sample is not None]
                if len(found) > 1:
                    samples.append((time.monotonic() - start, *max(found)))
                time.sleep(max(0.0, start + now + every - time.monotonic()))
        server.wait(timeout=30)
    if not samples:
        raise BadInput(f"cwnd: expected samples of the transfer from {source} to {target}, found none")
    return samples


def rounds_of_server(box, hosts, size, rounds):
    """Seconds of rounds of a parameter server on the first host, with workers on the others, and of
    their pushes."""
    program = str(pathlib.Path(__file__).with_name("parameter_server.py"))
    with subprocess.Popen(box.command(hosts[0], sys.executable, program, "server", "5201",
                                      str(len(hosts) - 1), str(size), str(rounds)),
                          stdout=subprocess.PIPE, text=True) as server:
        server.stdout.readline()
        workers = [subprocess.Popen(box.command(host, sys.executable, program, "worker",
                                                box.address(hosts[0]), "5201", str(size),
                                                str(rounds), str(seed)))
                   for seed, host in enumerate(hosts[1:], start=1)]
        seconds = [tuple(float(word) / 1e6 for word in line.split()) for line in server.stdout]
        for worker in workers:
            worker.wait(timeout=30)
    if len(seconds) != rounds:
        raise BadInput(f"parameter server: expected {rounds} rounds, found {len(seconds)}")
    return seconds


def agent_of(box):
    """The program that Open MPI calls to start its daemon on another host, in place of ssh."""
    handle, name = tempfile.mkstemp(prefix=box.prefix)
    cases = "\n".join(f'  {box.address(host)}) host={host} ;;' for host in box.graph.hosts)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(f'#!/bin/sh\ncase "$1" in\n{cases}\n  *) exit 1 ;;\nesac\nshift\n'
                     f'exec ip netns exec {box.prefix}$host unshare --uts '
                     'sh -c \'hostname "$0"; exec sh -c "$*"\' $host "$@"\n')
    os.chmod(name, stat.S_IRWXU)
    return name


def forced(operation, algorithm):
    """Options by which Open MPI takes the algorithm of that number instead of what its rules say."""
    if algorithm is None:
        return []
    return ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca",
            f"coll_tuned_{OPERATIONS[operation]}_algorithm", str(algorithm)]


def collectives(box, program, operation, hosts, sizes, repeats, algorithm=None, together=False):
    """Medians and spread of one operation over sizes, one rank a host: Open MPI over TCP alone. Ranks
    that go together begin at an instant, others as they leave a barrier."""
    agent = agent_of(box)
    try:
        addresses = [box.address(host) for host in hosts]
        output = run_on(
            box, hosts[0], "mpirun", "--allow-run-as-root", "--mca", "plm", "rsh", "--mca",
            "plm_rsh_agent", agent, "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include",
            "10.77.0.0/16", "--mca", "oob_tcp_if_include", "10.77.0.0/16", "--mca", "pml", "ob1",
            "--host", ",".join(f"{address}:1" for address in addresses), "--bind-to", "none",
            "--mca", "mpi_yield_when_idle", "1", "--mca", "opal_event_include", "epoll",
            *forced(operation, algorithm), program, OPERATIONS[operation], str(repeats),
            *(["together"] if together else []), *(str(size) for size in sizes))
    finally:
        pathlib.Path(agent).unlink()
    return [dict(zip(("bytes", "median_us", "least_us", "most_us"), map(float, line.split())))
            for line in output.splitlines() if line and line[0].isdigit()]


def text_of_table(box, operation, hosts, rows, facts):
    """A measured table (docs/inputs/measurements.md), its times medians."""
    lines = [
        "source:",
        f'  title: "{box.graph.name}: Open MPI in network namespaces"',
        '  url: null',
        '  repo_or_site: "tools/cluster-in-a-box"',
        f'  date_if_known: "{facts["date"]}"',
        f'  note: "medians of {facts["repeats"]}; least and most in percent of them: '
        f'{spread_of(rows)}"',
        "system:",
        f'  name: "{box.graph.name}"',
        f"  nodes: {len(hosts)}",
        "  gpus_per_node: 1",
        '  gpu: "none: buffers in host memory"',
        '  intra: "none"',
        f'  inter: "TCP ({box.congestion_control}) over shaped links, queues of {box.queue} bytes"',
        f'  notes: "{facts["mpi"]}; {facts["kernel"]}"',
        "test:",
        f'  op: "{operation}"',
        f"  ranks: {len(hosts)}",
        '  datatype: "float"',
        '  in_place_or_out: "out"',
        f'  algo_proto: "{facts["algorithm"]}"',
        "rows:",
    ]
    for row in rows:
        lines.append(f'  - {{bytes: {row["bytes"]:.0f}, time_us: {row["median_us"]:.2f}}}')
    return "\n".join(lines) + "\n"


def spread_of(rows):
    least = min(row["least_us"] / row["median_us"] for row in rows)
    most = max(row["most_us"] / row["median_us"] for row in rows)
    return f"{100 * least:.0f} to {100 * most:.0f}"
