// SPDX-License-Identifier: Apache-2.0
// Speed of the packet engine on fat-trees of 100 Gb/s links, 1 us each, packets of 4,096 B, one run
// a process so that the peak memory is that of the run:
//   packet_scale permutation RADIX BYTES   every host sends to another one, all at once
//   packet_scale incast RADIX BYTES        sixteen hosts send to one
//   packet_scale ring RADIX BYTES          ring all_reduce of half of the hosts
// With DCQCN as NICs do it, ECN, PFC and ACKs; a last word `bare` leaves these out, a last number
// is that of the threads.
// Prints one line: processor time of the run without building the topology, packet-hops a second
// (a packet-hop is a data packet that crosses a link), time of the clock, of which setting up,
// simulated time, peak memory.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "network/packet/packet.h"
#include "packet_fabrics.h"
#include "runs.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// A random order of the hosts: each sends to the one behind it.
std::vector<NodeId> shuffled(std::vector<NodeId> hosts) {
  RandomStream random(1, "permutation");
  for (std::size_t left = hosts.size(); left > 1; --left) {
    std::swap(hosts[left - 1], hosts[random.below(left)]);
  }
  return hosts;
}

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void send_flows(const std::string& what, const std::vector<NodeId>& hosts, Bytes size,
                PacketNetwork& network, CompletionCounter& counter) {
  constexpr std::size_t kIncast = 16;
  const std::vector<NodeId> order = shuffled(hosts);
  const std::size_t flows = what == "incast" ? kIncast : order.size();
  for (std::size_t i = 0; i < flows; ++i) {
    const NodeId target = what == "incast" ? order.back() : order[(i + 1) % order.size()];
    const ConnectionId connection = network.connect(
        {.source = order[i], .target = target, .flow_label = static_cast<std::uint32_t>(i)});
    network.send(connection, size, counter, i);
  }
}

int run(const std::string& what, int radix, Bytes size, bool is_bare, int threads) {
  const SpeedFabric fabric = packet_fat_tree(radix);
  const double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double began = seconds_of(CLOCK_MONOTONIC);
  double ready = began;
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = RoutingPolicy::EcmpHash, .seed = 1});
  PacketOptions options = is_bare ? PacketOptions{} : roce_options();
  options.rates = RateMeaning::Line;
  options.threads = threads;
  PacketNetwork network(simulator, routing, options);
  CompletionCounter counter(simulator);
  SimTime simulated;
  if (what == "ring") {
    const std::size_t ranks = fabric.hosts.size() / 2;
    const std::vector<NodeId> hosts(fabric.hosts.begin(),
                                    fabric.hosts.begin() + static_cast<std::ptrdiff_t>(ranks));
    simulated = run_to_end(simulator, network, &kRing, Operation::AllReduce, hosts, size);
  } else {
    send_flows(what, fabric.hosts, size, network, counter);
    ready = seconds_of(CLOCK_MONOTONIC);
    simulator.run();
    CHECK(counter.count() == network.stats().messages, "a flow did not finish");
    simulated = simulator.now();
  }
  const double seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before;
  const double clock = seconds_of(CLOCK_MONOTONIC) - began;
  const PacketEngine::Counts counts = network.engine().counts();
  fmt::print(
      "{:>12} {:>3}: {:7.3f} s {:6.2f} M packet-hops/s  clock {:.3f} s ({:.3f})  {:.2f} M hops  "
      "{:.0f} k windows  simulated "
      "{:.3f} ms  {:.0f} MiB  cnps {}  pauses {}  exact {}  fingerprint {:016x}\n",
      what, radix, seconds, static_cast<double>(counts.packet_hops) / seconds / 1e6, clock,
      ready - began, static_cast<double>(counts.packet_hops) / 1e6,
      static_cast<double>(counts.windows) / 1e3, simulated.seconds() * 1e3, peak_mebibytes(),
      counts.cnps, network.stats().packets.pauses, counts.exact_windows, simulator.fingerprint());
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  bool is_bare = false;
  int threads = 1;
  for (; words.size() > 3; words.pop_back()) {
    is_bare = is_bare || words.back() == "bare";
    threads = words.back() == "bare" ? threads : std::atoi(words.back().c_str());
  }
  const std::string what = words.size() == 3 ? words[0] : "";
  if (what != "permutation" && what != "incast" && what != "ring") {
    fmt::print(stderr,
               "usage: packet_scale permutation|incast|ring RADIX BYTES [bare] [THREADS]\n");
    return 2;
  }
  return trainyard::run(what, std::atoi(words[1].c_str()),
                        trainyard::Bytes(std::atoll(words[2].c_str())), is_bare, threads);
}
