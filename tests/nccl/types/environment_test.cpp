// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/types/environment.h"
#include "nccl/types/variables.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

Environment parse(const std::vector<std::string>& assignments) {
  return Environment::parse(assignments);
}

TEST_CASE("variables of NCCL set their fields", "[nccl][environment]") {
  const Environment environment =
      parse({"NCCL_CROSS_NIC=0", "NCCL_MIN_NRINGS=4", "NCCL_P2P_LEVEL=sys", "NCCL_NET_GDR_LEVEL=2",
             "NCCL_BUFFSIZE=8388608", "NCCL_P2P_READ_ENABLE=1", "NCCL_NETDEVS_POLICY=MAX:2",
             "NCCL_THREAD_THRESHOLDS= 8 16  64", "NCCL_NVLS_NCHANNELS=-1", "NCCL_ALGO=Ring",
             "NCCL_P2P_NET_CHUNKSIZE=524288", "NCCL_TOPO_FILE=my topology.xml"});
  REQUIRE(environment.cross_nic == 0);
  REQUIRE(environment.min_channels == 4);
  REQUIRE(environment.p2p_level == PathType::Sys);
  REQUIRE(environment.net_gdr_level == PathType::Pxb);
  REQUIRE(environment.simple_buffer == mib(8));
  REQUIRE(environment.p2p_read == true);
  REQUIRE(environment.max_nets_per_gpu == 2);
  REQUIRE(environment.thread_thresholds == std::vector<std::int64_t>{8, 16, 64});
  REQUIRE_FALSE(environment.nvls_channels);
  REQUIRE_FALSE(environment.selection.allows(Function::AllReduce, Algorithm::Tree));
  REQUIRE(environment.p2p_net_chunk == kib(512));
  REQUIRE(environment.topology_file == "my topology.xml");
  REQUIRE(environment.remarks.empty());
  REQUIRE_FALSE(parse({"NCCL_NET_MERGE_LEVEL=LOC"}).net_merge_ports);
  REQUIRE_FALSE(parse({"NCCL_IB_MERGE_NICS=0"}).ib_merge_nics);
  REQUIRE_THROWS_WITH(parse({"NCCL_NET_MERGE_LEVEL=CARD"}),
                      "NCCL_NET_MERGE_LEVEL: expected LOC, PORT, PIX, PXB, PHB or SYS, found "
                      "\"CARD\"");
}

