// SPDX-License-Identifier: Apache-2.0
// A transport of configs/transport as the packet engine runs it.
#pragma once

#include <filesystem>

#include "network/packet/packet_options.h"

namespace trainyard {

// Reads a file such as configs/transport/default.yaml; `folder` is configs/transport, for the names
// in it. Throws ConfigError at the place of what is wrong, and of what the engine does not have: a
// second class of data, pauses that end by a timer, buffers in cells.
[[nodiscard]] PacketOptions load_packet_options(const std::filesystem::path& file,
                                                const std::filesystem::path& folder);

}  // namespace trainyard
