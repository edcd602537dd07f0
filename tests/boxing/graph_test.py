# SPDX-License-Identifier: Apache-2.0
"""What a box is made of, from the JSON of `trainyard topology`. The argument is the folder of the
programs, which this test does not run."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from boxing.graph import graph_of  # noqa: E402
from plotting.data import BadInput  # noqa: E402

GOODPUT = 47_074_122  # Of TCP with full frames at 50 Mb/s: 1448 of 1538 bytes.


def document(nodes, cables):
    names = list(nodes)
    links = []
    for one, other in cables:
        for source, target in ((one, other), (other, one)):
            links.append({"source": names.index(source), "target": names.index(target),
                          "kind": "network", "bandwidth_bits_per_s": GOODPUT})
    return {"cluster": {"name": "test"},
            "graph": {"nodes": [{"id": index, "name": name, "kind": nodes[name]}
                                for index, name in enumerate(names)], "links": links}}


HOSTS = {"server0/nic0": "nic", "server1/nic0": "nic"}


class GraphTest(unittest.TestCase):
    def test_cables_have_the_rate_of_the_line(self):
        graph = graph_of(document({**HOSTS, "s": "switch"},
                                  [("server0/nic0", "s"), ("server1/nic0", "s")]))
        self.assertEqual(graph.hosts, ["server0", "server1"])
        self.assertEqual(graph.switches, ["s"])
        self.assertEqual([cable.bits_per_second for cable in graph.cables], [49_999_999] * 2)

    def test_hosts_may_be_joined_directly(self):
        graph = graph_of(document(HOSTS, [("server0/nic0", "server1/nic0")]))
        self.assertEqual([cable.ends for cable in graph.cables], [("server0", "server1")])

    def test_a_circle_is_refused(self):
        nodes = {**HOSTS, "s": "switch", "t": "switch"}
        cables = [("server0/nic0", "s"), ("server1/nic0", "t"), ("s", "t")]
        graph_of(document(nodes, cables))
        with self.assertRaisesRegex(BadInput, "one cable between two devices"):
            graph_of(document(nodes, cables + [("s", "t")]))
        with self.assertRaisesRegex(BadInput, "expected a tree"):
            graph_of(document({**nodes, "u": "switch"}, cables + [("s", "u"), ("t", "u")]))

    def test_a_host_without_a_way_to_others_is_refused(self):
        with self.assertRaisesRegex(BadInput, "expected a tree"):
            graph_of(document({**HOSTS, "s": "switch"}, [("server0/nic0", "s")]))

    def test_two_adapters_of_a_host_are_refused(self):
        with self.assertRaisesRegex(BadInput, "one NIC for each server, found server0/nic1"):
            graph_of(document({**HOSTS, "server0/nic1": "nic"}, []))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