TEST_CASE("nothing set is NCCL's default", "[nccl][environment]") {
  const Environment environment = parse({});
  REQUIRE(environment.ll_buffer == Bytes(524'288));
  REQUIRE(environment.ll128_buffer == Bytes(4'915'200));
  REQUIRE(environment.simple_buffer == Bytes(4'194'304));
  REQUIRE(environment.max_channels == 64);
  REQUIRE(environment.cross_nic == 2);
}

TEST_CASE("what is not modelled is said, what has no effect on time is not",
          "[nccl][environment]") {
  const Environment environment =
      parse({"NCCL_DEBUG=INFO", "NCCL_IB_HCA=mlx5", "NCCL_CGA_CLUSTER_SIZE=4", "NCCL_WIN_ENABLE=0",
             "FI_PROVIDER=cxi", "NCCL_FASTRAK_NUM_FLOWS=2", "NCCL_NET_MERGE_LEVEL=PIX",
             "NCCL_SOCKET_NTHREADS=4", "NCCL_SHM_LOCALITY=2", "NCCL_NET_FORCE_FLUSH=1",
             "NCCL_GDR_FLUSH_DISABLE=0"});
  REQUIRE(environment.net_force_flush);
  REQUIRE(environment.net_merge_ports);
  REQUIRE(environment.remarks ==
          std::vector<std::string>{
              "FI_PROVIDER=cxi has no effect here: it is not a variable of NCCL itself",
              "NCCL_FASTRAK_NUM_FLOWS=2 has no effect here: it is not a variable of NCCL itself",
              "NCCL_IB_HCA=mlx5 has no effect here: the NICs are those of the topology",
              "NCCL_NET_FORCE_FLUSH=1 has no effect here: no flush of received data is timed by "
              "itself",
              "NCCL_NET_MERGE_LEVEL=PIX counts as PORT here: NICs of several adapters must be one "
              "in the topology",
              "NCCL_SOCKET_NTHREADS=4 has no effect here: the sockets are those of the profile",
              "NCCL_WIN_ENABLE=0 has no effect here: kernels for symmetric memory are not "
              "modelled"});
}

TEST_CASE("mistakes are one line with the name, what was expected and what was found",
          "[nccl][environment]") {
  REQUIRE_THROWS_WITH(parse({"NCCL_CROSSNIC=0"}),
                      "unknown variable \"NCCL_CROSSNIC\"; did you mean NCCL_CROSS_NIC?");
  REQUIRE_THROWS_WITH(parse({"NCCL_SURELY_NOTHING_LIKE_IT=0"}),
                      "unknown variable \"NCCL_SURELY_NOTHING_LIKE_IT\"");
  REQUIRE_THROWS_WITH(parse({"NCCL_CROSS_NIC=3"}),
                      "NCCL_CROSS_NIC: expected a whole number from 0 to 2, found \"3\"");
  REQUIRE_THROWS_WITH(parse({"NCCL_P2P_DISABLE=true"}),
                      "NCCL_P2P_DISABLE: expected a whole number from 0 to 1, found \"true\"");
  REQUIRE_THROWS_WITH(parse({"NCCL_NTHREADS=100"}),
                      "NCCL_NTHREADS: expected a multiple of 32, found \"100\"");
  REQUIRE_THROWS_WITH(parse({"NCCL_NETDEVS_POLICY=SOME"}),
                      "NCCL_NETDEVS_POLICY: expected AUTO, ALL or MAX:N, found \"SOME\"");
  REQUIRE_THROWS_WITH(parse({"NCCL_BUFFSIZE=4000"}),
                      "NCCL_BUFFSIZE: expected a multiple of 4096 bytes, greater than zero, found "
                      "\"4000\"");
  REQUIRE_THROWS_WITH(parse({"NCCL_ALGO"}),
                      "environment: expected NAME=VALUE, found \"NCCL_ALGO\"");
  REQUIRE_THROWS_WITH(parse({"NCCL_ALGO=Ring", "NCCL_ALGO=Tree"}), "NCCL_ALGO: given twice");
  REQUIRE_THROWS_WITH(parse({"NCCL_MIN_CTAS=8", "NCCL_MAX_CTAS=4"}),
                      "NCCL_MIN_CTAS: expected at most NCCL_MAX_CTAS (4), found 8");
  for (const char* const text :
       {"=1", "", "NCCL_P2P_LEVEL=NET", "NCCL_P2P_LEVEL=6",
        "NCCL_P2P_LEVEL=", "NCCL_THREAD_THRESHOLDS=", "NCCL_THREAD_THRESHOLDS=1 2 3 4 5 6 7",
        "NCCL_TOPO_FILE=", "NCCL_LL_BUFFSIZE=0", "NCCL_BUFFSIZE=4M",
        "NCCL_BUFFSIZE=99999999999999999999", "NCCL_MAX_NCHANNELS=0", "NCCL_NETDEVS_POLICY=MAX:0",
        "NCCL_=1", "NCCL_NVLS_ENABLE= 1"}) {
    REQUIRE_THROWS_AS(parse({text}), ConfigError);
  }
}

TEST_CASE("the variables that a machine has are listed in the order of the alphabet") {
  const std::vector<std::string_view> names = modelled_variables();
  REQUIRE(std::ranges::is_sorted(names));
  REQUIRE(std::ranges::find(names, "NCCL_ALGO") != names.end());
  REQUIRE(std::ranges::find(names, "NCCL_DEBUG") == names.end());
}

}  // namespace

}  // namespace trainyard::nccl
