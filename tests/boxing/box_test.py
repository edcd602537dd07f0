# SPDX-License-Identifier: Apache-2.0
"""A box of three hosts runs Open MPI, is as slow as its links and their delay, and is gone afterwards.
The argument is the folder of the programs. Status 77 where this machine has no network namespaces or
programs."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES = 65536
RATE = 10e6  # Bits per second.
DELAY = 0.05  # Seconds, of each cable.
SKIPPED = 77


def namespaces():
    run = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return {name for name in run.stdout.split() if re.match(r"box\d+-", name)}


def broadcast(programs, cluster, *options):
    """Its status, its time in seconds, what it complains of, and what the table says of priority."""
    run = subprocess.run([ROOT / "tools/cluster-in-a-box", cluster, "--measure", "broadcast",
                          "--hosts", "3", "--sizes", str(BYTES), "--repeat", "1", "--programs",
                          programs, *options], capture_output=True, text=True, check=False)
    time_us = re.search(rf"bytes: {BYTES}, time_us: ([0-9.]+)", run.stdout)
    priority = re.search(r"; (with(?:out)? real-time priority)\"", run.stdout)
    return (run.returncode, 1e-6 * float(time_us[1]) if time_us else None, run.stderr,
            priority[1] if priority else None)


def is_allowed():
    """Whether programs may have real-time priority here."""
    return subprocess.run(["chrt", "--rr", "1", "true"], capture_output=True,
                          check=False).returncode == 0


def main(programs):
    slow = (ROOT / "validation/box/star.yaml").read_text().replace("30 Mb/s", "10 Mb/s")
    with tempfile.TemporaryDirectory() as folder:
        cluster = pathlib.Path(folder) / "cluster.yaml"
        cluster.write_text(slow)
        status, plain, complaint, priority = broadcast(programs, cluster)
        if status == SKIPPED:
            print(complaint, end="")
            return SKIPPED
        assert status == 0, complaint
        assert priority == ("with" if is_allowed() else "without") + " real-time priority", priority
        # The root sends everything at least once.
        assert plain > 8 * BYTES / RATE, plain
        # Ranks that begin at an instant do the same, but for two frames that a cable lets pass.
        status, together, complaint, _ = broadcast(programs, cluster, "--together")
        assert status == 0, complaint
        assert 0.9 * plain < together < 1.1 * plain, (plain, together)
        refused = subprocess.run([ROOT / "tools/cluster-in-a-box", cluster, "--measure", "incast",
                                  "--together"], capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert "--together: expected a collective, found --measure incast" in refused.stderr
        # Two cables lie between any two hosts.
        status, delayed, complaint, _ = broadcast(programs, cluster, "--delay-us",
                                                  f"{1e6 * DELAY:.0f}")
        assert status == 0, complaint
        assert delayed > 8 * BYTES / RATE + 2 * DELAY, delayed
    assert not namespaces(), "namespaces are left"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
