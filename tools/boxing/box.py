# SPDX-License-Identifier: Apache-2.0
"""A cluster of network namespaces: one for each host, and one for each switch, with a bridge in it.
Cables are pairs of veth devices; shape() limits both ends to the rate of the line, frames counted as
on Ethernet, with the queue of a port before them.

Nothing outside these namespaces is touched, and they are gone when the box is left, killed or not."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from plotting.data import BadInput

ETHERNET_OVERHEAD = 24  # Preamble, check sequence and gap: what a veth does not count.
BURST = 3028  # Two frames: enough for a timer of the kernel at the rates of a box.
ADDRESS = "10.77.{}.{}"


class NotAllowed(Exception):
    """This machine lets nobody make network namespaces or shape links, or not this user, or it is too
    slow or busy."""


def call(*arguments):
    run = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise NotAllowed(f"{' '.join(arguments)}: {run.stderr.strip() or run.returncode}")
    return run.stdout


@dataclass
class Impairment:
    """What box-cable does to the cables at `devices` (all, if there are none)."""

    program: str
    delay_us: int = 0
    loss: str = "0"
    mark_from: int = 0
    seed: int = 1
    devices: tuple = ()
    is_bare: bool = False  # box-cable carries the frames, and does nothing to them.

    def is_at(self, cable):
        asked = self.delay_us > 0 or float(self.loss) > 0 or self.mark_from > 0
        return asked and (not self.devices or bool(set(cable.ends) & set(self.devices)))

    def options(self, number, cable, queue):
        if self.is_bare:
            return []
        words = ["--delay-us", self.delay_us, "--loss", self.loss, "--seed", self.seed + 2 * number]
        if self.mark_from > 0:
            words += ["--rate", cable.bits_per_second, "--queue", queue, "--mark-from",
                      self.mark_from]
        return [str(word) for word in words]


class Box:
    """`queue`: bytes that wait at a port before it drops."""

    def __init__(self, graph, queue, congestion_control, impairment):
        self.impairment = impairment
        self.carriers = []
        self.graph = graph
        self.queue = queue
        self.congestion_control = congestion_control
        self.prefix = f"box{os.getpid()}-"
        self.names = []

    def name(self, device):
        return self.prefix + device

    def address(self, host):
        index = self.graph.hosts.index(host) + 1
        return ADDRESS.format(index // 256, index % 256)

    def command(self, host, *arguments):
        """That runs a program on a host, under a host name of its own."""
        script = 'hostname "$0"; exec "$@"'
        return ["ip", "netns", "exec", self.name(host), "unshare", "--uts", "sh", "-c", script, host,
                *arguments]

    def add_namespace(self, device):
        call("ip", "netns", "add", self.name(device))
        self.names.append(self.name(device))
        self.inside(device, "ip", "link", "set", "lo", "up")

    def inside(self, device, *arguments):
        return call("ip", "netns", "exec", self.name(device), *arguments)

    def set_control(self, host):
        allowed = self.inside(host, "sysctl", "-n", "net.ipv4.tcp_allowed_congestion_control")
        if self.congestion_control not in allowed.split():
            raise BadInput(f"--control: expected one that the kernel lets namespaces use "
                           f"({', '.join(allowed.split())}), found \"{self.congestion_control}\"")
        self.inside(host, "sysctl", "-q", "-w",
                    f"net.ipv4.tcp_congestion_control={self.congestion_control}")

    def add_cable(self, number, cable):
        ports = [f"c{number}"] * 2
        if self.impairment.is_at(cable):
            self.add_carrier(number, cable)
        else:
            call("ip", "link", "add", ports[0], "netns", self.name(cable.ends[0]), "type", "veth",
                 "peer", "name", ports[1], "netns", self.name(cable.ends[1]))
        for device, port in zip(cable.ends, ports):
            if device in self.graph.switches:
                self.inside(device, "ip", "link", "set", port, "master", "bridge")
            else:
                self.inside(device, "ip", "address", "add", self.address(device) + "/16", "dev", port)
            # Frames as on a cable, not bundles that the kernel would cut later.
            self.inside(device, "ip", "link", "set", port, "gso_max_segs", "1", "up")

    def add_carrier(self, number, cable):
        """box-cable instead of a pair of veth devices, with a TAP device of the same name at each end."""
        words = [self.impairment.program, *(self.name(end) for end in cable.ends), f"c{number}",
                 *self.impairment.options(number, cable, self.queue)]
        carrier = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.carriers.append(carrier)
        if carrier.stdout.readline() != "ready\n":
            raise BadInput(carrier.stderr.read().strip())

    def shape(self):
        for number, cable in enumerate(self.graph.cables):
            for device in cable.ends:
                # There the queue is box-cable's own, which sees what it marks.
                if (self.impairment.mark_from > 0 and self.impairment.is_at(cable)
                        and device in self.graph.switches):
                    continue
                self.inside(device, "tc", "qdisc", "add", "dev", f"c{number}", "root", "stab",
                            "overhead", str(ETHERNET_OVERHEAD), "linklayer", "ethernet", "tbf",
                            "rate", f"{cable.bits_per_second}bit", "burst", str(BURST), "limit",
                            str(self.queue))

    def bits_per_second_of_hosts(self):
        """What all hosts send together at line rate."""
        return sum(cable.bits_per_second for cable in self.graph.cables
                   if set(cable.ends) & set(self.graph.hosts))

    def __enter__(self):
        # A signal ends the program by an exception, so that __exit__ runs.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            for device in self.graph.hosts + self.graph.switches:
                self.add_namespace(device)
            for host in self.graph.hosts:
                # No run starts with what the last one learned.
                self.inside(host, "sysctl", "-q", "-w", "net.ipv4.tcp_no_metrics_save=1")
                self.set_control(host)
                if self.impairment.mark_from > 0:
                    self.inside(host, "sysctl", "-q", "-w", "net.ipv4.tcp_ecn=1")
            for switch in self.graph.switches:
                self.inside(switch, "ip", "link", "add", "bridge", "type", "bridge")
                self.inside(switch, "ip", "link", "set", "bridge", "up")
            for number, cable in enumerate(self.graph.cables):
                self.add_cable(number, cable)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        for carrier in self.carriers:
            carrier.terminate()
            report = carrier.communicate()[0]
            print(f"{' '.join(carrier.args[1:4])}: {report.strip()}", file=sys.stderr)
        self.carriers = []
        for name in self.names:
            with contextlib.suppress(OSError):
                pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True,
                                      check=False).stdout.split()
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        self.names = []
