// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/traffic/transfers.h"

#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using namespace literals;

const std::string kConfigs = source_dir().string() + "/configs";

Cluster load(const std::string& name, const ClusterOverrides& overrides = {}) {
  return load_cluster(kConfigs + "/clusters/" + name + ".yaml",
                      Catalogue::load(kConfigs + "/hardware"), overrides);
}

TEST_CASE("a transfer takes its path's latency and rate, and two share a link") {
  const Cluster cluster = load("dgx-h100", {.nodes = 1});
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[1], 0, path));
  const SimTime latency = path_latency(cluster.topology, path);
  const Bandwidth rate = path_bandwidth(cluster.topology, path);

  const Transfer one{.source = cluster.gpus[0], .target = cluster.gpus[1]};
  const Transfer other{.source = cluster.gpus[2], .target = cluster.gpus[1]};
  REQUIRE(run_transfers(cluster, std::vector{one}, 1_GiB).front() ==
          transfer_time(1_GiB, rate) + latency);
  const std::vector<SimTime> both = run_transfers(cluster, std::vector{one, other}, 1_GiB);
  REQUIRE(both[0] == transfer_time(2_GiB, rate) + latency);
  REQUIRE(both[1] == both[0]);
}

TEST_CASE("with packets transfers have counters, and a complaint where buffers are too small") {
  const Cluster cluster = load("h100-1gpu-400g", {.nodes = 3});
  const std::vector<Transfer> incast{{.source = cluster.gpus[1], .target = cluster.gpus[0]},
                                     {.source = cluster.gpus[2], .target = cluster.gpus[0]}};
  TransferSettings settings{.size = 4_MiB, .fidelity = Fidelity::Packet};
  const TransferTimes whole = time_transfers(cluster, incast, settings);
  REQUIRE(!whole.complaint);
  REQUIRE(whole.times[0] > SimTime());
  REQUIRE(!whole.port_counters->empty());
  settings.packet = {};  // No congestion control.
  settings.packet.buffer = 20'000_B;
  const TransferTimes broken = time_transfers(cluster, incast, settings);
  REQUIRE(broken.complaint.value().find("packets were lost") != std::string::npos);
}

TEST_CASE("a pair that stages has its share, whatever other pairs do") {
  const Cluster cluster = load("rtx4090-pcie", {.settings = {"server.peer_access=none"}});
  const double pcie = total_gigabytes_per_second(
      run_transfers(cluster,
                    std::vector{Transfer{.source = *cluster.topology.find("server0/memory0"),
                                         .target = cluster.gpus[0]}},
                    1_GiB),
      1_GiB);
  const auto rate = [&](const std::vector<Transfer>& transfers) {
    return total_gigabytes_per_second(run_transfers(cluster, transfers, 1_GiB), 1_GiB);
  };
  const Transfer first{.source = cluster.gpus[0], .target = cluster.gpus[1]};
  const Transfer second{.source = cluster.gpus[2], .target = cluster.gpus[3]};
  REQUIRE(rate({first}) == Approx(0.75 * pcie).epsilon(0.001));
  REQUIRE(rate({first, first}) == Approx(0.75 * pcie).epsilon(0.001));
  REQUIRE(rate({first, second}) == Approx(2 * 0.75 * pcie).epsilon(0.001));
}

TEST_CASE("sets of transfers") {
  const Cluster cluster = load("rtx4090-pcie");
  REQUIRE(peer_transfers(cluster, Pairs::Ordered).size() == 8 * 7);
  REQUIRE(peer_transfers(cluster, Pairs::Unordered).size() == 8 * 7 / 2);
  const std::vector<Transfer> to_gpu = host_transfers(cluster, HostDirection::ToGpu);
  REQUIRE(to_gpu.size() == 8);
  REQUIRE(cluster.topology.node(to_gpu[3].source).name == "server0/memory0");
  REQUIRE(cluster.topology.node(to_gpu[4].source).name == "server0/memory1");
  REQUIRE(to_gpu[4].target == cluster.gpus[4]);
  const std::vector<Transfer> both = with_opposites(to_gpu);
  REQUIRE(both.size() == 16);
  REQUIRE(both[9].source == cluster.gpus[4]);
  REQUIRE_THROWS_AS(peer_transfers(load("rtx4090-pcie", {.gpus_per_node = 1}), Pairs::Ordered),
                    ConfigError);
}

TEST_CASE("a total counts all bytes until the last arrival") {
  const std::vector<SimTime> times = {1_ms, 2_ms};
  REQUIRE(total_gigabytes_per_second(times, Bytes(1'000'000)) == Approx(1.0));
}

}  // namespace
}  // namespace trainyard
