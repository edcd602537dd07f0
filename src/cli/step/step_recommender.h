// SPDX-License-Identifier: Apache-2.0
// `trainyard step` with a recommendation model.
#pragma once

#include <ostream>

#include "cli/common/options.h"
#include "cli/step/step_request.h"

namespace trainyard {

// The inputs that the request of such a workload names.
[[nodiscard]] LoweredJob recommender_job(const StepRequest& request, spdlog::logger& log);

[[nodiscard]] int run_recommender_step(const OptionReader& reader, std::ostream& out);

}  // namespace trainyard
