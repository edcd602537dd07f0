// SPDX-License-Identifier: Apache-2.0
// The runtime that performs collectives and the network that carries their traffic, as the options
// of all commands that time collectives name them: --runtime, --fidelity, --nccl-version,
// --profile, --traffic.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "cli/common/packet_options.h"
#include "collectives/hccl/hccl_profile.h"
#include "nccl/timing/profile.h"
#include "nccl/types/types.h"
#include "network/contract/network.h"
#include "parallelism/run/step_run.h"

namespace trainyard {

struct Runtime {
  // The release of NCCL, whose event model times its choices; nothing: plain, links and latencies
  // alone.
  std::optional<nccl::Version> nccl = nccl::kNewestVersion;
  bool is_rccl = false;  // AMD's, which is planned by its own rules.
  // Huawei's: what its tasks cost. Without `nccl`.
  std::optional<HcclProfile> hccl = {};
  // "mpi" or "gloo", between host memories; empty: another one. Without `nccl`.
  std::string_view hosts = {};
  // The engine that carries messages, with NCCL those between nodes; nothing: the ports of NCCL's
  // event model. Plain has an engine.
  std::optional<Fidelity> engine = {};
  bool shares_network = false;          // All groups of a step are on one network at once.
  PacketRequest packet = {};            // How packets are sent on that network.
  NetworkExtras extras = {};            // Engines have them, where the command does.
  std::vector<std::string> notes = {};  // Remarks on the release for readers of results.

  // "nccl", "rccl", "hccl", "mpi", "gloo" or "plain".
  [[nodiscard]] std::string_view name() const {
    return hccl ? "hccl" : !hosts.empty() ? hosts : !nccl ? "plain" : is_rccl ? "rccl" : "nccl";
  }
  // "NCCL 2.30.7" or "RCCL"; with `nccl`.
  [[nodiscard]] std::string library() const;
  // "flow", ..., or "mixed"; empty without an engine.
  [[nodiscard]] std::string engine_name() const;
  // The engine of what is not NCCL's: flow, unless there is another.
  [[nodiscard]] Fidelity fidelity() const { return engine.value_or(Fidelity::Flow); }
  // "as NCCL 2.30.7 would by its event model", "as HCCL would" or "as plain rings".
  [[nodiscard]] std::string how() const;
  // Fills in what runs collectives. The profile and this must outlive the tables.
  void apply(const nccl::Profile& nccl_profile, StepTables& tables) const;
};

// --runtime, --fidelity, --nccl-version, --profile.
[[nodiscard]] Options runtime_options(HasMixed has_mixed = HasMixed::No);
// Throws ConfigError. Reads --traffic, --packets and --message-times where the command has them.
[[nodiscard]] Runtime read_runtime(const OptionReader& reader);

// Where no option says otherwise: the library of the cluster's GPUs, or plain where it is not
// modelled. Throws ConfigError for a library that does not run on them. Mistakes in the cluster are
// left to who builds it.
void assume_runtime(OptionReader& reader);

// Reads how packets are sent where all traffic is on one network. Refuses that of what does not
// share one, and packets beside flows and several processes where traffic could be on one network
// and is not. Throws ConfigError.
void read_sharing(const OptionReader& reader, Runtime& runtime);

// --nccl-version of commands that have NCCL alone.
[[nodiscard]] Option nccl_version_option();
// The nearest release that is known, with a note where it is another one.
[[nodiscard]] nccl::Version read_nccl_version(const OptionReader& reader,
                                              std::vector<std::string>& notes);

// Reads --fidelity. Returns nothing for "ports", and packets for "mixed".
[[nodiscard]] std::optional<Fidelity> read_engine(const OptionReader& reader);

}  // namespace trainyard
