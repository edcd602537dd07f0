// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibrate/cuda/nccl_environment.h"

#include <cstdlib>
#include <string>

#include "support/program.h"

namespace trainyard::calibrate {
namespace {

std::string value(const char* name) {
  const char* const found = std::getenv(name);
  return found != nullptr ? found : "";
}

// Each test leaves the environment as it was: other tests start programs in it.
class CleanEnvironment {
 public:
  CleanEnvironment() { clear(); }
  CleanEnvironment(const CleanEnvironment&) = delete;
  CleanEnvironment& operator=(const CleanEnvironment&) = delete;
  ~CleanEnvironment() { clear(); }

 private:
  static void clear() {
    const std::string all = nccl_environment();
    for (std::size_t first = 0; first < all.size(); first = all.find('\n', first) + 1) {
      (void)::unsetenv(all.substr(first, all.find('=', first) - first).c_str());
    }
    (void)::unsetenv("TRAINYARD_CALIBRATE_SHARING");
  }
};

TEST_CASE("NCCL is forced by its variables and by nothing else") {
  const CleanEnvironment clean;
  set_environment({}, {});
  REQUIRE(nccl_environment().empty());
  set_environment({.mode = NcclMode::Processes,
                   .algorithm = "Ring",
                   .protocol = "LL128",
                   .channels = 4,
                   .log = false},
                  {});
  REQUIRE(value("NCCL_ALGO") == "Ring");
  REQUIRE(value("NCCL_PROTO") == "LL128");
  REQUIRE(value("NCCL_MIN_NCHANNELS") == "4");
  REQUIRE(value("NCCL_MAX_NCHANNELS") == "4");
  REQUIRE(value("NCCL_HOSTID").empty());
  REQUIRE(nccl_environment().find("NCCL_ALGO=Ring\n") != std::string::npos);
}

TEST_CASE("two ranks on one GPU are two hosts, or one by permission") {
  const CleanEnvironment clean;
  Options options;
  options.rank = 1;
  set_environment({.mode = NcclMode::FakeHosts}, options);
  REQUIRE(value("NCCL_HOSTID") == "trainyard-1");
  REQUIRE(value("NCCL_SOCKET_IFNAME") == "lo");
  REQUIRE(value("NCCL_MULTI_RANK_GPU_ENABLE").empty());
  const CleanEnvironment again;
  set_environment({.mode = NcclMode::MultiRankGpu}, options);
  REQUIRE(value("NCCL_HOSTID").empty());
  REQUIRE(value("NCCL_MULTI_RANK_GPU_ENABLE") == "1");
}

TEST_CASE("only rank 0 logs, into the folder where the ranks meet, and all detect twice") {
  const CleanEnvironment clean;
  Options options;
  options.rendezvous = "meet";
  options.token = "3";
  options.rank = 1;
  set_environment({.log = true}, options);
  REQUIRE(value("NCCL_DEBUG_FILE").empty());
  REQUIRE(!value("NCCL_TOPO_DUMP_FILE").empty());
  options.rank = 0;
  set_environment({.log = true}, options);
  REQUIRE(value("NCCL_DEBUG_FILE") == "meet/3.log.txt");
  REQUIRE(value("NCCL_TOPO_DUMP_FILE") == "meet/3.topology.xml");
}

TEST_CASE("ranks learn how they share their GPU") {
  const CleanEnvironment clean;
  REQUIRE(sharing_of_the_gpu() == "time slices");
  set_sharing_of_the_gpu(true);
  REQUIRE(sharing_of_the_gpu() == "mps");
}

}  // namespace
}  // namespace trainyard::calibrate
