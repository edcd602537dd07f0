// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibrate/catalogue.h"

#include <set>

#include "sim/config_error.h"

namespace trainyard::calibrate {
namespace {

Machine machine_of(std::size_t gpus, const std::string& nccl) {
  Machine machine;
  machine.nccl = nccl;
  machine.cublaslt = "13.1.0";
  machine.gpus.resize(gpus);
  for (Gpu& gpu : machine.gpus) {
    gpu.compute_capability = "9.0";
  }
  return machine;
}

const Measurement& measurement(const std::string& id) {
  for (const Measurement& each : catalogue()) {
    if (each.id == id) {
      return each;
    }
  }
  FAIL(id);
  return catalogue().front();
}

TEST_CASE("each measurement has an identifier of its own, a title and a time") {
  std::set<std::string> ids;
  for (const Measurement& each : catalogue()) {
    REQUIRE(ids.insert(each.id).second);
    REQUIRE_FALSE(each.what.empty());
    REQUIRE(each.seconds > 0);
    REQUIRE(each.min_gpus >= 1);
  }
}

TEST_CASE("what one GPU takes fits into ten minutes") {
  const Machine machine = machine_of(1, "2.28.9");
  int seconds = 0;
  for (const Measurement& each : planned(Options{})) {
    seconds += why_not(each, machine).empty() ? each.seconds : 0;
  }
  REQUIRE(seconds > 60);
  REQUIRE(seconds < 420);
}

TEST_CASE("a machine is asked only for what it has, and the reason says what it lacks") {
  REQUIRE(why_not(measurement("gpu.memory"), machine_of(1, "")).empty());
  REQUIRE(why_not(measurement("peer.latency"), machine_of(1, "2.28.9")) == "needs 2 GPUs, found 1");
  REQUIRE(why_not(measurement("peer.latency"), machine_of(8, "2.28.9")).empty());
  REQUIRE(why_not(measurement("nccl.processes.default"), machine_of(8, "")) ==
          "no NCCL library was found; --nccl names one");
  REQUIRE(why_not(measurement("nccl.hosts.Ring.LL.c1"), machine_of(1, "2.28.9")).empty());
  REQUIRE(why_not(measurement("nccl.multi-rank.default"), machine_of(1, "2.28.9")) ==
          "needs NCCL 2.30.3, found 2.28.9");
  REQUIRE(why_not(measurement("nccl.multi-rank.default"), machine_of(1, "2.30.3")).empty());
  Machine ampere = machine_of(1, "");
  ampere.gpus[0].compute_capability = "8.0";
  REQUIRE(why_not(measurement("gpu.gemm.fp8"), ampere) ==
          "needs compute capability 8.9, found 8.0");
  ampere.cublaslt.clear();
  REQUIRE(why_not(measurement("gpu.gemm.bf16"), ampere) ==
          "no cuBLASLt library was found; --cublaslt names one");
}

TEST_CASE("several ranks measure the network and nothing else") {
  Options options;
  options.ranks = 16;
  for (const Measurement& each : planned(options)) {
    REQUIRE(each.id.starts_with("network."));
  }
  options.only = {"gpu.*"};
  REQUIRE_THROWS_AS(planned(options), ConfigError);
  options.ranks = 1;
  for (const Measurement& each : planned(options)) {
    REQUIRE(each.id.starts_with("gpu."));
  }
  options.only = {"network.*"};
  REQUIRE_THROWS_AS(planned(options), ConfigError);
  options.only = {"gpu.memroy"};
  REQUIRE_THROWS_WITH(planned(options),
                      "--only: expected identifiers that --list shows, found \"gpu.memroy\"");
}

TEST_CASE("the watchdog waits three times what the plan expects, or what it is told") {
  const Measurement& memory = measurement("gpu.memory");
  REQUIRE(timeout_of(memory, Options{}) == 3 * memory.seconds + 30);
  Options options;
  options.timeout_seconds = 5;
  REQUIRE(timeout_of(memory, options) == 5);
}

TEST_CASE("versions of NCCL are read as it counts them") {
  REQUIRE(nccl_version_code("2.28.9") == 22'809);
  REQUIRE(nccl_version_code("2.30.3") == 23'003);
  REQUIRE(nccl_version_code("2.30.3+cuda13.0") == 23'003);
  REQUIRE(nccl_version_code("") == 0);
  REQUIRE(nccl_version_code("2.30") == 0);
}

}  // namespace
}  // namespace trainyard::calibrate
