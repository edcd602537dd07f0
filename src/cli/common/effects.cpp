// SPDX-License-Identifier: Apache-2.0
#include "cli/common/effects.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
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

// Options that say what is run, how much of it, or what is shown: without them a run may be many
// times as large, or another one.
constexpr std::array<std::string_view, 22> kOfRun{
    "algo",     "best",          "cluster",  "compare", "fidelity", "fingerprint",
    "from",     "gpus-per-node", "groups",   "job",     "links",    "matrix",
    "maxbytes", "method",        "minbytes", "nodes",   "ranks",    "runtime",
    "size",     "stepfactor",    "to",       "workload"};

// The most that `auto` adds, in microseconds of one core: one second.
constexpr std::uint64_t kMostAdded = 1'000'000;

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
  return name == "threads" || name == "log-level" || name == "effects" || name == "fast-forward";
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

struct FileKey {
  std::string text;  // "mine.yaml:4: fabric.cable"
  std::string path;
};

// Keeps the keys that can be left out one by one. Those beside a base are none: without them the
// base has its say.
void collect_keys(const ConfigNode& node, const std::string& path, std::vector<FileKey>& keys) {
  const auto below = [&](const std::string& key) {
    return path.empty() ? key : fmt::format("{}.{}", path, key);
  };
  if (node.is_sequence()) {
    const std::vector<ConfigNode> items = node.items();
    if (!items.empty() && std::ranges::all_of(items, &ConfigNode::is_map)) {
      for (std::size_t index = 0; index < items.size(); ++index) {
        collect_keys(items[index], below(std::to_string(index)), keys);
      }
      return;
    }
  }
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
      collect_keys(value, below(key), keys);
    }
  }
}

// A file that may be the user's own, and the option by which its keys are changed.
struct KeyedFile {
  std::filesystem::path file;
  std::string option = "set";
  std::string prefix = {};  // "model.", where the file stands there.
};

std::vector<KeyedFile> keyed_files(const OptionReader& reader) {
  std::vector<KeyedFile> files;
  if (reader.given("cluster")) {
    files.push_back({find_config("clusters", *reader.text("cluster"))});
  }
  if (reader.given("workload")) {
    files.push_back({find_workload(*reader.text("workload"))});
  }
  if (reader.given("model")) {
    files.push_back({.file = find_model(*reader.text("model")), .prefix = "model."});
  }
  if (reader.command().find("set-traffic") != nullptr && reader.given("file")) {
    files.push_back(
        {.file = find_config("traffic", *reader.text("file")), .option = "set-traffic"});
  }
  std::erase_if(files, [&](const KeyedFile& keyed) {
    std::error_code error;  // Ignored: what has no path from there is not of there.
    const std::filesystem::path place =
        std::filesystem::relative(keyed.file, configs_folder(), error);
    const bool is_shipped = !place.empty() && *place.begin() != "..";
    return is_shipped || keyed.file.extension() != ".yaml" ||
           reader.command().find(keyed.option) == nullptr;
  });
  return files;
}

// Returns the keys of the user's own files as things whose runs leave them out.
std::vector<GivenThing> given_keys(const OptionReader& reader) {
  const OptionValues bare = bare_values(reader);
  std::vector<GivenThing> things;
  for (const KeyedFile& keyed : keyed_files(reader)) {
    std::vector<FileKey> keys;
    ConfigDocument document = ConfigDocument::load(keyed.file);
    collect_keys(document.root(), "", keys);
    for (FileKey& key : keys) {
      OptionValues others = bare;
      others[keyed.option].push_back(fmt::format("{}{}={}", keyed.prefix, key.path, kAbsent));
      things.push_back(
          {.text = std::move(key.text), .option = keyed.option, .others = std::move(others)});
    }
  }
  return things;
}

// Keeps the things without which a run has the same result.
void keep_idle(const OptionReader& reader, const std::string& result,
               std::vector<GivenThing>& things) {
  std::vector<char> is_idle(things.size());
  const unsigned threads = reader.command().find("threads") != nullptr ? read_threads(reader) : 0;
  run_tasks(things.size(), threads, "effects of options", [&](std::size_t index) {
    is_idle[index] = result_with(reader.command(), things[index].others) == result ? 1 : 0;
  });
  std::size_t index = 0;
  std::erase_if(things, [&](const GivenThing& /*thing*/) { return is_idle[index++] == 0; });
}

