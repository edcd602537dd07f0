// SPDX-License-Identifier: Apache-2.0
// Congestion control as configs/transport/control/*.yaml states it, for ports of any speed, and
// what that means for one port. docs/models/transport.md explains the keys.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "hw/control/congestion_control.h"
#include "sim/schema.h"

namespace trainyard {

struct ControlProfile {
  std::string name;  // The name of the file, without ".yaml": goes into reports.
  ControlList::Profiles rules{};

  // Throws ConfigError.
  [[nodiscard]] static ControlProfile load(const std::filesystem::path& file);

  [[nodiscard]] ControlSettings settings(const PortTerms& port) const;
  [[nodiscard]] ControlTraits traits() const;
};

// Returns the schemas of the files of each control, by names such as "control-dcqcn".
[[nodiscard]] std::map<std::string, Schema> control_schemas();

}  // namespace trainyard
