// SPDX-License-Identifier: Apache-2.0
// `trainyard step` with a recommendation model.
#pragma once

#include <ostream>

#include "cli/common/options.h"

namespace trainyard {

// Whether --workload is of one; false for what cannot be found or read.
[[nodiscard]] bool has_recommender(const OptionReader& reader);

[[nodiscard]] int run_recommender_step(const OptionReader& reader, std::ostream& out);

}  // namespace trainyard
