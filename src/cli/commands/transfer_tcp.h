// SPDX-License-Identifier: Apache-2.0
// transfer --tcp: messages over sockets of the kernel, between two host memories.
#pragma once

#include <span>

#include "cli/common/options.h"
#include "network/traffic/tcp.h"
#include "network/traffic/transfers.h"
#include "report/formats/document.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// --tcp and what needs it. --cores and --mtu go with it as well.
[[nodiscard]] Options tcp_options();
// Throws ConfigError.
[[nodiscard]] SocketSettings read_tcp_settings(const OptionReader& reader);

// Has a row for each size. Throws ConfigError where the ends are not two memories that a network
// joins.
[[nodiscard]] Document tcp_document(const Cluster& cluster, const Transfer& pair,
                                    const SocketSettings& settings, std::span<const Bytes> sizes);

}  // namespace trainyard