// Whether `auto` leaves it to `on`.
bool is_of_run(const OptionReader& reader, const GivenThing& thing) {
  return std::ranges::find(kOfRun, thing.option) != kOfRun.end() ||
         (thing.option == "model" && !reader.given("workload")) ||
         thing.text.starts_with("--set nodes=") || thing.text.starts_with("--set servers");
}

// Whether a note says so already, with the reason.
bool is_noted(const GivenThing& thing, const std::vector<std::string>& notes) {
  const std::string variable = thing.text.substr(thing.text.find(' ') + 1) + " has no effect";
  const std::string option = fmt::format("--{} did not influence the result", thing.option);
  return std::ranges::any_of(notes, [&](const std::string& note) {
    return note.starts_with(variable) || note.starts_with(option);
  });
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

// Returns the notes of `auto`.
std::vector<std::string> notes_of_auto(const OptionReader& reader, const Document& document,
                                       const std::optional<RunCounts>& counts) {
  // A copy, as the lines below read more options.
  const std::vector<std::string> told_apart(reader.reads().begin(), reader.reads().end());
  std::vector<GivenThing> idle;
  std::vector<GivenThing> untold;
  for (GivenThing& thing : given_things(reader)) {
    if (std::ranges::find(told_apart, thing.option) == told_apart.end() &&
        is_default(reader, thing)) {
      idle.push_back(std::move(thing));
    } else if (!is_of_run(reader, thing) && !is_noted(thing, document.notes)) {
      untold.push_back(std::move(thing));
    }
  }
  const bool is_cheap = counts && untold.size() * microseconds_of(*counts) <= kMostAdded;
  if (is_cheap) {
    keep_idle(reader, result_of(document), untold);
    std::ranges::move(untold, std::back_inserter(idle));
  }
  std::vector<std::string> notes = idle_note(reader, idle);
  if (!is_cheap && !untold.empty()) {
    const std::string what = untold.size() == 1
                                 ? escaped(untold.front().text)
                                 : fmt::format("{} of the things given", untold.size());
    notes.push_back(fmt::format(
        "whether {} had an effect was not tried; --effects on tries it, by a run for each", what));
  }
  return notes;
}

std::vector<std::string> notes_of_on(const OptionReader& reader, const Document& document) {
  std::vector<GivenThing> things = given_things(reader);
  std::ranges::move(given_keys(reader), std::back_inserter(things));
  keep_idle(reader, result_of(document), things);
  return idle_note(reader, things);
}

}  // namespace

Option effects_option(std::string_view needs) {
  return {"effects",
          "NAME",
          "name what was given and did not change the result: auto (the default), as far as that "
          "costs little; on, every option, key and variable, by a run for each; off, nothing",
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

// The times are estimates, from runs on one core of a server of 2026
// (docs/guide/reading-results.md).
std::uint64_t microseconds_of(const RunCounts& counts) {
  constexpr std::uint64_t kGpu = 100;
  constexpr std::uint64_t kCommunicator = 40'000;
  constexpr std::uint64_t kRankCall = 75;
  constexpr std::uint64_t kEvent = 1;
  return kGpu * counts.gpus + kCommunicator * counts.communicators + kRankCall * counts.rank_calls +
         kEvent * counts.events;
}

Document with_effects(const OptionReader& reader, Document document,
                      const std::optional<RunCounts>& counts) {
  if (std::string* const result = reader.observed()) {
    *result = result_of(document);
    return document;
  }
  const std::string mode = reader.word("effects");
  const bool is_csv = reader.given("format") ? reader.word("format") == "csv"
                                             : reader.text("output").value_or("").ends_with(".csv");
  std::vector<std::string> notes;
  if (mode == "on") {
    notes = notes_of_on(reader, document);
  } else if (mode == "auto" && !is_csv) {
    notes = notes_of_auto(reader, document, counts);
  }
  if (is_csv && reader.command().find("log-level") != nullptr) {
    spdlog::logger log = make_logger(reader);
    log_warnings(log, notes);
  }
  document.notes.insert(document.notes.end(), notes.begin(), notes.end());
  keep_result(reader, document);
  return document;
}

void keep_result(const OptionReader& reader, const Document& document) {
  if (KeptResult* const kept = reader.kept()) {
    kept->rendered = [document](Format format) { return render(document, format); };
  }
}

}  // namespace trainyard
