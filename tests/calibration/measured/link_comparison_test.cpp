// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/measured/link_comparison.h"

#include <string>
#include <vector>

#include "network/traffic/transfers.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

PastedValue value_of(const std::string& test, int row, int column, double value) {
  PastedValue one;
  one.test = test;
  one.row = row;
  one.column = column;
  one.value = value;
  return one;
}

double simulated_rate(const Cluster& cluster, const Transfer& transfer) {
  return total_gigabytes_per_second(
      run_transfers(cluster, std::vector<Transfer>{transfer}, mib(256)), mib(256));
}

}  // namespace

TEST_CASE("measured links are held against the same transfers of the cluster") {
  const Cluster one = shipped_cluster("dgx-h100", {.nodes = 1});
  const PastedOutput output{.tool = PastedTool::NvBandwidth,
                            .values = {value_of("host_to_device_memcpy_ce", 0, 0, 50.0),
                                       value_of("host_to_device_memcpy_ce", 0, 1, 54.0),
                                       value_of("host_to_device_memcpy_ce", 0, 2, 55.0),
                                       value_of("device_to_device_memcpy_write_ce", 0, 1, 390.0),
                                       value_of("all_to_host_memcpy_ce", 0, 0, 200.0)},
                            .warnings = {}};
  const std::vector<LinkComparison> all = compare_links(output, "a.txt", one, nullptr);
  REQUIRE(all.size() == 3);
  REQUIRE(all[0].values == 3);
  REQUIRE(all[0].measured == 54.0);
  REQUIRE(all[0].min == 50.0);
  REQUIRE(all[0].simulated.value() ==
          Approx(simulated_rate(one, host_transfers(one, HostDirection::ToGpu)[0])));
  REQUIRE(all[1].simulated.value() ==
          Approx(simulated_rate(one, {.source = one.gpus[0], .target = one.gpus[1]})));
  REQUIRE(!all[2].simulated.has_value());
  REQUIRE(all[2].remark == "several transfers at once: not compared");
}

TEST_CASE("perftest is between two servers, by size") {
  const Cluster one = shipped_cluster("dgx-h100", {.nodes = 1});
  const Cluster two = shipped_cluster("dgx-h100", {.nodes = 2});
  PastedValue small = value_of("RDMA_Write BW", 0, 0, 0.1);
  small.size = Bytes(2);
  PastedValue large = value_of("RDMA_Write BW", 0, 0, 46.0);
  large.size = mib(1);
  PastedValue time = value_of("RDMA_Write Latency", 0, 0, 1.9);
  time.size = Bytes(2);
  time.is_latency = true;
  const PastedOutput output{
      .tool = PastedTool::Perftest, .values = {small, large, time}, .warnings = {}};
  const std::vector<LinkComparison> all = compare_links(output, "a.txt", one, &two);
  REQUIRE(all.size() == 3);
  REQUIRE(all[0].remark == "a rate of messages: not compared");
  REQUIRE(all[1].simulated.value() == Approx(48.0).margin(3.0));
  REQUIRE(all[2].simulated.value() < 5.0);
  REQUIRE(compare_links(output, "a.txt", one, nullptr)[1].remark == "the cluster has one server");
}

TEST_CASE("OSU is between the first GPUs of one server, or of two") {
  const Cluster one = shipped_cluster("dgx-h100", {.nodes = 1});
  const Cluster two = shipped_cluster("dgx-h100", {.nodes = 2});
  PastedValue gpus = value_of("OSU MPI-CUDA Bandwidth, D to D", 0, 0, 40.0);
  gpus.size = mib(4);
  PastedValue hosts = value_of("OSU MPI Bandwidth, H to H", 0, 0, 40.0);
  hosts.size = mib(4);
  const PastedOutput output{.tool = PastedTool::Osu, .values = {gpus, hosts}, .warnings = {}};
  const std::vector<LinkComparison> within = compare_links(output, "a.txt", one, nullptr);
  REQUIRE(within[0].simulated.value() ==
          Approx(simulated_rate(one, {.source = one.gpus[0], .target = one.gpus[1]})));
  REQUIRE(within[1].remark.starts_with("between host memory of one server"));
  const std::vector<LinkComparison> across = compare_links(output, "a.txt", one, &two);
  REQUIRE(across[0].simulated.value() ==
          Approx(simulated_rate(two, {.source = two.gpus[0], .target = two.gpus[8]})));
  REQUIRE(across[1].simulated.value() == Approx(48.0).margin(3.0));
}

}  // namespace trainyard
