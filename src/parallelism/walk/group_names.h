// SPDX-License-Identifier: Apache-2.0
// Names of the groups of ranks that call collectives, and what their calls are for.
#pragma once

#include <string>
#include <string_view>

#include "parallelism/model/rank_groups.h"

namespace trainyard {

// "gradient 4": the group of a kind that begins with rank 4.
[[nodiscard]] std::string communicator_name(RankGroupKind kind, int first_rank);
// Returns purpose_of() of the kind of such a name; of other names what is before their last word if
// that is a number, else all: "data" of "data".
[[nodiscard]] std::string_view purpose_of_communicator(std::string_view name);

}  // namespace trainyard
