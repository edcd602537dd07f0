# SPDX-License-Identifier: Apache-2.0
"""The Python module against the command line: tests/api/python_module_test.cpp runs this.

    PYTHONPATH=build/release/python python3 tests/api/python_module.py PROGRAM RUNS [TEST...]
"""

import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import trainyard

PROGRAM = ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUNS = 0


def printed(words):
    """What the program prints."""
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout


def run_example(name):
    """The lines that a program of examples/python prints."""
    file = os.path.join(ROOT, "examples", "python", name)
    return subprocess.run([sys.executable, file], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def drawn(seed):
    """A command with its arguments and options, by a seed."""
    draw = random.Random(seed)
    cluster = draw.choice(["dgx-h100", "dgx-a100", "hgx-h100-clos"])
    options = {"cluster": cluster, "nodes": draw.randint(2, 4)}
    kind = draw.choice(["collective", "plain", "step", "transfer", "cost"])
    if kind in ("collective", "plain"):
        size = 2 ** draw.randint(10, 26)
        operation = draw.choice(["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
        options |= {"minbytes": size, "maxbytes": size, "effects": "off"}
        if kind == "plain":
            options |= {"runtime": "plain", "algo": ["ring"], "fingerprint": True,
                        "fidelity": draw.choice(["flow", "analytical"])}
        return "collective", [operation], options
    if kind == "transfer":
        return "transfer", [], options | {"from_": f"server0/gpu{draw.randint(0, 7)}",
                                          "to": f"server1/gpu{draw.randint(0, 7)}"}
    return kind, [], options | {"model": draw.choice(["llama-3-8b", "gpt2", "mixtral-8x7b"]),
                                "set": {"batch.global": 64 * options["nodes"]}}


def words_of(command, arguments, options):
    """The same as a command line, spelt out by hand."""
    words = [command, *arguments, "--format", "json"]
    for key, value in options.items():
        name = "--" + key.strip("_").replace("_", "-")
        if value is True:
            words.append(name)
        elif isinstance(value, dict):
            for path, each in value.items():
                words += [name, f"{path}={each}"]
        else:
            words += [name, ",".join(value) if isinstance(value, list) else str(value)]
    return words


class Module(unittest.TestCase):
    def test_figures_are_those_of_the_command_line(self):
        compared = 0
        for seed in range(RUNS):
            command, arguments, options = drawn(seed)
            words = words_of(command, arguments, options)
            with self.subTest(" ".join(words)):
                try:
                    expected = json.loads(printed(words))
                except subprocess.CalledProcessError as error:
                    with self.assertRaises(trainyard.Error) as raised:
                        trainyard.call(command, *arguments, **options)
                    self.assertEqual(error.stderr, f"trainyard: {raised.exception}\n")
                    continue
                self.assertEqual(trainyard.call(command, *arguments, **options), expected)
                compared += 1
        self.assertGreaterEqual(compared, RUNS * 3 // 4)
        print(f"{compared} of {RUNS} runs compared, the others refused alike")

    def test_a_cluster_has_the_commands_as_methods(self):
        cluster = trainyard.Cluster("dgx-h100", nodes=2, set={"server.nics": 4})
        result = cluster.collective("all_reduce", minbytes="64M", maxbytes="64M")
        words = ["--cluster", "dgx-h100", "--nodes", "2", "--set", "server.nics=4", "-b", "64M",
                 "-e", "64M"]
        self.assertEqual(result.text, printed(["collective", "all_reduce", *words]))
        self.assertEqual(result.csv(), printed(["collective", "all_reduce", *words, "--format",
                                                "csv"]))
        self.assertEqual(result.rows()[0]["size_bytes"], 64 << 20)
        self.assertEqual(result.rows("volumes"), result["volumes"])
        step = cluster.step(model="llama-3-8b", set={"batch.sequence": 2048})
        self.assertEqual(step["step_time_s"],
                         json.loads(printed(["step", "--cluster", "dgx-h100", "--nodes", "2",
                                             "--set", "server.nics=4", "--set",
                                             "batch.sequence=2048", "--model", "llama-3-8b",
                                             "--format", "json"]))["step_time_s"])
        self.assertEqual(cluster.step("llama-3-8b")["workload"], "llama-3-8b")

    def test_errors_have_a_place_and_warnings_are_warnings(self):
        with self.assertRaises(trainyard.Error) as raised:
            trainyard.topology(cluster="dgx-h100", nodes=0)
        self.assertEqual(raised.exception.place, "--nodes")
        self.assertTrue(str(raised.exception).startswith("--nodes: expected a whole number"))
        with self.assertRaisesRegex(trainyard.Error, "unknown option \"--node=2\"; did you mean"):
            trainyard.topology(cluster="dgx-h100", node=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainyard.topology(cluster="dgx-h100", set={"server.nics": 4})
        lines = [str(each.message) for each in caught if each.category is trainyard.Warning]
        self.assertTrue(lines[0].startswith("server: 4 of 8 PCIe switches"), lines)

    def test_a_sweep_is_a_dictionary_or_a_file(self):
        spec = {"title": "servers", "command": "collective",
                "options": {"operation": "all_reduce", "cluster": "dgx-h100", "minbytes": "1M",
                            "maxbytes": "1M"},
                "vary": {"nodes": [1, 2]}}
        swept = trainyard.sweep(spec, threads=2)
        for row, nodes in zip(swept.rows(), (1, 2), strict=True):
            alone = trainyard.collective("all_reduce", cluster="dgx-h100", nodes=nodes,
                                         minbytes="1M", maxbytes="1M")
            self.assertEqual(row["nodes"], nodes)
            self.assertEqual(row["time_us"], alone.rows()[0]["time_us"])
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "servers.yaml")
            with open(file, "w", encoding="utf-8") as out:
                json.dump(spec, out)
            self.assertEqual(trainyard.sweep(file), swept)
            self.assertEqual(swept.csv(), printed(["sweep", file, "--format", "csv"]))
        with self.assertRaises(trainyard.Error):
            trainyard.sweep({"command": "none"})

    def test_ctrl_c_ends_a_run_and_others_go_on_meanwhile(self):
        long_run = {"cluster": "dgx-h100", "nodes": 16, "runtime": "plain", "fidelity": "packet",
                    "algo": "pairwise", "minbytes": "1G", "maxbytes": "1G", "threads": 1}
        lines = []
        counted = 0
        began = time.monotonic()

        def interrupt(line):
            nonlocal counted
            lines.append(line)
            for _ in range(1000):
                counted += 1
            os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            trainyard.collective("alltoall", progress=interrupt, **long_run)
        self.assertTrue(lines[0].startswith("collective: "))
        self.assertLess(time.monotonic() - began, 100)
        # What the callback raises ends the run as well.
        with self.assertRaises(ZeroDivisionError):
            trainyard.collective("alltoall", progress=lambda line: 1 / 0, **long_run)

    def test_threads_run_side_by_side(self):
        def time_us(nodes):
            return trainyard.collective("all_reduce", cluster="dgx-h100", nodes=nodes,
                                        minbytes="1M", maxbytes="1M")["rows"][0]["time_us"]

        nodes = [1, 2, 3, 4] * 4
        alone = [time_us(each) for each in nodes]
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            self.assertEqual(list(threads.map(time_us, nodes)), alone)
        self.assertEqual(threading.active_count(), 1)

    def test_functions_are_those_of_the_tables(self):
        for name in trainyard.commands():
            python_name = {"import": "import_"}.get(name, name.replace(" ", "_"))
            self.assertEqual(getattr(trainyard, python_name).__name__, python_name)
        self.assertIn("minbytes: ", trainyard.collective.__doc__)
        stubs = os.path.join(os.path.dirname(trainyard.__file__), "__init__.pyi")
        with open(stubs, encoding="utf-8") as text:
            stubs_text = text.read()
        compile(stubs_text, stubs, "exec")
        self.assertIn("def collective(*arguments: _Plain, progress: _Progress = ...", stubs_text)
        version = printed(["--version"]).split()[1]
        self.assertEqual(trainyard.__version__, version)

    def test_own_algorithms_and_controls_are_equal_to_the_built_in_ones(self):
        lines = run_example("algorithms.py")
        self.assertEqual(len(lines), 10)
        self.assertTrue(all(line.endswith("  equal") for line in lines), lines)
        lines = run_example("controls.py")
        self.assertIn("equal to dctcp of Trainyard in every figure", lines[0])
        print(lines[1])

    def test_own_examples_of_the_guide_run(self):
        guide = os.path.join(ROOT, "docs", "guide", "python.md")
        with open(guide, encoding="utf-8") as text:
            own = text.read().split("## An algorithm of your own", 1)[1]
        blocks = re.findall(r"^```python\n(.*?)^```", own, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(blocks), 2)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)  # They write files.
            try:
                for block in blocks:
                    exec(compile(block, guide, "exec"), {})
            finally:
                os.chdir(before)

    def test_own_algorithm_has_the_figures_of_its_file_and_errors_with_a_step(self):
        def pairs(ranks, chunks):
            for rank in range(ranks):
                for other in range(ranks):
                    if other != rank:
                        yield trainyard.Send(0, rank, other, other, reduce=True)
                        yield trainyard.Send(1, rank, other, [rank])

        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "pairs.yaml")
            with open(file, "w", encoding="utf-8") as out:
                out.write(trainyard.algorithm_text(pairs, "all_reduce", 8))
            result = trainyard.collective("all_reduce", algorithm=pairs, cluster="dgx-h100",
                                          nodes=1, minbytes="1M", maxbytes="1M")
            self.assertEqual(result, json.loads(printed(
                ["collective", "all_reduce", "--cluster", "dgx-h100", "--nodes", "1", "-b", "1M",
                 "-e", "1M", "--runtime", "plain", "--algo-file", file, "--format", "json"])))
        self.assertEqual(result.rows()[0]["algorithm"], "pairs")

        def wrong(ranks, chunks):
            for message in pairs(ranks, chunks):
                if (message.step, message.source, message.destination) != (0, 1, 2):
                    yield message

        cluster = trainyard.Cluster("dgx-h100", nodes=2)
        with self.assertRaises(trainyard.Error) as raised:
            cluster.collective("all_reduce", algorithm=wrong, ranks=4, minbytes="1M",
                               maxbytes="1M")
        self.assertEqual(str(raised.exception),
                         "wrong: messages[12]: step 1, from 2 to 0: the last message that brings "
                         "it: rank 0 ends with {0, 2, 3} in chunk 2 instead of {0, 1, 2, 3}")
        with self.assertRaisesRegex(TypeError, "<lambda>: yield 0: expected a trainyard.Send"):
            cluster.collective("all_reduce", algorithm=lambda ranks, chunks: [1])
        with self.assertRaises(ZeroDivisionError):
            cluster.collective("all_reduce", algorithm=lambda ranks, chunks: [1 / 0])

    def test_own_control_that_raises_ends_the_run_with_it(self):
        incast = {"cluster": "fat-tree-k8-100g", "fidelity": "packet"}
        heard = []

        def control(start):
            heard.append(start.flow)

            def pace(signal):
                heard.append((signal.kind, signal.now_ps, signal.rtt_ps, signal.is_marked))
                if signal.now_ps > limit:
                    raise LookupError(f"at {signal.now_ps}")
                return start.packet_bytes * 20, start.line_bits_per_second / 2

            return pace

        limit = 10**9
        with self.assertRaisesRegex(LookupError, "at 100"):
            trainyard.traffic("incast", control=control, **incast)
        first, heard = heard, []
        with self.assertRaisesRegex(LookupError, "at 100"):
            trainyard.traffic("incast", control=control, **incast)
        self.assertEqual(heard, first)
        self.assertEqual(sorted(each for each in heard if isinstance(each, int)), list(range(16)))
        limit = 10**18
        paced = trainyard.traffic("incast", control=control, **incast)
        self.assertIn("packets: congestion control control, ", paced["notes"][0])
        for answer, error in (("much", ValueError), (0, ValueError), ((1, 2, 3), ValueError),
                              ([], TypeError)):
            with self.assertRaises(error):
                trainyard.traffic("incast", control=lambda start: lambda signal: answer, **incast)
        with self.assertRaisesRegex(trainyard.Error, "--threads: expected 1 beside a control"):
            trainyard.traffic("incast", control=control, threads=2, **incast)
        with self.assertRaises(trainyard.Error):
            trainyard.traffic("incast", control=control, cluster="fat-tree-k8-100g")

    def test_frames_and_figures(self):
        result = trainyard.collective("all_reduce", cluster="dgx-h100", minbytes="1M",
                                      maxbytes="64M")
        try:
            frame = result.frame()
            self.assertEqual(list(frame["size_bytes"]),
                             [row["size_bytes"] for row in result.rows()])
            found = trainyard.search("llama-3-8b", cluster="dgx-h100", nodes=1)
            self.assertIn("plans.timed", found.frame("searches").columns)
            self.assertEqual(found.frame("plans")["step_time_s"].dtype, "float64")
            parts = trainyard.cost(cluster="dgx-h100").frame()
            self.assertIn(None, [row["price"] for row in trainyard.cost(cluster="dgx-h100").rows()])
            self.assertEqual(parts["price"].dtype, "float64")
        except ImportError:
            print("no pandas: frame() not tried")
        try:
            axes = result.plot().axes[0]
            self.assertEqual((axes.get_xlabel(), axes.get_ylabel()), ("size bytes", "time us"))
        except ImportError:
            print("no matplotlib: plot() not tried")


if __name__ == "__main__":
    PROGRAM, RUNS = sys.argv[1], int(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
