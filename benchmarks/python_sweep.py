#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sweep of 1,000 points on 2 threads by Python, beside the same by the command, and what a call
costs: whether figures are the same, and times (docs/guide/python.md).

    PYTHONPATH=build/release/python python3 benchmarks/python_sweep.py build/release/bin/trainyard

Each of the two ways is run RUNS times in turn, and the least time is taken, as what else a machine
does only adds. The calls of the third are one by one, on a ThreadPoolExecutor of Python.
"""

import concurrent.futures
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import trainyard

RUNS = 2
THREADS = 2
# 4 x 10 x 25 = 1,000 points.
NODES = list(range(1, 11))
SIZES = [1 << power for power in range(12, 37)]
OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast"]
SPEC = {
    "title": "a thousand points",
    "command": "collective",
    "options": {"cluster": "dgx-h100", "runtime": "plain", "algo": "ring",
                "fidelity": "analytical"},
    "vary": [{"operation": OPERATIONS}, {"nodes": NODES},
             {"minbytes": SIZES, "maxbytes": SIZES}],
}


def timed(run):
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


def by_command(program, file):
    text = subprocess.run([program, "sweep", file, "--threads", str(THREADS), "--format", "json"],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(text)


def by_sweep():
    return trainyard.sweep(SPEC, threads=THREADS).rows()


def one_by_one(rows):
    names = [name for part in SPEC["vary"] for name in part]

    def figures(row):
        options = dict(SPEC["options"], **{name: row[name] for name in names})
        operation = options.pop("operation")
        return trainyard.collective(operation, threads=1, **options).rows()[0]

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(figures, rows))


def main(program):
    times = {"command": [], "sweep": [], "calls": []}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "points.yaml"
        file.write_text(json.dumps(SPEC))  # JSON is YAML.
        for _ in range(RUNS):
            for name, run in (("command", lambda: by_command(program, file)), ("sweep", by_sweep)):
                seconds, rows = timed(run)
                times[name].append(seconds)
                if name == "command":
                    expected = rows
                assert rows == expected, "figures differ"
            seconds, rows = timed(lambda: one_by_one(expected))
            times["calls"].append(seconds)
            assert [row["time_us"] for row in rows] == [row["time_us"] for row in expected]
    print(f"{len(expected)} points, {THREADS} threads, least of {RUNS} runs in s; figures equal")
    for name, all_times in times.items():
        print(f"{name:8} {min(all_times):7.2f}   {min(all_times) / min(times['command']):5.2f} "
              f"of the command's   all: {', '.join(f'{each:.2f}' for each in all_times)}")
    trainyard.parts("gpus")
    calls = [timed(lambda: trainyard.parts("gpus"))[0] for _ in range(100)]
    print(f"a call that only lists parts: {1e3 * sorted(calls)[50]:.2f} ms (median of 100)")


if __name__ == "__main__":
    main(sys.argv[1])
