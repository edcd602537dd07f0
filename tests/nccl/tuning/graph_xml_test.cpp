// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <string>

#include "nccl/tuning/graph_xml.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

using Catch::Matchers::Equals;

const GraphNames kNames{
    .gpus = {0, 1}, .nics = {{0, 0}, {3, 3}}, .first_rank = 0, .several_nodes = true};

Graph ring() {
  Graph graph;
  graph.pattern = GraphPattern::Ring;
  graph.cross_nic = 2;
  graph.channel_count = 2;
  graph.bw_intra = 2.4;
  graph.bw_inter = 17.5;
  graph.latency_inter = 1.5;
  graph.type_intra = PathType::Nvl;
  graph.type_inter = PathType::Pxn;
  graph.same_channels = false;
  graph.channels = {{.net_in = 0, .net_out = 3, .gpus = {0, 1}},
                    {.net_in = 3, .net_out = 0, .gpus = {1, 0}}};
  return graph;
}

std::string with(std::string text, const std::string& old, const std::string& changed) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), changed);
}

void require_refused(const std::string& text, const std::string& message) {
  REQUIRE_THROWS_WITH(read_graph_xml(text, "g.xml", kNames), Equals("g.xml:" + message));
}

}  // namespace

TEST_CASE("a graph file is written as NCCL writes it", "[nccl]") {
  const std::string text = write_graph_xml({.ring = ring()}, kNames);
  REQUIRE(text ==
          "<graphs version=\"1\">\n"
          "  <graph id=\"0\" pattern=\"4\" crossnic=\"2\" nchannels=\"2\" speedintra=\"2.4\" "
          "speedinter=\"17.5\" latencyinter=\"1.5\" typeintra=\"NVL\" typeinter=\"PXN\" "
          "samechannels=\"0\">\n"
          "    <channel>\n"
          "      <net dev=\"0x0\"/>\n"
          "      <gpu dev=\"0x0\" rank=\"0\"/>\n"
          "      <gpu dev=\"0x1\" rank=\"1\"/>\n"
          "      <net dev=\"0x3\"/>\n"
          "    </channel>\n"
          "    <channel>\n"
          "      <net dev=\"0x3\"/>\n"
          "      <gpu dev=\"0x1\" rank=\"1\"/>\n"
          "      <gpu dev=\"0x0\" rank=\"0\"/>\n"
          "      <net dev=\"0x0\"/>\n"
          "    </channel>\n"
          "  </graph>\n"
          "</graphs>\n");
}

TEST_CASE("what is written is read back, graph by graph", "[nccl]") {
  Graph tree = ring();
  tree.pattern = GraphPattern::BalancedTree;
  Graph chain = ring();
  chain.pattern = GraphPattern::Tree;
  Graph nvls = ring();
  nvls.pattern = GraphPattern::Nvls;
  nvls.channels = {{.net_in = 0, .net_out = 0, .gpus = {0}},
                   {.net_in = 3, .net_out = 3, .gpus = {1}}};
  Graph direct = nvls;
  direct.pattern = GraphPattern::CollNetDirect;
  const GraphSet set{
      .ring = ring(), .tree = tree, .nvls = nvls, .collnet_chain = chain, .collnet_direct = direct};
  const GraphSet read = read_graph_xml(write_graph_xml(set, kNames), "g.xml", kNames);
  REQUIRE(read.ring == set.ring);
  REQUIRE(read.tree == set.tree);
  REQUIRE(read.nvls == set.nvls);
  REQUIRE(read.collnet_chain == set.collnet_chain);
  REQUIRE(read.collnet_direct == set.collnet_direct);
}

TEST_CASE("one node has no NICs in its graphs, and leaves those of a file", "[nccl]") {
  GraphNames one = kNames;
  one.several_nodes = false;
  Graph graph = ring();
  for (GraphChannel& channel : graph.channels) {
    channel.net_in.reset();
    channel.net_out.reset();
  }
  const std::string text = write_graph_xml({.ring = graph}, one);
  REQUIRE(text.find("<net") == std::string::npos);
  REQUIRE(read_graph_xml(text, "g.xml", one).ring == graph);
  const std::string several = write_graph_xml({.ring = ring()}, kNames);
  REQUIRE(read_graph_xml(several, "g.xml", one).ring == graph);
}

