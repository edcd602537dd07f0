# SPDX-License-Identifier: Apache-2.0
"""A box of three hosts runs Open MPI, is as slow as its links, and is gone afterwards. The argument is
the folder of the programs. Status 77 where this machine has no network namespaces or programs."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES = 65536
RATE = 10e6  # Bits per second.
SKIPPED = 77


def namespaces():
    run = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def main(programs):
    slow = (ROOT / "validation/box/star.yaml").read_text().replace("30 Mb/s", "10 Mb/s")
    with tempfile.TemporaryDirectory() as folder:
        cluster = pathlib.Path(folder) / "cluster.yaml"
        cluster.write_text(slow)
        run = subprocess.run([ROOT / "tools/cluster-in-a-box", cluster, "--measure", "broadcast",
                              "--hosts", "3", "--sizes", str(BYTES), "--repeat", "1", "--programs",
                              programs], capture_output=True, text=True, check=False)
    if run.returncode == SKIPPED:
        print(run.stderr, end="")
        return SKIPPED
    assert run.returncode == 0, run.stderr
    time_us = float(re.search(rf"bytes: {BYTES}, time_us: ([0-9.]+)", run.stdout)[1])
    # The root sends everything at least once.
    assert time_us > 1e6 * 8 * BYTES / RATE, run.stdout
    assert not any(name.startswith("box") for name in namespaces()), "namespaces are left"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
