// SPDX-License-Identifier: Apache-2.0
// Packets through ports, in windows of time. No clock of its own and no event queue.
//
// A packet that leaves a port at time s can matter to another one not before s + (its time on the
// line) + (latency of the link). The least of that over the links in use is the lookahead; time is
// cut into windows of that length, and what a window brings to a port is known when the window
// begins. So each port is worked through alone: arrivals of the window in order of (time, link that
// they came by), then in one loop every packet that it begins to send before the window ends. What
// it sends is put down for the window in which it reaches the next port, which is a later one.
// Windows in which nothing is due are skipped, and a port with nothing due is not looked at. Ports
// of a switch whose buffer is near a threshold are worked through together (packet_switch.h).
//
// A message may be sent at any time that is not before the end of the last window that was run:
// run a window only when everything before its end has been sent. A message ends at its target in a
// later window than the one in which its last packet left the last port, so whoever is told of the
// end can answer in time. docs/models/packet.md has the rules of each part.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "network/contract/network.h"
#include "network/packet/packet_exchange.h"
#include "network/packet/packet_fabric.h"
#include "network/packet/packet_messages.h"
#include "network/packet/packet_options.h"
#include "network/packet/packet_phases.h"
#include "network/packet/packet_samples.h"
#include "network/packet/packet_transport.h"
#include "network/packet/packet_worker.h"
#include "network/packet_parts/thread_pool.h"
#include "sim/check.h"
#include "sim/event.h"
#include "sim/ids.h"
#include "topology/graph/topology.h"

namespace trainyard {

class PacketEngine {
 public:
  using Message = PacketMessage;
  using Counts = PacketCounts;
  using Failure = PacketFailure;
  // A message whose last byte is at its target at `time`.
  struct Completion {
    Picoseconds time;
    std::uint64_t order;
    EventHandler* done;
    std::uint64_t token;
  };

  // `topology` must outlive the engine. Throws ConfigError for options that make no sense.
  PacketEngine(const Topology& topology, const PacketOptions& options);

  // `path` must not be empty. Connections are numbered from 0. `lane` is its class of data, where
  // there are several. Throws ConfigError where something must go back to the source and a link has
  // none back.
  std::uint32_t add_connection(std::span<const LinkId> path,
                               std::optional<std::uint8_t> lane = std::nullopt);
  // Another path of a connection, with as many links, of which the first and the last are those of
  // its path: its packets take turns over all, and what comes out of order waits at the target.
  void add_alternative(std::uint32_t connection, std::span<const LinkId> path);
  // A connection of which the switches choose each packet's way, if they do at all: its paths have
  // as many links each, and begin and end alike. Control packets go back by the first. A packet out
  // of order waits at the target, or is a loss to retransmission.
  std::uint32_t add_adaptive(std::span<const std::vector<LinkId>> paths,
                             std::optional<std::uint8_t> lane = std::nullopt);
  // Another connection over the ways of `twin`, which add_adaptive() gave.
  std::uint32_t add_twin(std::uint32_t twin, std::optional<std::uint8_t> lane = std::nullopt);
  // Gives packets that begin from `time` on, and their answers, this path, which must begin and end
  // with the same links; of a connection with alternatives only its answers and requests for
  // credit. Times of one connection rise, and must not be before the end of the last window. Only
  // where packets are sent again: others would be overtaken.
  void reroute(std::uint32_t connection, Picoseconds time, std::span<const LinkId> path);
  // The same with as many paths as switches have to choose from, for a connection that
  // add_adaptive() gave, where the options have a convergence. They have as many links each.
  void reroute_ways(std::uint32_t connection, Picoseconds time,
                    std::span<const std::vector<LinkId>> ways);
  // No packet of a connection with alternatives begins by this one of its paths from `time` on. One
  // path must be left. Only where packets are sent again.
  void retire(std::uint32_t connection, Picoseconds time, std::span<const LinkId> path) {
    senders_.retire(connection, time, fabric_.from_queue(path));
  }
  // From `time` on nothing arrives by this link nor, if there is one, by the link back: a cable
  // fails as a whole. Everything on it then, and all that is sent there later, is lost. To be said
  // before the first window.
  void fail_link(LinkId link, Picoseconds time);
  // Instead of the rate of the options; from 0 to less than 1. To be said before the first window.
  void set_bit_error_rate(LinkId link, double rate);

  // From the next window on the port of a link in use has this rate, of that which its link has:
  // something else uses the rest. Connections that are added meanwhile would take it for the rate
  // of the link.
  void slow_down(LinkId link, Bandwidth rate) { fabric_.slow_down(link, rate); }

  // Queues a message; `message.time` must not fall from call to call.
  void send(std::uint32_t connection, const Message& message);

  // The end of the next window in which anything is due; kNeverTime if nothing is. All processes of
  // a team ask at the same moment of their runs.
  [[nodiscard]] Picoseconds next_border() const;
  // Returns whether processes of a team would ask each other for it.
  [[nodiscard]] bool is_shared() const { return exchange_ != nullptr; }
  // Works through that window. Adds the messages that complete in later ones, in order of time,
  // then of send().
  void run_window(std::vector<Completion>& completions);

