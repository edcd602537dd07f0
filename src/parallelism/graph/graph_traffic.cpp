// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_traffic.h"

#include <vector>

#include "sim/check.h"

namespace trainyard {

std::optional<SimTime> TimedTraffic::call_time(const GraphCommunicator& communicator,
                                               const GraphCall& call) {
  const auto key = std::make_tuple(call.communicator, call.operation, call.size);
  auto found = calls_.find(key);
  if (found == calls_.end()) {
    const std::vector<int>& ranks =
        communicator.timed_as.empty() ? communicator.ranks : communicator.timed_as;
    found = calls_.emplace(key, times_.collective(call.operation, ranks, call.size)).first;
  }
  return found->second * call.times;
}

std::optional<SimTime> TimedTraffic::message_time(int from, int to, Bytes size) {
  const auto key = std::make_tuple(from, to, size);
  auto found = messages_.find(key);
  if (found == messages_.end()) {
    found = messages_.emplace(key, times_.transfer(from, to, size)).first;
  }
  return found->second;
}

void TimedTraffic::start_call(const GraphCommunicator& /*communicator*/, const GraphCall& /*call*/,
                              EventHandler& /*done*/, std::uint64_t /*token*/) {
  CHECK(false, "every call has a time");
}

void TimedTraffic::start_message(int /*from*/, int /*to*/, Bytes /*size*/, EventHandler& /*done*/,
                                 std::uint64_t /*token*/) {
  CHECK(false, "every message has a time");
}

}  // namespace trainyard
