// SPDX-License-Identifier: Apache-2.0
#include "cli/common/effects.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "cli/common/common.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/runtime.h"
#include "report/formats/json.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

// Keys of JSON that say again what was asked for.
constexpr std::array<std::string_view, 31> kSaidAgain{
    "all_at_once", "both_ways",   "cluster",    "compute_scale", "estimates", "factor",
    "fidelity",    "fingerprint", "format",     "gpus_per_node", "header",    "jitter",
    "kind",        "method",      "model",      "nodes",         "notes",     "options",
    "overlap",     "plan",        "precision",  "resources",     "routing",   "routing_seed",
    "runtime",     "settings",    "size_bytes", "slow_rank",     "software",  "traffic",
    "workload"};

// Empties what rows have beside results: why NCCL chose, the hash of the events, the root itself.
void empty_remarks(Json& value) {
  for (auto& [key, part] : value.items()) {
    if (part.is_structured()) {
      empty_remarks(part);
    } else if (value.is_object() && (key == "fingerprint" || key == "reason" || key == "root")) {
      part = nullptr;
    }
  }
}

// Returns what two runs must have alike for an option to be without effect.
std::string result_of(const Document& document) {
  Json json = Json::parse(render(document, Format::Json));
  for (const std::string_view key : kSaidAgain) {
    json.erase(std::string(key));
  }
  empty_remarks(json);
  std::string result = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const Document::Entry& entry : document.entries) {
    if (const auto* const lines = std::get_if<Lines>(&entry)) {
      result += fmt::format("\n{}\n{}", lines->title, fmt::join(lines->lines, "\n"));
    }
  }
  return result;
}

// Options that never change a result.
bool is_of_effort(std::string_view name) {
  return name == "threads" || name == "log-level" || name == "effects";
}

// Returns the values given, as a run has them that writes nothing but its result.
OptionValues bare_values(const OptionReader& reader) {
  OptionValues values;
  const Command& command = reader.command();
  for (const Option& row : joined({command.arguments, command.options})) {
    const bool is_given = reader.given(row.name) && reader.reason(row.name).empty();
    if (is_given && row.traits.role != Role::Result && row.name != "effects") {
      values[std::string(row.name)] = reader.texts(row.name);
    }
  }
  if (command.find("log-level") != nullptr) {
    values["log-level"] = {"off"};
  }
  const OptionReader bare(command, values);
  // Some options are for a file alone, such as --sample-every for --samples.
  for (const Option& row : command.options) {
    if (bare.given(row.name) && !has_needs(bare, row) && has_needs(reader, row)) {
      values.erase(std::string(row.name));
    }
  }
  return values;
}

