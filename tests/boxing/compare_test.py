# SPDX-License-Identifier: Apache-2.0
"""Runs of a box are held to each other and to predictions. The argument is the folder of the
programs."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES = 1048576
# One rank sends to one other: the bytes at 1448/1538 of 30 Mb/s; all else is below a hundredth of it.
PREDICTED = 8 * BYTES / (30e6 * 1448 / 1538)


def compare(programs, *words):
    run = subprocess.run([ROOT / "validation/box/compare", programs, *words], capture_output=True,
                         text=True, check=True)
    return run.stdout.splitlines()


def main(programs):
    with tempfile.TemporaryDirectory() as folder:
        runs = [pathlib.Path(folder) / name for name in "abc"]
        for run, factor in zip(runs, (1.0, 1.25, 1.5)):
            run.mkdir()
            table = (ROOT / "validation/box/run-1/star-2-broadcast.yaml").read_text("utf-8")
            head = table[:table.index("rows:")]
            (run / "star-2-broadcast.yaml").write_text(
                f"{head}rows:\n  - {{bytes: {BYTES}, time_us: {1e6 * factor * PREDICTED:.2f}}}\n",
                encoding="utf-8")
        # The middle run takes 1.25 of what is predicted, and the others differ by 0.5 / 1.25 of it.
        row = [cell.strip() for cell in compare(programs, *runs)[-1].strip("|").split("|")]
        assert row[:4] == ["star broadcast", "1", "40.0", "40.0"], row
        assert 19.0 < float(row[4]) < 21.0, row
        assert compare(programs, "--draws", "3", *runs) == compare(programs, *runs)
        point = compare(programs, "--points", *runs)[-1].split(",")
        assert point[:3] == ["star broadcast", "star-2-broadcast.yaml", str(BYTES)], point
        assert abs(float(point[-1]) / PREDICTED - 1) < 0.01, point
        assert len(compare(programs, "--only", "tree", *runs)) == 2
        # The one point of the first run is its fifth; the others are off by 1 / 1.25 and 1 / 1.5.
        fifth = compare(programs, "--fifth", runs[0])
        assert "test: broadcast, path: tcp, ranks: 2, bytes: 1048576" in fifth[-1], fifth
        rest = compare(programs, "--profile", ROOT / "configs/mpi/profile.yaml", *runs)
        row = [cell.strip() for cell in rest[2].strip("|").split("|")]
        assert row[:2] == ["star broadcast", "2"] and row[2:5] == row[5:], row
        assert abs(float(row[2]) - 26.7) < 0.3 and abs(float(row[4]) - 33.3) < 0.3, row
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