  // To be called by all processes of a team before anything below is asked for: what was counted in
  // one of them is then known to all. Nothing where this process is alone.
  void gather() const {
    if (exchange_) {
      exchange_->gather(windows_);
    }
  }
  // The parts that an observer may look at: ports and switches, and the two ends of connections.
  [[nodiscard]] const PacketFabric& fabric() const { return fabric_; }
  [[nodiscard]] const PacketSenders& senders() const { return senders_; }
  [[nodiscard]] const PacketTargets& targets() const { return targets_; }
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] PacketStats stats() const;
  // The port of this link, if a connection uses it.
  [[nodiscard]] const Port* port(LinkId link) const;
  // The time for which it has been paused, up to the end of the last window.
  [[nodiscard]] Picoseconds paused_time(const Port& port) const;
  // Pause storms that its watchdog has seen.
  [[nodiscard]] std::uint64_t storms(const Port& port) const {
    return port.guard == kNoIndex ? 0 : fabric_.guards()[port.guard].storms;
  }
  // Returns the time for which it had no credits for the largest packet.
  [[nodiscard]] Picoseconds starved_time(const Port& port) const;
  // Payload that left on each link in use, of messages whose last packet has left the source.
  [[nodiscard]] std::vector<LinkUse> payload_by_link() const;
  // The rate to which a connection is limited now, in bits per second.
  [[nodiscard]] double rate(std::uint32_t connection) const {
    return senders_.rate(connection, begin_time_);
  }
  // Its packets are counted modulo 2^32.
  [[nodiscard]] ConnectionCounters counters(std::uint32_t connection) const;
  // The nodes at which it begins and ends.
  [[nodiscard]] std::pair<NodeId, NodeId> ends_of(std::uint32_t connection) const;
  // Failures by time, then connection.
  [[nodiscard]] const std::vector<Failure>& failures() const { return failures_; }
  // Returns the samples that the options asked for, with connections as they are numbered here; the
  // last one at the end of the last window.
  [[nodiscard]] std::optional<PacketSamples> samples() const;
  // Returns a percentile of the queue of a port, over time up to the end of the last window; absent
  // if the options did not ask for it.
  [[nodiscard]] std::optional<Bytes> queue_percentile(const Port& port, int percent) const;
  // Length of a window.
  [[nodiscard]] Picoseconds window() const { return window_; }

  // Messages that were sent and are not complete.
  [[nodiscard]] std::uint64_t incomplete() const { return messages_.sends() - counts().completed; }
  // A cycle of links that are stopped, each because of packets that wait for the next one and the
  // last because of the first: a PFC deadlock, which nothing ends. Empty if there is none.
  [[nodiscard]] std::vector<LinkId> deadlock() const;

  // Every start of a packet is added to `starts` from now on: window by window, in order of time,
  // then of the link.
  void trace(std::vector<PacketStart>* starts) {
    CHECK(!phases_, "starts are traced of packets that are not simulated");
    starts_ = starts;
    watch_.is_on = true;
    watch_.is_traced = true;
  }

 private:
  [[nodiscard]] PacketWorker& worker_of(std::uint32_t port) {
    return *workers_[fabric_.ports()[port].part];
  }
  [[nodiscard]] std::uint64_t next_window() const;
  void sample_before(Picoseconds time);
  void run_workers(std::uint64_t number, Picoseconds until);
  void set_up_ports();
  void shorten_window(Picoseconds lookahead);
  void collect(std::vector<Completion>& completions);
  // packet_adaptive.cpp
  void add_ways(std::uint32_t connection, const PacketPath& path,
                std::span<const std::vector<LinkId>> others);
  // packet_faults.cpp
  void watch_link(LinkId link);
  void set_up_losses(LinkId link);

  PacketFabric fabric_;
  PacketMessages messages_;
  std::vector<ReliableConnection>
      reliable_;         // Indexed by connection, where packets are sent again.
  PacketGrants grants_;  // State of receiver credits.
  PacketSenders senders_;
  PacketTargets targets_;
  PacketWatch watch_;
  std::vector<std::unique_ptr<PacketWorker>> workers_;  // One for each part of the fabric.
  std::unique_ptr<PacketExchange> exchange_;            // With other processes.
  PacketWorker::Workers own_;                           // Workers that run in this process.
  std::unique_ptr<PacketPhases> phases_;                // With fast-forward.
  std::unique_ptr<ThreadPool> pool_;                    // If there are several.
  std::size_t ports_set_up_ = 0;
  // Links before the queue of a socket, which have no port (PacketFabric::from_queue).
  struct BeforeQueue {
    std::uint32_t connection;
    LinkId link;
  };
  std::vector<BeforeQueue> before_queues_;
  Picoseconds window_ = kNeverTime;
  Picoseconds begin_time_ = 0;  // Everything before has been done.
  std::uint64_t windows_ = 0;
  std::uint64_t rounds_ = 0;  // Pieces of windows.
  std::vector<Failure> failures_;
  std::vector<PacketStart>* starts_ = nullptr;
  PacketSampler sampler_;
};

}  // namespace trainyard