// Returns the result of a run with these values, or why there is none.
std::string result_with(const Command& command, const OptionValues& values) {
  std::string result;
  OptionReader reader(command, values, &result);
  std::ostringstream unread;
  try {
    check_rules(reader);
    assume_runtime(reader);
    (void)command.run(reader, unread);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return result;
}

// Whether a run without it has the same value for it.
bool is_default(const OptionReader& reader, const GivenThing& thing) {
  if (reader.command().find(thing.option)->traits.choices.empty()) {
    return false;
  }
  OptionReader without(reader.command(), thing.others);
  try {
    check_rules(without);
  } catch (const ConfigError&) {
    return false;
  }
  assume_runtime(without);
  return without.chosen(thing.option) == reader.chosen(thing.option);
}

// Returns the things that are known to be idle without a run: they have the value of their default,
// and the command could not tell.
std::vector<GivenThing> idle_defaults(const OptionReader& reader) {
  const std::set<std::string, std::less<>> told_apart = reader.reads();
  std::vector<GivenThing> idle = given_things(reader);
  std::erase_if(idle, [&](const GivenThing& thing) {
    return told_apart.contains(thing.option) || !is_default(reader, thing);
  });
  return idle;
}

struct FileKey {
  std::string text;  // "mine.yaml:4: fabric.cable"
  std::string path;
};

// Keeps the keys that can be left out one by one. Those beside a base are none: without them the
// base has its say.
void collect_keys(const ConfigNode& node, const std::string& path, std::vector<FileKey>& keys) {
  if (!node.is_map()) {
    const std::string place = node.place();
    keys.push_back({fmt::format("{}: {}", place.substr(0, place.rfind(':')), path), path});
    return;
  }
  if (node.optional("base")) {
    return;
  }
  for (const auto& [key, value] : node.entries()) {
    if (key != "name" && key != "title" && key != "source") {
      collect_keys(value, path.empty() ? key : fmt::format("{}.{}", path, key), keys);
    }
  }
}

// Returns the keys of the cluster and the workload, where these are files of the user.
std::vector<FileKey> keys_of_files(const OptionReader& reader) {
  std::vector<std::filesystem::path> files;
  if (reader.given("cluster")) {
    files.push_back(find_config("clusters", *reader.text("cluster")));
  }
  if (reader.given("workload")) {
    files.push_back(find_workload(*reader.text("workload")));
  }
  std::vector<FileKey> keys;
  for (const std::filesystem::path& file : files) {
    std::error_code error;  // Ignored: what has no path from there is not of there.
    const std::filesystem::path place = std::filesystem::relative(file, configs_folder(), error);
    const bool is_shipped = !place.empty() && *place.begin() != "..";
    if (file.extension() == ".yaml" && !is_shipped) {
      ConfigDocument document = ConfigDocument::load(file);
      collect_keys(document.root(), "", keys);
    }
  }
  return keys;
}

// Returns the keys of files as things whose runs leave them out by --set.
std::vector<GivenThing> given_keys(const OptionReader& reader) {
  std::vector<GivenThing> things;
  if (reader.command().find("set") == nullptr) {
    return things;
  }
  const OptionValues bare = bare_values(reader);
  for (FileKey& key : keys_of_files(reader)) {
    OptionValues others = bare;
    others["set"].push_back(fmt::format("{}={}", key.path, kAbsent));
    things.push_back({.text = std::move(key.text), .option = "set", .others = std::move(others)});
  }
  return things;
}

// Returns those without which a run has the same result.
std::vector<GivenThing> idle_in_runs(const OptionReader& reader, const std::string& result) {
  std::vector<GivenThing> things = given_things(reader);
  for (GivenThing& key : given_keys(reader)) {
    things.push_back(std::move(key));
  }
  std::vector<std::string> results(things.size());
  run_tasks(things.size(), 0, "effects of options", [&](std::size_t index) {
    results[index] = result_with(reader.command(), things[index].others);
  });
  std::vector<GivenThing> idle;
  for (std::size_t index = 0; index < things.size(); ++index) {
    if (results[index] == result) {
      idle.push_back(things[index]);
    }
  }
  return idle;
}

// Returns one note for all; nothing where there are none.
std::vector<std::string> idle_note(const OptionReader& reader,
                                   const std::vector<GivenThing>& idle) {
  std::vector<std::string> texts;
  for (const GivenThing& thing : idle) {
    texts.push_back(escaped(thing.text) + (is_default(reader, thing) ? " (the default)" : ""));
  }
  return texts.empty() ? std::vector<std::string>()
                       : std::vector{fmt::format("without effect: {}", fmt::join(texts, ", "))};
}

}  // namespace

Option effects_option(std::string_view needs) {
  return {"effects",
          "NAME",
          "name what was given and did not change the result: auto (the default), options equal to "
          "their default; on, every option, key and variable, by a run for each; off, nothing",
          {.role = Role::Result, .choices = "auto|on|off", .needs = needs}};
}

std::vector<GivenThing> given_things(const OptionReader& reader) {
  const OptionValues bare = bare_values(reader);
  std::vector<GivenThing> things;
  for (const Option& row : reader.command().options) {
    const std::string name(row.name);
    const auto given = bare.find(name);
    if (given == bare.end() || is_of_effort(name)) {
      continue;
    }
    for (std::size_t index = 0; index < given->second.size(); ++index) {
      OptionValues others = bare;
      std::vector<std::string>& rest = others[name];
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(index));
      if (rest.empty()) {
        others.erase(name);
      }
      const std::string& value = given->second[index];
      things.push_back({.text = fmt::format("--{}{}{}", name, value.empty() ? "" : " ", value),
                        .option = name,
                        .others = std::move(others)});
    }
  }
  return things;
}

Document with_effects(const OptionReader& reader, Document document) {
  if (std::string* const result = reader.observed()) {
    *result = result_of(document);
    return document;
  }
  const std::string mode = reader.word("effects");
  const std::vector<std::string> notes =
      mode == "on"     ? idle_note(reader, idle_in_runs(reader, result_of(document)))
      : mode == "auto" ? idle_note(reader, idle_defaults(reader))
                       : std::vector<std::string>();
  const bool is_csv = reader.given("format") ? reader.word("format") == "csv"
                                             : reader.text("output").value_or("").ends_with(".csv");
  if (is_csv && mode == "on" && reader.command().find("log-level") != nullptr) {
    spdlog::logger log = make_logger(reader);
    log_warnings(log, notes);
  }
  document.notes.insert(document.notes.end(), notes.begin(), notes.end());
  return document;
}

}  // namespace trainyard
