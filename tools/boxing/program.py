# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/cluster-in-a-box."""

import csv
import dataclasses
import datetime
import io
import os
import pathlib
import platform
import shutil
import subprocess
import sys

from plotting.data import BadInput
from plotting.parser import OneLineParser, run

from .box import Box, Impairment, NotAllowed
from .graph import read_graph
from .measure import (OPERATIONS, collectives, rounds_of_server, text_of_table, transfers,
                      windows)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # As ctest and automake have it.
INTERRUPTED = 130  # As shells have it.
MOST_SHARE = 0.25
PROBE_BYTES = 200_000_000
NEEDED = ("ip", "ss", "tc", "unshare", "iperf3", "mpirun", "sysctl")


def parser():
    result = OneLineParser(
        prog="tools/cluster-in-a-box", allow_abbrev=False,
        description="Runs real programs on a cluster file in network namespaces, as root.")
    add = result.add_argument
    add("cluster", metavar="CLUSTER.yaml", help="a tree of hosts with one NIC each, and switches")
    add("--measure", choices=("transfers", "incast", "parameter_server", "cwnd", *OPERATIONS),
        required=True)
    add("--algorithm", type=int, metavar="N",
        help="Open MPI's number of an algorithm, instead of its rules' choice (all_reduce: 4 is ring)")
    add("--together", action="store_true",
        help="ranks of a collective begin at an instant, not as they leave a barrier")
    add("--hosts", type=int, help="how many take part (default: all)")
    add("--sizes", default="4096,65536,1048576", metavar="BYTES,...")
    add("--repeat", type=int, default=5, metavar="N")
    add("--queue", type=int, default=131072, metavar="BYTES", help="of a port")
    add("--control", default="reno", help="congestion control of TCP: reno (the default), bbr, cubic")
    add("--delay-us", type=int, default=0, metavar="N", help="of each cable, one way")
    add("--loss", default="0", metavar="SHARE", help="of the packets on each cable")
    add("--mark-from", type=int, default=0, metavar="BYTES",
        help="that wait at a switch's port when it marks (ECN)")
    add("--seed", type=int, default=1, help="of the losses")
    add("--at", default="", metavar="DEVICE,...",
        help="devices whose cables have delay, loss and marks (default: all)")
    add("--output", metavar="FILE", help="instead of standard output")
    add("--programs", default=str(ROOT / "build" / "release" / "bin"), metavar="DIR",
        help="where trainyard and box-mpi-times are")
    return result


def number_list(text):
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise BadInput(f"--sizes: expected numbers with commas between, found \"{text}\"") from error
    if min(numbers) < 4:
        raise BadInput(f"--sizes: expected at least 4 bytes, found {min(numbers)}")
    return numbers


