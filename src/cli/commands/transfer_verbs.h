// SPDX-License-Identifier: Apache-2.0
// transfer --verb: messages of RDMA between two host memories.
#pragma once

#include <span>
#include <string>

#include "cli/common/options.h"
#include "network/traffic/transfers.h"
#include "network/traffic/verbs.h"
#include "report/formats/document.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// --verb and what needs it. --mtu goes with it as well; --cores goes with --tcp, too.
[[nodiscard]] Options verb_options();
// Throws ConfigError.
[[nodiscard]] VerbSettings read_verb_settings(const OptionReader& reader, Bytes mtu);

// Returns what --size is where it is absent, as with -a of perftest.
[[nodiscard]] std::string default_sizes(const VerbSettings& settings);

// Has a row for each size. Throws ConfigError where the verb has no such settings or sizes, and
// where the ends are not two memories that a network joins.
[[nodiscard]] Document verb_document(const Cluster& cluster, const Transfer& pair,
                                     const VerbSettings& settings, std::span<const Bytes> sizes);

}  // namespace trainyard
