#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""box-cable between two real network namespaces: cable_test.py PROGRAM. Status 77 says that this
machine does not allow them, with the reason."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

SKIPPED = 77
DELAY_US = 20000
SENT = 400
PORT = 7000
ADDRESSES = ("10.78.0.1", "10.78.0.2")


def call(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True,
                          timeout=60).stdout


@contextlib.contextmanager
def namespaces():
    names = [f"cable{os.getpid()}-{end}" for end in "ab"]
    try:
        for name in names:
            call("ip", "netns", "add", name)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def answer():
    """Answers each datagram until nobody has asked for two seconds."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((ADDRESSES[1], PORT))
    server.settimeout(2)
    print("ready", flush=True)
    with contextlib.suppress(TimeoutError):
        while True:
            server.sendto(*server.recvfrom(100))


def ask():
    """Prints the seconds from question to answer, of each datagram that came back."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect((ADDRESSES[1], PORT))
    client.settimeout(0.001)
    taken = []

    def receive():
        with contextlib.suppress(TimeoutError):
            while True:
                sent = float(client.recv(100))
                taken.append(time.monotonic() - sent)

    for _ in range(SENT):
        client.send(repr(time.monotonic()).encode())
        receive()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        receive()
    print(json.dumps(taken))


def role_in(space, role):
    return ["ip", "netns", "exec", space, sys.executable, __file__, role]


def measure(program, spaces, *options):
    """The times of answers, and what the cable says that it carried."""
    with subprocess.Popen([program, *spaces, "c0", *options], stdout=subprocess.PIPE,
                          text=True) as cable:
        try:
            assert cable.stdout.readline() == "ready\n"
            for space, address in zip(spaces, ADDRESSES):
                call("ip", "-n", space, "address", "add", address + "/24", "dev", "c0")
                call("ip", "-n", space, "link", "set", "c0", "up")
            with subprocess.Popen(role_in(spaces[1], "answer"), stdout=subprocess.PIPE) as server:
                server.stdout.readline()
                taken = json.loads(call(*role_in(spaces[0], "ask")))
        finally:
            cable.terminate()
        return taken, json.loads(cable.stdout.read())


def check(program):
    with namespaces() as spaces:
        taken, report = measure(program, spaces, "--delay-us", str(DELAY_US))
        assert len(taken) == SENT, f"{len(taken)} of {SENT} answers"
        assert min(taken) >= 2 * DELAY_US / 1e6, f"an answer after {min(taken)} s"
        assert [way["lost"] for way in report["ways"]] == [0, 0], report
        # One in four is lost each way: 9 in 16 of 400 come back, 225, give or take six standard
        # deviations of 9.9.
        taken, report = measure(program, spaces, "--loss", "0.25")
        lost = sum(way["lost"] for way in report["ways"])
        assert 165 < len(taken) < 285, f"{len(taken)} of {SENT} answers"
        assert lost >= SENT - len(taken), report
    run = subprocess.run([program, "a", "b", "c0", "--loss", "2"], capture_output=True, text=True,
                         check=False)
    assert run.returncode == 2 and "--loss: expected a number from 0" in run.stderr, run.stderr
    assert run.stderr.count("\n") == 1, run.stderr


def main(program):
    try:
        with namespaces() as spaces:
            call("ip", "-n", spaces[0], "tuntap", "add", "c0", "mode", "tap")
    except (subprocess.CalledProcessError, OSError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip()
        print(f"skipped: a cable between namespaces: not allowed here: {reason}")
        return SKIPPED
    check(program)
    return 0


if __name__ == "__main__":
    ROLES = {"answer": answer, "ask": ask}
    sys.exit(ROLES[sys.argv[1]]() if sys.argv[1] in ROLES else main(sys.argv[1]))
