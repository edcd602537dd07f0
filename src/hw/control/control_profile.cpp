// SPDX-License-Identifier: Apache-2.0
#include "hw/control/control_profile.h"

#include <span>

#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

// The keys of a file with one of `count` controls from `first` on.
void control_fields(Fields& fields, ControlProfile& profile, std::size_t first, std::size_t count) {
  const auto names = std::span(ControlList::kNames).subspan(first, count);
  std::size_t index = 0;
  fields.cite_sources();
  fields.required("algorithm", index, Choice{names}, "The control.");
  ControlList::fields(first + index, fields, profile.rules);
}

}  // namespace

std::map<std::string, Schema> control_schemas() {
  std::map<std::string, Schema> schemas;
  for (std::size_t index = 0; index < ControlList::kNames.size(); ++index) {
    const auto rows = [index](Fields& fields, ControlProfile& profile) {
      control_fields(fields, profile, index, 1);
    };
    schemas["control-" + std::string(ControlList::kNames.at(index))] =
        schema_of<ControlProfile>(rows);
  }
  return schemas;
}

ControlProfile ControlProfile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  ControlProfile profile;
  profile.name = file.stem().string();
  Fields fields(document.root());
  control_fields(fields, profile, 0, ControlList::kNames.size());
  document.finish();
  return profile;
}

ControlSettings ControlProfile::settings(const PortTerms& port) const {
  return visit_control(rules, [&](auto row, const auto& profile) {
    return ControlSettings{port, row.settings(profile, port)};
  });
}

ControlTraits ControlProfile::traits() const {
  return visit_control(rules, [](auto row, const auto& profile) { return row.traits(profile); });
}

}  // namespace trainyard
