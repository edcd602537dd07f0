// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/traffic/traffic_endpoints.h"

#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

const Cluster& dgx() {
  static const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = 3});
  return cluster;
}

std::vector<std::string> names(const std::string& text, const Cluster& cluster = dgx()) {
  ConfigDocument document = ConfigDocument::parse("endpoints: " + text, "my.yaml");
  std::vector<std::string> result;
  for (const NodeId id : TrafficDevices(cluster).read(document.root().required("endpoints"))) {
    result.push_back(cluster.topology.node(id).name);
  }
  return result;
}

std::string error(const std::string& text, const Cluster& cluster = dgx()) {
  try {
    (void)names(text, cluster);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

using Names = std::vector<std::string>;

TEST_CASE("devices are named by kind, name, pattern and list") {
  REQUIRE(names("nics").size() == 24);
  REQUIRE(names("gpus").size() == 24);
  REQUIRE(names("gpus").front() == "server0/gpu0");
  REQUIRE(names("server1/nic2") == Names{"server1/nic2"});
  REQUIRE(names("server*/nic2") == Names{"server0/nic2", "server1/nic2", "server2/nic2"});
  REQUIRE(names("server[1-2]/gpu[6-7]") ==
          Names{"server1/gpu6", "server1/gpu7", "server2/gpu6", "server2/gpu7"});
  REQUIRE(names("server[0-7]/nic0").size() == 3);
  REQUIRE(names("[server2/nic*, server0/nic1]").front() == "server2/nic0");
  REQUIRE(names("[server2/nic*, server0/nic1]").back() == "server0/nic1");
  REQUIRE(names("gpus", shipped_cluster("dgx-a100", {.nodes = 2, .gpus_per_node = 3})) ==
          Names{"server0/gpu0", "server0/gpu1", "server0/gpu2", "server1/gpu0", "server1/gpu1",
                "server1/gpu2"});
}

TEST_CASE("a star represents text without a slash, brackets for a range of numbers") {
  REQUIRE(matches_pattern("server12/nic0", "server*/nic0"));
  REQUIRE(matches_pattern("server12/nic0", "*/*"));
  REQUIRE(matches_pattern("server12/nic0", "s*1*/n**0"));
  REQUIRE(!matches_pattern("server12/nic0", "*"));
  REQUIRE(!matches_pattern("server12/nic0", "server*nic0"));
  REQUIRE(matches_pattern("server12/nic0", "server[9-12]/nic[0-0]"));
  REQUIRE(!matches_pattern("server12/nic0", "server[1-2]/nic0"));
  REQUIRE(!matches_pattern("server/nic0", "server[0-9]/nic0"));
  REQUIRE(!matches_pattern("server12/nic0", "server12/nic"));
  REQUIRE(!matches_pattern("server12/nic", "server12/nic0"));
  REQUIRE(!matches_pattern("aaaaaaaaaaaaaaaaaaaaaaaa", std::string(60, '*') + "b"));
}

TEST_CASE("mistakes in endpoints are one line with their place") {
  REQUIRE(error("server0/nik1") ==
          "my.yaml:1:12: endpoints: expected nics, gpus, or names of these such as server0/nic0, "
          "server*/nic0 or server[0-7]/nic0, found \"server0/nik1\"; did you mean "
          "\"server0/nic1\"?");
  REQUIRE(error("server7/nic*") ==
          "my.yaml:1:12: endpoints: expected a pattern that a NIC or GPU of the cluster matches, "
          "found \"server7/nic*\"");
  for (const std::string pattern : {"server[2-1]/nic0", "server[1]/nic0", "server]/nic0",
                                    "server[1-2/nic0", "server[a-b]/nic0", "server[-]/nic0"}) {
    INFO(pattern);
    REQUIRE(error("\"" + pattern + "\"") ==
            "my.yaml:1:12: endpoints: expected a range of numbers such as [0-7] between brackets, "
            "found \"" +
                pattern + "\"");
  }
  REQUIRE(error("[nics, server1/nic0]") ==
          "my.yaml:1:12: endpoints: expected each device once, found server1/nic0 twice");
  REQUIRE(error("{a: 1}").find("found a mapping") != std::string::npos);
  REQUIRE(error("server0/memory0").find("found \"server0/memory0\"") != std::string::npos);
  REQUIRE(error("nics", cluster_of(one_switch(
                            2, fabric_link(gigabits_per_second(100), microseconds(1))))) ==
          "my.yaml:1:12: endpoints: expected devices that the cluster has, found \"nics\"");
}

}  // namespace
}  // namespace trainyard
