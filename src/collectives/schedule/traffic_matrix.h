// SPDX-License-Identifier: Apache-2.0
// How many bytes every rank sends to every other: the input of alltoallv, such as the routing of
// tokens to experts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace trainyard {

struct TrafficMatrix {
  int ranks = 0;
  std::vector<std::int64_t> bytes;  // From source to target: bytes[source * ranks + target].

  [[nodiscard]] Bytes at(int source, int target) const {
    return Bytes(bytes[static_cast<std::size_t>(source) * static_cast<std::size_t>(ranks) +
                       static_cast<std::size_t>(target)]);
  }
  // Return the bytes that a rank sends and receives, its own part among it.
  [[nodiscard]] Bytes sent(int source) const;
  [[nodiscard]] Bytes received(int target) const;
  // The most that any rank sends or receives: the size in the sense of nccl-tests (alltoallv.cu).
  [[nodiscard]] Bytes largest() const;
};

// One line for each source, one number of bytes for each target, separated by blanks or commas;
// what follows a # and empty lines are left out. `name` represents the file in errors. Throws
// ConfigError "NAME:LINE:COLUMN: ..." unless there are as many numbers in every line as lines, none
// of them negative or more than 256 GiB.
[[nodiscard]] TrafficMatrix read_traffic_matrix(std::string_view text, const std::string& name);

}  // namespace trainyard
