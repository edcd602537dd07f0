// SPDX-License-Identifier: Apache-2.0
// Decides what NCCL_ALGO and NCCL_PROTO allow (NVIDIA/nccl, src/graph/tuning.cc, parseList).
//
//   Ring,Tree                     these alone, for all functions
//   ^LL128                        all but these
//   Ring;AllReduce:Tree,NVLS      lists for one function follow, each replaces what was before
//
// Only the first list may be without a function. Functions that no list names keep everything.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "nccl/types/types.h"

namespace trainyard::nccl {

class SelectionFilter {
 public:
  // Read the value of NCCL_ALGO and of NCCL_PROTO. Throw ConfigError.
  void set_algorithms(std::string_view text);
  void set_protocols(std::string_view text);

  [[nodiscard]] bool allows(Function function, Algorithm algorithm) const;
  [[nodiscard]] bool allows(Function function, Protocol protocol) const;
  // Returns whether NCCL_PROTO has a list for the function that allows the protocol: LL128 is then
  // used where NCCL would not by itself. A list of what is not allowed counts, too.
  [[nodiscard]] bool forces(Function function, Protocol protocol) const;
  // Returns whether NCCL_ALGO, or NCCL_PROTO, is set.
  [[nodiscard]] bool has_algorithms() const { return !algorithms_text_.empty(); }
  [[nodiscard]] bool has_protocols() const { return !protocols_text_.empty(); }
  // "NCCL_ALGO=Ring NCCL_PROTO=LL128"; empty where nothing is set.
  [[nodiscard]] std::string text() const;

 private:
  std::array<std::optional<std::array<bool, 7>>, 5> algorithms_ = {};  // Indexed by function.
  std::array<std::optional<std::array<bool, 3>>, 5> protocols_ = {};
  std::string algorithms_text_;
  std::string protocols_text_;
};

}  // namespace trainyard::nccl
