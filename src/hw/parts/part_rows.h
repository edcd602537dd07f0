// SPDX-License-Identifier: Apache-2.0
// Rows of fields of the parts of the catalogue, which read them from its files and from those of
// users.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {

// Returns the hint of an error after an unknown name: the shortest name that starts like it ("H100"
// is nearer to "H100-SXM" than to "H20"), else the nearest by spelling, else all of them.
[[nodiscard]] std::string part_advice(std::string_view word, const std::vector<std::string>& names);

// The value that is called as the node says. Throws ConfigError for another name.
template <typename Value>
[[nodiscard]] const Value& find_named(const std::map<std::string, Value>& known,
                                      const ConfigNode& node, std::string_view expected) {
  const std::string name = node.as_string();
  if (const auto entry = known.find(name); entry != known.end()) {
    return entry->second;
  }
  std::vector<std::string> names;
  for (const auto& [known_name, value] : known) {
    names.push_back(known_name);
  }
  node.fail(expected, node.found() + part_advice(name, names));
}

// Short keys of a file, and the citations that they stand for.
using Citations = std::map<std::string, std::string>;

using Links = std::map<std::string, LinkModel>;

// Links and citations that the values of a part name.
struct References {
  const Links& links;
  OwnPart* own = nullptr;  // Set where a part of the user's own is read.
  Citations citations = {};
};

void link_fields(Fields& fields, LinkModel& link, const References& of);
void cpu_fields(Fields& fields, CpuModel& cpu, const References& of);
void gpu_fields(Fields& fields, GpuModel& gpu, const References& of);
void nic_fields(Fields& fields, NicModel& nic, const References& of);
void nvswitch_fields(Fields& fields, NvSwitchModel& model, const References& of);
void switch_fields(Fields& fields, SwitchModel& model, const References& of);

}  // namespace trainyard
