// SPDX-License-Identifier: Apache-2.0
#include "hw/control/reno.h"

#include "hw/control/control_fields.h"

namespace trainyard {

void RenoControl::fields(Fields& fields, RenoProfile& profile) {
  RenoSettings& settings = profile.settings;
  fields.required("first_window", settings.first_window, control::kPackets,
                  "The window at the start, in packets.");
  fields.required("beta", settings.beta, control::kShare, "What a loss leaves of the window.");
}

}  // namespace trainyard
