// SPDX-License-Identifier: Apache-2.0
#include "hw/control/dctcp.h"

#include "hw/control/control_reader.h"

namespace trainyard {

DctcpProfile DctcpControl::read(const ControlReader& reader) {
  DctcpProfile profile;
  profile.settings.g = reader.share("g");
  profile.settings.initial_alpha = reader.share("initial_alpha");
  return profile;
}

DctcpSettings DctcpControl::settings(const DctcpProfile& profile, const PortTerms& port) {
  DctcpSettings settings = profile.settings;
  settings.packet = port.packet;
  settings.first_window = bdp(port);
  return settings;
}

}  // namespace trainyard
