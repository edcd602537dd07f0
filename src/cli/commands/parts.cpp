// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/options.h"
#include "report/formats/document.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::string_view kPartsExample = R"(
Where a cluster file names a part it may describe one instead, as what differs from another:

  nic: {base: ConnectX-6, speed: 25 Gb/s, source: its data sheet}

and so may --set nic.speed="25 Gb/s", `parts:` in the file, and a file of --parts
(docs/inputs/parts.md).

Examples:
  trainyard parts
  trainyard parts gpus
  trainyard parts H100-SXM
)";

// Kinds of parts, by the names of their files.
constexpr std::array<std::string_view, 6> kPartKinds{"gpus",       "nics",  "switches",
                                                     "nvswitches", "links", "cpus"};

// A part in the list.
struct ListedPart {
  std::string_view kind;
  std::string name;
  std::string values;
};

std::string values_of(const GpuModel& gpu) {
  std::string text =
      fmt::format("{}, {}", to_string(gpu.memory.value), to_string(gpu.memory_bandwidth.value));
  for (const std::string_view type : {"bf16", "fp16", "fp32"}) {
    if (const auto peak = gpu.peak.find(std::string(type)); peak != gpu.peak.end()) {
      return text + fmt::format(", {} {:.0f} TFLOP/s", type, peak->second.value.teraflops());
    }
  }
  return text;
}
std::string values_of(const NicModel& nic) {
  return fmt::format("{} x {}", nic.ports.value, to_string(nic.speed.value));
}
std::string values_of(const SwitchModel& model) {
  return fmt::format("{} x {}", model.ports.value, to_string(model.speed.value));
}
std::string values_of(const NvSwitchModel& model) {
  return fmt::format("{} x {}", model.ports.value, model.link);
}
std::string values_of(const LinkModel& link) {
  return to_string(link.bandwidth.value);
}
std::string values_of(const CpuModel& cpu) {
  return fmt::format("{}, {}", cpu.pcie, to_string(cpu.memory_bandwidth.value));
}

std::vector<ListedPart> all_parts(const Catalogue& catalogue) {
  std::vector<ListedPart> parts;
  const auto add = [&](std::string_view kind, const auto& models) {
    for (const auto& [name, model] : models) {
      parts.push_back({.kind = kind, .name = name, .values = values_of(model)});
    }
  };
  add("gpus", catalogue.gpus());
  add("nics", catalogue.nics());
  add("switches", catalogue.switches());
  add("nvswitches", catalogue.nvswitches());
  add("links", catalogue.links());
  add("cpus", catalogue.cpus());
  return parts;
}

Document list_of(const std::vector<ListedPart>& parts, const Catalogue& catalogue) {
  Table table({{.name = "kind", .key = "kind", .align = Align::Left},
               {.name = "part", .key = "part", .align = Align::Left},
               {.name = "values", .key = "values", .align = Align::Left},
               {.name = "base", .key = "base", .align = Align::Left}});
  for (const ListedPart& part : parts) {
    const std::string& base = catalogue.base_of(part.name);
    table.add_row({Cell::of(part.kind), Cell::of(part.name), Cell::of(part.values),
                   Cell::any(base == part.name ? "" : base)});
  }
  Document document;
  document.add(NamedTable{.key = "parts", .table = std::move(table)});
  return document;
}

std::string text_of(const ConfigNode& node) {
  if (!node.is_sequence()) {
    return node.as_string();
  }
  std::vector<std::string> items;
  for (const ConfigNode& item : node.items()) {
    items.push_back(text_of(item));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

// Rows of the values of a part of the catalogue, as its file has them.
void add_values(const ConfigNode& node, const std::string& prefix, const ConfigNode& sources,
                Table& table) {
  for (const auto& [key, value] : node.entries()) {
    if (!value.is_map()) {
      table.add_row({Cell::of(prefix + key), Cell::of(text_of(value)), Cell::none(), Cell::none()});
    } else if (const auto quoted = value.optional("value")) {
      std::string source = sources.required(value.required("source").as_string()).as_string();
      if (const auto note = value.optional("note")) {
        source += "; " + note->as_string();
      }
      table.add_row({Cell::of(prefix + key), Cell::of(text_of(*quoted)),
                     Cell::of(value.required("evidence").as_string()), Cell::of(source)});
    } else {
      add_values(value, prefix + key + ".", sources, table);
    }
  }
}

Document page_of(const ListedPart& part, const Catalogue& catalogue) {
  Table table({{.name = "key", .key = "key", .align = Align::Left},
               {.name = "value", .key = "value", .align = Align::Left},
               {.name = "evidence", .key = "evidence", .align = Align::Left},
               {.name = "source", .key = "source", .align = Align::Left}});
  if (const auto own = catalogue.own().find(part.name); own != catalogue.own().end()) {
    for (const std::string& value : own->second.values) {
      const std::size_t equals = value.find(" = ");
      table.add_row(
          {Cell::of(value.substr(0, equals)), Cell::of(value.substr(equals + 3)), Cell::of("user"),
           Cell::of(fmt::format("{}{}{}", own->second.place, own->second.source.empty() ? "" : ": ",
                                own->second.source))});
    }
  }
  const std::string& base = catalogue.base_of(part.name);
  ConfigDocument file =
      ConfigDocument::load(catalogue.folder() / fmt::format("{}.yaml", part.kind));
  if (const auto values = file.root().required(part.kind).optional(base)) {
    add_values(*values, "", file.root().required("sources"), table);
  }
  Document document{.heading = {part.name}};
  if (base != part.name) {
    document.heading.push_back(fmt::format("a variant of {}, whose values follow its own", base));
  }
  document.add(NamedTable{.key = "values", .table = std::move(table)});
  return document;
}

int run_parts(const OptionReader& reader, std::ostream& out) {
  const ResultTarget target = result_target(reader);
  Catalogue catalogue = load_default_catalogue();
  for (const std::string& own : reader.texts("parts")) {
    catalogue.add(std::filesystem::path(own));
  }
  std::vector<ListedPart> parts = all_parts(catalogue);
  const std::optional<std::string> wanted = reader.text("part");
  if (!wanted || std::ranges::find(kPartKinds, *wanted) != kPartKinds.end()) {
    std::erase_if(parts, [&](const ListedPart& part) { return wanted && part.kind != *wanted; });
    write_result(target, with_effects(reader, list_of(parts, catalogue), RunCounts()), out);
    return 0;
  }
  const auto found = std::ranges::find(parts, *wanted, &ListedPart::name);
  if (found == parts.end()) {
    std::vector<std::string> names(kPartKinds.begin(), kPartKinds.end());
    for (const ListedPart& part : parts) {
      names.push_back(part.name);
    }
    throw ConfigError(fmt::format("parts: expected a part or a kind of parts, found {}{}",
                                  in_quotes(*wanted),
                                  did_you_mean(*wanted, names, "; trainyard parts lists them")));
  }
  write_result(target, with_effects(reader, page_of(*found, catalogue), RunCounts()), out);
  return 0;
}

}  // namespace

Command parts_command() {
  return {
      .name = "parts",
      .form = "parts [KIND|NAME]",
      .summary = "parts that cluster files may name, their values and sources",
      .usage = "parts [KIND|NAME] [options]",
      .arguments = {{.name = "part", .traits = {.role = Role::Input, .names = "part-kinds parts"}}},
      .options = joined({Options{parts_option()}, output_options()}),
      .example = kPartsExample,
      .run = run_parts};
}

}  // namespace trainyard
