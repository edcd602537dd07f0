// SPDX-License-Identifier: Apache-2.0
// Reads configs/hardware/*.yaml. A file is a mapping `sources` from short keys to citations and a
// mapping of parts by name; a value of a part is {value, evidence, source, note}.
#include "hw/parts/catalogue.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/parts/part_rows.h"
#include "sim/check.h"
#include "sim/fields.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

template <typename Part>
using PartRows = void (*)(Fields&, Part&, const References&);

// Where parts of a kind are kept, and how files have them.
template <typename Part>
struct Shelf {
  std::map<std::string, Part> Catalogue::*parts;
  std::string_view section;  // Key of files and, with ".yaml", name of a file of the catalogue.
  std::string_view expected;
  PartRows<Part> rows;
};

}  // namespace

// Those of links first, to which the other parts refer.
struct Shelves {
  static constexpr std::tuple kAll{
      Shelf<LinkModel>{&Catalogue::links_, "links", "the name of a link in the catalogue",
                       link_fields},
      Shelf<CpuModel>{&Catalogue::cpus_, "cpus", "the name of a CPU in the catalogue", cpu_fields},
      Shelf<GpuModel>{&Catalogue::gpus_, "gpus", "the name of a GPU in the catalogue", gpu_fields},
      Shelf<NicModel>{&Catalogue::nics_, "nics", "the name of a NIC in the catalogue", nic_fields},
      Shelf<NvSwitchModel>{&Catalogue::nvswitches_, "nvswitches",
                           "the name of an NVSwitch in the catalogue", nvswitch_fields},
      Shelf<SwitchModel>{&Catalogue::switches_, "switches", "the name of a switch in the catalogue",
                         switch_fields}};

  template <typename Function>
  static void for_each(Function function) {
    std::apply([&](const auto&... shelf) { (function(shelf), ...); }, kAll);
  }
  template <typename Part>
  static constexpr const Shelf<Part>& of() {
    return std::get<Shelf<Part>>(kAll);
  }
};

namespace {

// Rows of a file of the catalogue: citations, and parts below `section`.
template <typename Part>
void part_file_fields(Fields& fields, const Shelf<Part>& shelf, std::map<std::string, Part>& parts,
                      const Links& links) {
  References of{links};
  const auto part_rows = [&](Fields& row, Part& part) { shelf.rows(row, part, of); };
  fields.required("sources", of.citations, Named{Text{}}, "Citations by short keys.");
  fields.required(shelf.section, parts, Named{Group{part_rows}}, "Parts.");
}

// Rows of a part of the user's own. The part is a variant of `base` where there is one.
template <typename Part>
void own_part_fields(Fields& fields, const Shelf<Part>& shelf, Part& part, OwnPart& own,
                     const Links& links) {
  fields.optional("source", own.source, Text{}, "Where the values are from.");
  shelf.rows(fields, part, References{.links = links, .own = &own});
}

template <typename Part>
void describe_own_part(Schema& schema) {
  Fields fields(schema);
  fields.keep_missing();
  Part part;
  OwnPart own;
  fields.optional("base", own.base, Text{}, "Part whose values hold where none is given here.");
  fields.optional("name", part.name, Text{}, "Name: the base and what differs.");
  own_part_fields(fields, Shelves::of<Part>(), part, own, {});
}

// Reads a part of the user's own. Its name is `name` or, where that is empty, its key `name` or
// what it says.
template <typename Part>
std::pair<Part, OwnPart> own_part(const ConfigNode& node, const Shelf<Part>& shelf,
                                  const std::map<std::string, Part>& known, const Links& links,
                                  std::string name) {
  Fields fields(node);
  Part part;
  OwnPart own;
  own.place = node.place();
  if (const std::optional<ConfigNode> base = node.optional("base")) {
    part = find_named(known, *base, shelf.expected);
    own.base = part.name;
    if constexpr (requires { part.base; }) {
      part.base = part.base.empty() ? part.name : part.base;
    }
    if constexpr (requires { part.pci_ids; }) {
      part.pci_ids.reset();  // Those of the base.
    }
    fields.keep_missing();
  }
  if (name.empty()) {
    fields.optional("name", name, Text{}, "");
  }
  own_part_fields(fields, shelf, part, own, links);
  if (own.values.empty()) {
    node.fail(own.base.empty() ? "the values of a part, or base and what differs from it"
                               : "what differs from the base",
              "none of it");
  }
  if (name.empty()) {
    name = fmt::format("{} ({})", own.base.empty() ? shelf.section : own.base,
                       fmt::join(own.values, ", "));
  }
  part.name = std::move(name);
  return {std::move(part), std::move(own)};
}

// The same, put where the parts of its kind are.
template <typename Part>
const Part& add_own_part(const ConfigNode& node, const std::string& name,
                         std::map<std::string, Part>& parts, std::map<std::string, OwnPart>& owned,
                         const Links& links) {
  auto [part, own] = own_part(node, Shelves::of<Part>(), parts, links, name);
  const std::string key = part.name;
  if (const auto same = owned.find(key); same != owned.end()) {
    if (same->second.base == own.base && same->second.values == own.values) {
      return parts.at(key);  // Two servers that say the same.
    }
    node.fail(fmt::format("another name than {}, which {} has", in_quotes(key), same->second.place),
              in_quotes(key));
  }
  if (parts.contains(key)) {
    node.fail(fmt::format("another name than {}, which a part of the catalogue has (for a variant "
                          "of it, give it as base)",
                          in_quotes(key)),
              in_quotes(key));
  }
  owned.emplace(key, std::move(own));
  return parts.emplace(key, std::move(part)).first->second;
}

}  // namespace

