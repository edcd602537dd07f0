# SPDX-License-Identifier: Apache-2.0
"""DCTCP written in Python, beside that of Trainyard: equal to the last digit.

    PYTHONPATH=build/release/python python3 examples/python/controls.py

A test runs this (tests/api/python_module_test.cpp).
"""

import time

import trainyard


class Dctcp:
    """Alizadeh et al., SIGCOMM 2010; RFC 8257; its constants as in configs/transport/control."""

    gain = 1 / 16

    def __init__(self, start):
        self.packet = float(start.packet_bytes)
        bits = start.line_bits_per_second * start.base_rtt_ps // 10**12
        self.most = float(max(bits // 8, start.packet_bytes))
        self.window = self.most
        self.alpha = 1.0
        self.window_end = self.acknowledged = self.marked = 0
        self.has_lost = False

    def __call__(self, signal):
        """Hears what happens to the flow, and returns the bytes that may be under way."""
        if signal.kind == "ack":
            self.acknowledge(signal)
        elif signal.kind == "loss" and not self.has_lost:
            self.has_lost = True
            self.set_window(self.window * 0.5)
        elif signal.kind == "timeout":
            self.set_window(0.0)
        return self.window

    def acknowledge(self, signal):
        self.acknowledged += signal.size_bytes
        if signal.is_marked:
            if self.marked == 0:
                self.set_window(self.window * (1.0 - self.alpha / 2.0))
            self.marked += signal.size_bytes
        if signal.acked <= self.window_end:
            return
        # A window is over.
        share = self.marked / self.acknowledged if self.acknowledged else 0.0
        self.alpha = (1.0 - self.gain) * self.alpha + self.gain * share
        if self.marked == 0 and not self.has_lost:
            self.set_window(self.window + self.packet)
        self.acknowledged = self.marked = 0
        self.has_lost = False
        self.window_end = signal.next

    def set_window(self, window):
        self.window = min(max(window, self.packet), self.most)


class Counted(Dctcp):
    """The same, which counts how often it is called."""

    calls = 0

    def __call__(self, signal):
        Counted.calls += 1
        return super().__call__(signal)


def timed(**options):
    """An incast under a control, and how long it took."""
    began = time.perf_counter()
    result = trainyard.traffic("incast", cluster="fat-tree-k8-100g", fidelity="packet",
                               ecn="dctcp", effects="off",
                               set_traffic={"groups.0.size": "20 MB"}, **options)
    return result, time.perf_counter() - began


def main():
    timed(control="dctcp")  # The first run reads files that later ones find in memory.
    built_in, built_in_s = timed(control="dctcp")
    ours, ours_s = timed(control=Dctcp)
    timed(control=Counted)
    same = (ours["groups"], ours["sizes"]) == (built_in["groups"], built_in["sizes"])
    print(f"makespan {ours['makespan_us']} us, {'equal' if same else 'not equal'} to dctcp of "
          "Trainyard in every figure")
    print(f"{Counted.calls} calls; {built_in_s:.2f} s without and {ours_s:.2f} s with them, "
          f"{1e6 * (ours_s - built_in_s) / Counted.calls:.1f} us a call")


if __name__ == "__main__":
    main()
