// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::string kClusters = source_dir().string() + "/configs/clusters/";

std::string run_topology(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(run_command(topology_command(), arguments, out) == 0);
  return out.str();
}

TEST_CASE("the help of topology shows an example") {
  REQUIRE(run_topology({"--help"}).find("trainyard topology --cluster dgx-h100 --nodes 64") !=
          std::string::npos);
}

TEST_CASE("topology prints a summary as table, CSV and JSON") {
  const std::string file = kClusters + "dgx-1.yaml";
  const std::string table = run_topology({"--cluster", file});
  REQUIRE(table.rfind("cluster\n  name  ", 0) == 0);
  REQUIRE(table.find("\nroute from server0/gpu0 to server1/gpu0\n") != std::string::npos);
  const std::string csv = run_topology({"--cluster", file, "--format", "csv"});
  REQUIRE(csv.rfind("section,item,value\ncluster,name,\"DGX-1 V100, 100G RoCE\"\n", 0) == 0);
  const auto json = nlohmann::json::parse(run_topology({"--cluster", file, "--format", "json"}));
  REQUIRE(json["cluster"]["GPUs"] == "16");
  REQUIRE(!json["estimates"].empty());
}

TEST_CASE("topology prints the graph for Graphviz and as JSON") {
  const std::string file = kClusters + "h100-1gpu-400g.yaml";
  REQUIRE(run_topology({"--cluster", file, "--format", "dot"}).rfind("digraph topology {\n", 0) ==
          0);
  const auto json =
      nlohmann::json::parse(run_topology({"--cluster", file, "--format", "json", "--nodes", "3"}));
  REQUIRE(json["graph"]["nodes"].size() == 3 * 5 + 1);
  REQUIRE(json["graph"]["links"].size() == 2 * (3 * 4 + 3));
}

TEST_CASE("topology prints one server as NCCL's topology file and as nvidia-smi's matrix") {
  const std::string file = kClusters + "dgx-h100.yaml";
  const std::string xml = run_topology({"--cluster", file, "--format", "nccl-xml"});
  REQUIRE(xml.rfind("<system version=\"1\">\n", 0) == 0);
  REQUIRE(run_topology({"--cluster", file, "--format", "nccl-xml", "--server", "3"}) == xml);
  REQUIRE(run_topology({"--cluster", file, "--format", "smi"}).rfind("\tGPU0\tGPU1\t", 0) == 0);
}

TEST_CASE("topology takes overrides") {
  const std::string file = kClusters + "dgx-h100.yaml";
  const std::string text = run_topology({"--cluster", file, "--nodes", "2", "--gpus-per-node", "1",
                                         "--set", "fabric.routing=ecmp", "--format", "csv"});
  REQUIRE(text.find("cluster,GPUs,2\ncluster,routing,ecmp\n") != std::string::npos);
}

TEST_CASE("mistakes on the command line of topology are one line") {
  const auto error = [](const std::vector<std::string>& arguments) {
    std::ostringstream out;
    try {
      (void)run_command(topology_command(), arguments, out);
    } catch (const ConfigError& caught) {
      return std::string(caught.what());
    }
    return std::string("no error");
  };
  const std::string file = kClusters + "dgx-1.yaml";
  REQUIRE(error({}) == "topology: expected --cluster, found none; see trainyard topology --help");
  REQUIRE(error({"--cluster", file, "--format", "xml"}) ==
          "--format: expected table, csv, json, dot, nccl-xml or smi, found \"xml\"");
  REQUIRE(error({"--cluster", file, "--json"}) ==
          "topology: unknown option \"--json\"; did you mean \"--format json\"?");
  REQUIRE(error({"--cluster", file, "--server", "1"}) ==
          "--server: expected --format nccl-xml or smi beside it, found table");
  REQUIRE(error({"--cluster", file, "--format", "smi", "--server", "2"}) ==
          "--server: expected a whole number from 0 to 1, found \"2\"");
  REQUIRE(error({"--clusters", file}) ==
          "topology: unknown option \"--clusters\"; did you mean \"--cluster\"?");
  REQUIRE(error({"--cluster", file, "--nodes", "many"}) ==
          "--nodes: expected a whole number from 1 to 1000000, found \"many\"");
}

}  // namespace
}  // namespace trainyard
