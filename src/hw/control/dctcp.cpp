// SPDX-License-Identifier: Apache-2.0
#include "hw/control/dctcp.h"

#include "hw/control/control_fields.h"

namespace trainyard {

void DctcpControl::fields(Fields& fields, DctcpProfile& profile) {
  fields.required("g", profile.settings.g, control::kShare, "The gain of alpha.");
  fields.required("initial_alpha", profile.settings.initial_alpha, control::kShare,
                  "Alpha at the start.");
  fields.optional("slow_start", profile.settings.slow_start, control::kFlag,
                  "Whether a flow starts with ten packets and doubles its window until the first "
                  "mark or loss.");
}

DctcpSettings DctcpControl::settings(const DctcpProfile& profile, const PortTerms& port) {
  DctcpSettings settings = profile.settings;
  settings.packet = port.packet;
  settings.first_window = bdp(port);
  return settings;
}

}  // namespace trainyard
