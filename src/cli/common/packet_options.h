// SPDX-License-Identifier: Apache-2.0
// --transport, --control, --ecn, --pfc, --mtu, --credits, --server-credits, --retransmission,
// --bit-errors, --loss, --fail, --convergence, --fast-forward: what the packet engine is told
// beside the cluster; --counters, --samples, --sample-every: what it is asked for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "network/contract/network.h"
#include "network/packet/packet_options.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct PacketRequest {
  std::optional<std::string> transport;  // As it was named.
  PacketOptions options = roce_options();
  std::optional<std::string> counters_file;
  std::optional<std::string> samples_file;
  std::vector<std::string> failures;  // "A,B@TIME" each.

  // Whether priorities of flows matter.
  [[nodiscard]] bool has_classes(Fidelity fidelity) const {
    return fidelity == Fidelity::Packet && options.lanes;
  }
  [[nodiscard]] bool has_files() const { return counters_file || samples_file; }
};

// --fast-forward.
[[nodiscard]] Option fast_forward_option();
[[nodiscard]] FastForward read_fast_forward(const OptionReader& reader);

// How packets are sent: all of the above but the last three. `needs`: what they need beside them;
// what ends in "|mixed" is not enough for --fast-forward.
[[nodiscard]] Options sending_options(std::string_view needs);
// --threads, where it cuts the fabric into parts.
[[nodiscard]] Option packet_threads_option(std::string_view needs);

// For commands that have --fidelity, some of them with `mixed`.
enum class HasMixed : bool { No, Yes };
[[nodiscard]] Options packet_options(HasMixed has_mixed = HasMixed::No);
// --fail and --convergence, of commands with one run.
[[nodiscard]] Options failure_options();

// Throw ConfigError.
[[nodiscard]] PacketRequest read_packet_options(const OptionReader& reader);
// The same for commands that have sending_options() and packet_threads_option() alone.
[[nodiscard]] PacketRequest read_sending_options(const OptionReader& reader);
[[nodiscard]] int read_packet_threads(const OptionReader& reader);
void read_failure_options(const OptionReader& reader, PacketRequest& request);

// Finds the links of --fail. Throws the ConfigError for what is none.
void find_failures(PacketRequest& request, const Topology& topology);

// "congestion control dcqcn-nic, ECN hpcc, PFC on, path MTU 4096", for the notes of a result.
[[nodiscard]] std::string describe(const PacketRequest& request);
// Notes how packets are sent, and that the engine lacks virtual channels which the routes of the
// fabric rely on, if links can be stopped.
void add_packet_notes(const PacketRequest& request, const RoutingOptions& routing,
                      std::vector<std::string>& notes);
// Writes the files that were asked for. What they are of must be there.
void write_packet_files(const PacketRequest& request, const Topology& topology,
                        const std::optional<std::vector<PortCounters>>& counters,
                        const std::optional<PacketSamples>& samples);
// "12 hops, 3 marked, ...", the same.
[[nodiscard]] std::string describe(const PacketStats& packets);

}  // namespace trainyard
