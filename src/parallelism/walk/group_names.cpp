// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/group_names.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "parallelism/walk/step_traffic.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 10> kGroupNames{
    "tensor",  "context", "pipeline",      "gradient",        "shard",
    "replica", "expert",  "expert tensor", "expert gradient", "ends"};

}  // namespace

std::string communicator_name(RankGroupKind kind, int first_rank) {
  return fmt::format("{} {}", kGroupNames[static_cast<std::size_t>(kind)], first_rank);
}

std::string_view purpose_of_communicator(std::string_view name) {
  const std::size_t space = name.rfind(' ');
  if (space != std::string_view::npos && space + 1 < name.size() &&
      name.find_first_not_of("0123456789", space + 1) == std::string_view::npos) {
    name = name.substr(0, space);
  }
  const auto* const known = std::ranges::find(kGroupNames, name);
  return known == kGroupNames.end()
             ? name
             : purpose_of(static_cast<RankGroupKind>(known - kGroupNames.begin()));
}

}  // namespace trainyard
