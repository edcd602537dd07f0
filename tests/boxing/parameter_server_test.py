#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parameter server of a box, over loopback."""

import pathlib
import socket
import struct
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "boxing"
sys.path.insert(0, str(FOLDER))
import parameter_server  # noqa: E402


class ParameterServer(unittest.TestCase):
    def test_lanes_add_up_each_by_itself(self):
        parts = [struct.pack("<3I", 1, 2**24 - 1, 7), struct.pack("<3I", 5, 2**24 - 1, 0)]
        self.assertEqual(struct.unpack("<3I", parameter_server.total_of(parts)),
                         (6, 2**25 - 2, 7))

    def test_as_many_workers_as_it_takes_do_not_overflow_a_lane(self):
        part = struct.pack("<2I", 2**24 - 1, 0)
        total = parameter_server.total_of([part] * parameter_server.MOST_WORKERS)
        self.assertEqual(struct.unpack("<2I", total), (256 * (2**24 - 1), 0))

    def test_it_prints_the_times_of_each_round_and_its_pushes(self):
        program = [sys.executable, "-B", str(FOLDER / "parameter_server.py")]
        with socket.create_server(("", 0)) as free:
            port = str(free.getsockname()[1])
        with subprocess.Popen([*program, "server", port, "2", "4096", "3"],
                              stdout=subprocess.PIPE, text=True) as server:
            self.assertEqual(server.stdout.readline(), "ready\n")
            workers = [subprocess.Popen([*program, "worker", "127.0.0.1", port, "4096", "3", seed])
                       for seed in "12"]
            times = [[float(word) for word in line.split()] for line in server.stdout]
            self.assertEqual([worker.wait(timeout=30) for worker in workers], [0, 0])
        self.assertEqual(server.returncode, 0)
        self.assertEqual(len(times), 3)
        for of_round, of_pushes in times:
            self.assertTrue(0.0 < of_pushes < of_round, times)


if __name__ == "__main__":
    unittest.main()