Catalogue Catalogue::load(const std::filesystem::path& folder) {
  Catalogue catalogue;
  catalogue.folder_ = folder;
  Shelves::for_each([&](const auto& shelf) {
    ConfigDocument document = ConfigDocument::load(folder / fmt::format("{}.yaml", shelf.section));
    Fields fields(document.root());
    auto& parts = catalogue.*shelf.parts;
    part_file_fields(fields, shelf, parts, catalogue.links_);
    for (auto& [name, part] : parts) {
      part.name = name;
    }
    document.finish();
  });
  return catalogue;
}

std::map<std::string, Schema> catalogue_schemas() {
  std::map<std::string, Schema> schemas;
  Shelves::for_each([&]<typename Part>(const Shelf<Part>& shelf) {
    Fields fields(schemas[std::string(shelf.section)]);
    std::map<std::string, Part> parts;
    part_file_fields(fields, shelf, parts, {});
  });
  return schemas;
}
void describe_part(Schema& schema) {
  Text::describe(schema.alternatives.emplace_back());
  Schema& own = schema.alternatives.emplace_back();
  own.is_map = true;
  own.named.emplace_back();
  schema.is_cited = true;
}

void describe_own_parts(Schema& schema) {
  schema.is_map = true;
  Shelves::for_each([&]<typename Part>(const Shelf<Part>& shelf) {
    Schema& parts = schema.add(shelf.section, "Parts by names.", false);
    parts.is_map = true;
    describe_own_part<Part>(parts.named.emplace_back());
  });
}

template <typename Part>
const Part& Catalogue::look_up(const ConfigNode& node) {
  const Shelf<Part>& shelf = Shelves::of<Part>();
  std::map<std::string, Part>& parts = this->*shelf.parts;
  return node.is_map() ? add_own_part(node, "", parts, own_, links_)
                       : find_named(parts, node, shelf.expected);
}

const CpuModel& Catalogue::cpu(const ConfigNode& part) {
  return look_up<CpuModel>(part);
}
const GpuModel& Catalogue::gpu(const ConfigNode& part) {
  return look_up<GpuModel>(part);
}
const LinkModel& Catalogue::link(const ConfigNode& part) {
  return look_up<LinkModel>(part);
}
const NicModel& Catalogue::nic(const ConfigNode& part) {
  return look_up<NicModel>(part);
}
const NvSwitchModel& Catalogue::nvswitch(const ConfigNode& part) {
  return look_up<NvSwitchModel>(part);
}
const SwitchModel& Catalogue::network_switch(const ConfigNode& part) {
  return look_up<SwitchModel>(part);
}

void Catalogue::add(const ConfigNode& kinds) {
  Shelves::for_each([&](const auto& shelf) {
    const std::optional<ConfigNode> section = kinds.optional(shelf.section);
    if (!section) {
      return;
    }
    for (const auto& [name, node] : section->entries()) {
      add_own_part(node, name, this->*shelf.parts, own_, links_);
    }
  });
}

void Catalogue::add(const std::filesystem::path& file_or_folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;  // Ignored: what cannot be looked at is refused as a file.
  if (std::filesystem::is_directory(file_or_folder, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(file_or_folder)) {
      if (entry.path().extension() == ".yaml") {
        files.push_back(entry.path());
      }
    }
    std::ranges::sort(files);
    if (files.empty()) {
      throw ConfigError(fmt::format("--parts {}: expected .yaml files in this folder, found none",
                                    file_or_folder.string()));
    }
  } else {
    files.push_back(file_or_folder);
  }
  for (const std::filesystem::path& file : files) {
    ConfigDocument document = ConfigDocument::load(file);
    add(document.root());
    document.finish();
  }
}

void Catalogue::keep(const std::vector<std::string>& names) {
  Shelves::for_each([&]<typename Part>(const Shelf<Part>& shelf) {
    if constexpr (!std::is_same_v<Part, LinkModel>) {
      std::erase_if(this->*shelf.parts, [&](const auto& part) {
        return std::ranges::find(names, part.first) == names.end();
      });
    }
  });
}

const std::string& Catalogue::base_of(const std::string& name) const {
  const auto own = own_.find(name);
  return own == own_.end() || own->second.base.empty() ? name : base_of(own->second.base);
}

const LinkModel& Catalogue::link(std::string_view name) const {
  const auto entry = links_.find(std::string(name));
  CHECK(entry != links_.end(), "no such link in the catalogue");
  return entry->second;
}

}  // namespace trainyard