TEST_CASE("the rank of a GPU is preferred to its index", "[nccl]") {
  GraphNames second = kNames;
  second.first_rank = 2;
  const std::string text = write_graph_xml({.ring = ring()}, second);
  REQUIRE(text.find("<gpu dev=\"0x0\" rank=\"2\"/>") != std::string::npos);
  REQUIRE(read_graph_xml(text, "g.xml", second).ring == ring());
  const std::string by_index =
      with(with(write_graph_xml({.ring = ring()}, kNames), " rank=\"0\"", ""), "0x1\" rank=\"1",
           "0x0\" rank=\"1");
  REQUIRE(read_graph_xml(by_index, "g.xml", kNames).ring == ring());
}

TEST_CASE("devices of other hosts of the node keep their index of the host", "[nccl]") {
  GraphNames hosts = kNames;
  hosts.gpus = {graph_device(0, 0), graph_device(1, 0)};
  const std::string text = write_graph_xml({.ring = ring()}, hosts);
  REQUIRE(text.find("<gpu dev=\"0x100000000000000\" rank=\"1\"/>") != std::string::npos);
  REQUIRE(read_graph_xml(text, "g.xml", hosts).ring == ring());
}

TEST_CASE("a graph without channels is left to the search", "[nccl]") {
  const GraphSet file = read_graph_xml(
      "<graphs version=\"1\"><graph id=\"2\" pattern=\"0\" crossnic=\"0\" nchannels=\"0\" "
      "speedintra=\"0\" speedinter=\"0\" typeintra=\"LOC\" typeinter=\"LOC\" "
      "samechannels=\"0\"/></graphs>",
      "g.xml", kNames);
  REQUIRE_FALSE(file.collnet_chain.exists());
  REQUIRE_FALSE(file.ring.exists());
}

TEST_CASE("a wrong graph file is refused with its place", "[nccl]") {
  const std::string good = write_graph_xml({.ring = ring()}, kNames);
  require_refused("", "1:1: expected XML, found a mistake: no document element found");
  require_refused("<system/>", "1:2: expected the element \"graphs\", found \"system\"");
  require_refused(with(good, "version=\"1\"", "version=\"2\""),
                  "1:9: graphs.version: expected 1, found \"2\"");
  require_refused(with(good, "id=\"0\"", "id=\"7\""),
                  "2:10: graphs.graph[0].id: expected a whole number from 0 to 4, found \"7\"");
  require_refused(with(good, "pattern=\"4\"", "pattern=\"3\""),
                  "2:17: graphs.graph[0].pattern: expected 4, found \"3\"");
  require_refused(with(good, "crossnic", "crosnic"),
                  "2:29: graphs.graph[0]: unknown attribute \"crosnic\"; did you mean "
                  "\"crossnic\"?");
  require_refused(with(good, " crossnic=\"2\"", ""),
                  "2:4: graphs.graph[0]: missing attribute \"crossnic\"");
  require_refused(with(good, "\"2.4\"", "\"-2.4\""),
                  "2:56: graphs.graph[0].speedintra: expected a number above 0, found \"-2.4\"");
  require_refused(with(good, "\"NVL\"", "\"NVLINK\""),
                  "2:110: graphs.graph[0].typeintra: expected LOC, NVL, NVB, C2C, PIX, PXB, P2C, "
                  "PXN, PHB or SYS, found \"NVLINK\"");
  require_refused(with(good, "nchannels=\"2\"", "nchannels=\"3\""),
                  "2:4: graphs.graph[0]: expected nchannels channels (3), found 2");
  require_refused(with(good, "rank=\"0\"", "rank=\"1\""),
                  "3:6: graphs.graph[0].channel[0]: expected every GPU once, found rank 1 twice");
  require_refused(with(good, "      <gpu dev=\"0x0\" rank=\"0\"/>\n", ""),
                  "3:6: graphs.graph[0].channel[0]: expected all 2 GPUs of the node, found 1");
  require_refused(with(good, "      <net dev=\"0x3\"/>\n", ""),
                  "3:6: graphs.graph[0].channel[0]: expected a first and a last element \"net\", "
                  "found 1");
  require_refused(with(good, "0x3", "0x2"),
                  "7:12: graphs.graph[0].channel[0].net[1].dev: expected the index of a NIC of the "
                  "node (0x0, 0x3), found \"0x2\"");
  const std::string twice = with(good, "</graphs>", good.substr(good.find("  <graph ")));
  require_refused(twice, "16:4: graphs.graph[1]: expected each id once, found 0 again");
}

}  // namespace trainyard::nccl
