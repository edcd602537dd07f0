// SPDX-License-Identifier: Apache-2.0
// A schedule run on a fabric, rank r on host r and relays on its switches in turn: by the executor
// on an engine, or on NaiveFluid.
#pragma once

#include <optional>
#include <string>

#include "collectives/algorithms/algorithms.h"
#include "collectives/run/executor.h"
#include "network/contract/network.h"
#include "support/fabrics.h"

namespace trainyard {

struct CollectiveRun {
  SimTime finish;
  std::optional<std::string> violation;
  std::uint64_t fingerprint = 0;
  NetworkStats stats;
  std::vector<LinkUse> link_use;
};

[[nodiscard]] CollectiveRun run_schedule(const TestFabric& fabric, const Schedule& schedule,
                                         Bytes size, Fidelity fidelity);

// The same by a plain walk over the lanes on NaiveFluid. The schedule must not deadlock.
[[nodiscard]] SimTime naive_finish(const TestFabric& fabric, const Schedule& schedule, Bytes size);

struct FlatCollective {
  Algorithm algorithm = &kRing;
  Operation operation = Operation::AllReduce;
  int ranks = 2;
  int channels = 1;
  int pieces = 1;
  std::uint32_t root = 0;
};

[[nodiscard]] std::unique_ptr<Schedule> make_flat(const FlatCollective& what);

// 720.72 Gb/s is a multiple of 1 ... 16 b/s, so that equal shares of a link are whole numbers. A
// path on the idle switch takes `kIdleLatency` plus transfer_time(size, kIdleBandwidth).
inline constexpr Bandwidth kIdleBandwidth{720'720'000'000};
inline constexpr SimTime kIdleLatency = microseconds(3);
[[nodiscard]] inline TestFabric idle_switch(int hosts) {
  return one_switch(hosts, fabric_link(kIdleBandwidth, nanoseconds(1'500)));
}

// The time of `what` on idle_switch; requires that the contract is kept.
[[nodiscard]] SimTime idle_time(const FlatCollective& what, Bytes size, Fidelity fidelity);

}  // namespace trainyard