def write_whole(file, text):
    if file is None:
        sys.stdout.write(text)
        return
    draft = pathlib.Path(f"{file}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def take_precedence():
    """Gives all that is run from here on real-time priority, so that other jobs of the machine do not
    disturb it; box-cable is above it. Returns what is said of it beside results."""
    try:
        least = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        os.sched_setscheduler(0, os.SCHED_RR, least)
    except PermissionError:
        print("tools/cluster-in-a-box: no real-time priority is allowed here: other jobs may disturb",
              file=sys.stderr)
        return "without real-time priority"
    return "with real-time priority"


def check_cores(box):
    """Before the links are shaped: refuses rates at which the machine would be the limit."""
    source, target = box.graph.hosts[:2]
    row = transfers(box, [source], target, PROBE_BYTES)[0]
    reached = 8 * row["bytes"] / row["seconds"]
    if box.bits_per_second_of_hosts() > MOST_SHARE * reached:
        raise NotAllowed(f"expected hosts that send at most {MOST_SHARE:.0%} of what this machine "
                         f"carries without limits now ({reached / 1e6:.0f} Mb/s), found "
                         f"{box.bits_per_second_of_hosts() / 1e6:.0f} Mb/s")


def measure_transfers(box, hosts, arguments, sizes):
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(["kind", "run", "senders", "from", "to", "bytes", "seconds", "retransmits"])
    for size in sizes:
        for number in range(arguments.repeat):
            if arguments.measure == "incast":
                groups = [(hosts[1:], hosts[0])]
            else:
                groups = [([source], target) for source, target in zip(hosts, hosts[1:])]
            for sources, target in groups:
                for row in transfers(box, sources, target, size):
                    writer.writerow([arguments.measure, number, len(sources), row["from"], row["to"],
                                     row["bytes"], f'{row["seconds"]:.6f}', row["retransmits"]])
    return output.getvalue()


def measure_server(box, hosts, arguments, sizes):
    lines = ["kind,run,workers,bytes,seconds,push_seconds"]
    for size in sizes:
        rounds = rounds_of_server(box, hosts, size, arguments.repeat)
        for number, (seconds, push) in enumerate(rounds):
            lines.append(f"parameter_server,{number},{len(hosts) - 1},{size},{seconds:.6f},{push:.6f}")
    return "\n".join(lines) + "\n"


def measure_windows(box, hosts, arguments, sizes):
    lines = ["control,run,bytes,seconds,cwnd,rtt_ms,ssthresh,retrans"]
    for size in sizes:
        for number in range(arguments.repeat):
            for seconds, *sample in windows(box, hosts[0], hosts[1], size):
                fields = ",".join(str(field) for field in sample)
                lines.append(f"{arguments.control},{number},{size},{seconds:.3f},{fields}")
    return "\n".join(lines) + "\n"


def measure(box, hosts, arguments, sizes, priority):
    if arguments.measure == "cwnd":
        return measure_windows(box, hosts, arguments, sizes)
    if arguments.measure == "parameter_server":
        return measure_server(box, hosts, arguments, sizes)
    if arguments.measure not in OPERATIONS:
        return measure_transfers(box, hosts, arguments, sizes)
    rows = collectives(box, str(pathlib.Path(arguments.programs) / "box-mpi-times"),
                       arguments.measure, hosts, sizes, arguments.repeat, arguments.algorithm,
                       arguments.together)
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True)
    facts = {"date": datetime.date.today().isoformat(), "repeats": arguments.repeat,
             "algorithm": ("default" if arguments.algorithm is None
                           else f"algorithm {arguments.algorithm} (forced)"),
             "mpi": version.stdout.split("\n", 1)[0],
             "kernel": f"{platform.system()} {platform.release()}; {priority}"
                       + ("; ranks begin together" if arguments.together else "")}
    return text_of_table(box, arguments.measure, hosts, rows, facts)


def skipped(reason):
    print(f"tools/cluster-in-a-box: skipped: {reason}", file=sys.stderr)
    return SKIPPED


def work(words):
    arguments = parser().parse_args(words)
    sizes = number_list(arguments.sizes)
    if arguments.together and arguments.measure not in OPERATIONS:
        raise BadInput(f"--together: expected a collective, found --measure {arguments.measure}")
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        return skipped(f"it needs iproute2, iperf3, openmpi-bin and procps, and finds no {missing[0]}")
    graph = read_graph(str(pathlib.Path(arguments.programs) / "trainyard"), arguments.cluster)
    count = len(graph.hosts) if arguments.hosts is None else arguments.hosts
    if not 2 <= count <= len(graph.hosts):
        raise BadInput(f"--hosts: expected 2 to {len(graph.hosts)}, found {count}")
    devices = tuple(filter(None, arguments.at.split(",")))
    for device in devices:
        if device not in graph.hosts + graph.switches:
            raise BadInput(f"--at: expected one of {', '.join(graph.hosts + graph.switches)}, "
                           f"found \"{device}\"")
    impairment = Impairment(str(pathlib.Path(arguments.programs) / "box-cable"),
                            arguments.delay_us, arguments.loss, arguments.mark_from,
                            arguments.seed, devices)
    priority = take_precedence()
    try:
        # The same path, without losses: with them TCP would be the limit and not the machine.
        bare = dataclasses.replace(impairment, is_bare=True)
        with Box(graph, arguments.queue, arguments.control, bare) as box:
            check_cores(box)
        with Box(graph, arguments.queue, arguments.control, impairment) as box:
            box.shape()
            text = measure(box, graph.hosts[:count], arguments, sizes, priority)
    except NotAllowed as error:
        return skipped(f"this machine cannot be such a cluster: {error}")
    write_whole(arguments.output, text)
    return 0


def main(words):
    try:
        return run("tools/cluster-in-a-box", lambda: work(words))
    except KeyboardInterrupt:
        print("tools/cluster-in-a-box: interrupted", file=sys.stderr)
        return INTERRUPTED
