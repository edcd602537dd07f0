# SPDX-License-Identifier: Apache-2.0
"""What docs/accuracy/box.md says of predictions is what validation/box/compare prints. The argument
is the folder of the programs."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOX = ROOT / "validation" / "box"
RUNS = [BOX / f"run-{number}" for number in (1, 2, 3)]
TCP = ("--", "--fidelity", "packet", "--transport", "tcp", "--control", "reno")
BUCKETS = ("--", "--fidelity", "packet", "--transport", BOX / "tcp.yaml")


def rows_of(programs, *words):
    run = subprocess.run([BOX / "compare", programs, *words], capture_output=True, text=True,
                         check=True)
    return run.stdout.splitlines()[2:]


def main(programs):
    page = (ROOT / "docs/accuracy/box.md").read_text(encoding="utf-8").splitlines()
    rows = rows_of(programs, *RUNS)
    rows += rows_of(programs, BOX / "together")
    rows += rows_of(programs, "--profile", BOX / "profile.yaml", *RUNS)
    for row in rows:
        assert row in page, f"docs/accuracy/box.md: expected the row {row}"
    # By packets: the worst of six hosts that push to one, and of iperf3's incast.
    errors = {row.split(" | ")[0]: row.strip("| ").split(" | ")[-2:]
              for row in rows_of(programs, "--only", "incast", *RUNS, *TCP)}
    assert errors["| incast iperf3 incast"] == ["12.4", "27.8"], errors
    assert errors["| server"] == ["0.2", "0.4"], errors
    for more, only in (((), "star,tree,incast,server"),
                       (("--loss", "0.01"), "loss")):
        draws = ("--draws", "15") if more else ()
        for row in rows_of(programs, *draws, "--only", only, *RUNS, *BUCKETS, *more):
            name, *_, median, worst = row.strip("| ").split(" | ")
            assert any(line.startswith(f"| {name} |") and line.endswith(f"| {median} | {worst} |")
                       for line in page), f"docs/accuracy/box.md: expected {name} {median} {worst}"
    fifth = subprocess.run([BOX / "compare", programs, "--fifth", RUNS[0]], capture_output=True,
                           text=True, check=True).stdout
    assert fifth == (BOX / "fifth.yaml").read_text(encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
