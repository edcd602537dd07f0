// SPDX-License-Identifier: Apache-2.0
#include "hw/control/control_profile.h"

#include "hw/control/control_reader.h"
#include "sim/config.h"

namespace trainyard {

ControlProfile ControlProfile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  const ControlReader reader(root);
  ControlProfile profile;
  profile.name = file.stem().string();
  profile.rules =
      ControlList::read(root.required("algorithm").as_choice(ControlList::kNames), reader);
  document.finish();
  return profile;
}

ControlSettings ControlProfile::settings(const PortTerms& port) const {
  return visit_control(rules, [&]<typename Row>(Row /*row*/, const auto& profile) {
    return ControlSettings{port, Row::settings(profile, port)};
  });
}

ControlTraits ControlProfile::traits() const {
  return visit_control(
      rules, []<typename Row>(Row /*row*/, const auto& profile) { return Row::traits(profile); });
}

}  // namespace trainyard
