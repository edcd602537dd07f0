// SPDX-License-Identifier: Apache-2.0
// `trainyard step` with a recommendation model.
#pragma once

#include <ostream>

#include "cli/common/options.h"

namespace trainyard {

[[nodiscard]] int run_recommender_step(const OptionReader& reader, std::ostream& out);

}  // namespace trainyard
