// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/comparisons.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/measured/trace_breakdown.h"
#include "cli/common/common.h"
#include "cli/common/inputs.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/trace_import/kineto_events.h"
#include "parallelism/workload/workload.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/json_complaint.h"
#include "sim/printable.h"
#include "sim/yaml_names.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxResultBytes = std::size_t{256} << 20U;
constexpr std::size_t kMaxTraceBytes = std::size_t{4096} << 20U;
// 46 days: only damaged numbers are longer, and differences of two fit in a SimTime.
constexpr SimTime kMaxTime = microseconds(4'000'000'000'000);

[[noreturn]] void fail(const std::string& file, std::string_view key, std::string_view expected,
                       std::string_view found) {
  throw ConfigError(fmt::format("{}: {}: expected {}, found {}", file, key, expected, found));
}

enum class ResultKind { Step, Collective };

struct Result {
  std::string file;
  ordered_json json;
  ResultKind kind = ResultKind::Step;
};

// Figures with units are text, in which only a run that went wrong has "-nan GB/s" or "inf".
void refuse_no_numbers(const std::string& file, const std::string& key, const ordered_json& json) {
  if (json.is_string()) {
    const std::string text = lower_case(json.get<std::string>());
    const std::string word = text.substr(0, text.find(' '));
    const std::string first = word.substr(word.starts_with('-') ? 1 : 0);
    if (first == "nan" || first == "inf") {
      fail(file, key, "a number", in_quotes(text));
    }
    return;
  }
  if (!json.is_structured()) {
    return;  // Its items() are itself.
  }
  for (const auto& [name, child] : json.items()) {
    refuse_no_numbers(file, key.empty() ? escaped(name) : key + "." + escaped(name), child);
  }
}

Result load_result(const std::string& file) {
  Result result{.file = file, .json = {}};
  const std::string text = read_file(file, kMaxResultBytes);
  check_json_depth(file, text);
  try {
    result.json = ordered_json::parse(text);
  } catch (const ordered_json::exception& problem) {
    fail_json(file, text, problem);
  }
  refuse_no_numbers(file, "", result.json);
  if (result.json.is_object() && result.json.contains("breakdown_ps")) {
    result.kind = ResultKind::Step;
  } else if (result.json.is_object() && result.json.contains("operation") &&
             result.json.contains("rows")) {
    result.kind = ResultKind::Collective;
  } else {
    fail(file, "breakdown_ps", "a result of trainyard step or collective with --format json",
         "none");
  }
  return result;
}

std::string text_of(const ordered_json& value) {
  if (value.is_number_float()) {
    return fmt::format("{:.6g}", value.get<double>());
  }
  return value.is_string() ? escaped(value.get<std::string>())
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

using Flat = std::vector<std::pair<std::string, std::string>>;

// "plan.tensor"; elements of lists as one text, settings by their keys.
void flatten(const ordered_json& value, const std::string& path, Flat& flat) {
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      flatten(child, path.empty() ? escaped(key) : path + "." + escaped(key), flat);
    }
    return;
  }
  flat.emplace_back(path, text_of(value));
}

void flatten_settings(const ordered_json& settings, Flat& flat) {
  for (const ordered_json& each : settings) {
    const std::string text = text_of(each);
    const std::size_t sign = text.find('=');
    flat.emplace_back("--set " + text.substr(0, sign),
                      sign == std::string::npos ? "" : text.substr(sign + 1));
  }
}

std::vector<ComparedValue> changed_values(const Flat& before, const Flat& after) {
  const auto value_in = [](const Flat& flat, const std::string& key) {
    const auto found = std::find_if(flat.begin(), flat.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    return found == flat.end() ? std::string() : found->second;
  };
  std::vector<ComparedValue> changed;
  for (const auto& [key, value] : before) {
    const std::string other = value_in(after, key);
    if (other != value) {
      changed.push_back({.key = key, .before = value, .after = other});
    }
  }
  for (const auto& [key, value] : after) {
    const bool is_new =
        std::none_of(before.begin(), before.end(),
                     [&, name = key](const auto& each) { return each.first == name; });
    if (is_new) {
      changed.push_back({.key = key, .after = value});
    }
  }
  return changed;
}

constexpr std::array<std::string_view, 21> kInputs{
    "cluster",  "gpus",      "workload", "model", "software",      "precision",     "runtime",
    "fidelity", "method",    "traffic",  "plan",  "overlap",       "routing",       "slow_rank",
    "jitter",   "operation", "ranks",    "nodes", "gpus_per_node", "compute_scale", "options"};
constexpr std::array<std::string_view, 13> kFigures{"tokens_per_s",
                                                    "tokens_per_s_per_gpu",
                                                    "images_per_s",
                                                    "images_per_s_per_gpu",
                                                    "samples_per_s",
                                                    "samples_per_s_per_gpu",
                                                    "model_tflops_per_gpu",
                                                    "mfu",
                                                    "hfu",
                                                    "memory_peak_gib",
                                                    "memory_size_gib",
                                                    "memory_fits",
                                                    "mfu_peak_tflops"};

template <std::size_t kCount>
Flat chosen(const ordered_json& json, const std::array<std::string_view, kCount>& keys) {
  Flat flat;
  for (const std::string_view key : keys) {
    if (json.contains(key)) {
      flatten(json[std::string(key)], std::string(key), flat);
    }
  }
  return flat;
}

Flat inputs_of(const Result& result) {
  Flat flat = chosen(result.json, kInputs);
  if (result.json.contains("settings") && result.json["settings"].is_array()) {
    flatten_settings(result.json["settings"], flat);
  }
  return flat;
}

Flat resources_in(const Result& result) {
  Flat flat;
  if (result.json.contains("resources")) {
    flatten(result.json["resources"], "", flat);
  }
  return flat;
}

SimTime picoseconds_at(const std::string& file, std::string_view key, const ordered_json& value,
                       SimTime min, SimTime max) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < min.picoseconds() ||
      value.get<std::int64_t>() > max.picoseconds()) {
    fail(file, key,
         fmt::format("a whole number of picoseconds from {} to {}", min.picoseconds(),
                     max.picoseconds()),
         text_of(value));
  }
  return SimTime(value.get<std::int64_t>());
}

struct StepResult {
  SimTime time;
  std::vector<std::pair<std::string, SimTime>> parts = {};
};

StepResult step_of(const Result& result) {
  if (result.kind != ResultKind::Step) {
    fail(result.file, "breakdown_ps", "the result of a step", "that of a collective");
  }
  const ordered_json& json = result.json;
  const std::string key = json.contains("step_time_ps") ? "step_time_ps" : "time_ps";
  if (!json.contains(key) || !json["breakdown_ps"].is_object()) {
    fail(result.file, key, "the time of a step and its parts", "none");
  }
  StepResult step{.time = picoseconds_at(result.file, key, json[key], picoseconds(1), kMaxTime)};
  SimTime sum;
  for (const auto& [name, value] : json["breakdown_ps"].items()) {
    const SimTime part =
        picoseconds_at(result.file, "breakdown_ps." + escaped(name), value, SimTime(), step.time);
    if (part > step.time - sum) {
      fail(result.file, "breakdown_ps",
           fmt::format("parts that add up to {} ps", step.time.picoseconds()), "more");
    }
    step.parts.emplace_back(escaped(name), part);
    sum += part;
  }
  if (sum != step.time) {
    fail(result.file, "breakdown_ps",
         fmt::format("parts that add up to {} ps", step.time.picoseconds()),
         fmt::format("{} ps", sum.picoseconds()));
  }
  return step;
}

// Parts of both, those of the first in front.
std::vector<ComparedPart> paired(const StepResult& before, const StepResult& after) {
  std::vector<ComparedPart> parts;
  for (const auto& [name, time] : before.parts) {
    parts.push_back({.name = name, .before = time});
  }
  for (const auto& entry : after.parts) {
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const ComparedPart& part) {
      return part.name == entry.first;
    });
    if (found == parts.end()) {
      parts.push_back({.name = entry.first, .after = entry.second});
    } else {
      found->after = entry.second;
    }
  }
  return parts;
}

struct RowTime {
  SimTime time;
  std::string how;
};

SimTime row_time(const std::string& file, const ordered_json& value) {
  const double time = value.get<double>();
  const double max = static_cast<double>(kMaxTime.picoseconds()) / 1e6;
  if (!(time >= 1e-6 && time <= max)) {
    fail(file, "time_us", fmt::format("a time from 1e-06 to {:g}", max), text_of(value));
  }
  return SimTime(std::llround(time * 1e6));
}

// Returns the rows by size; of several algorithms the fastest.
std::map<std::int64_t, RowTime> rows_of(const Result& result) {
  std::map<std::int64_t, RowTime> rows;
  if (!result.json["rows"].is_array()) {
    fail(result.file, "rows", "a list", "something else");
  }
  for (const ordered_json& row : result.json["rows"]) {
    if (!row.is_object() || !row.contains("size_bytes") || !row.contains("time_us") ||
        !row["size_bytes"].is_number_integer() || !row["time_us"].is_number()) {
      fail(result.file, "rows", "size_bytes and time_us in each", text_of(row));
    }
    RowTime made{.time = row_time(result.file, row["time_us"]), .how = {}};
    made.how = row.contains("algorithm") ? text_of(row["algorithm"]) : "";
    const std::string protocol = row.contains("protocol") ? text_of(row["protocol"]) : "-";
    made.how += protocol == "-" ? "" : " " + protocol;
    if (row.contains("channels")) {
      made.how += ", " + text_of(row["channels"]) + " channels";
    }
    const auto [entry, is_new] = rows.emplace(row["size_bytes"].get<std::int64_t>(), made);
    if (!is_new && made.time < entry->second.time) {
      entry->second = made;
    }
  }
  return rows;
}

void add_collectives(const Result& before, const Result& after, RunComparison& comparison) {
  const auto first = rows_of(before);
  const auto second = rows_of(after);
  std::size_t alone = 0;
  for (const auto& [size, row] : first) {
    const auto other = second.find(size);
    if (other == second.end()) {
      ++alone;
      continue;
    }
    comparison.times.push_back({.label = to_string(Bytes(size)),
                                .before_how = row.how,
                                .after_how = other->second.how,
                                .before = row.time,
                                .after = other->second.time});
  }
  alone += second.size() - comparison.times.size();
  if (comparison.times.empty()) {
    fail(after.file, "rows", "a size that " + before.file + " has", "none");
  }
  if (alone > 0) {
    comparison.notes.push_back(fmt::format("left out: {} sizes that only one of both has", alone));
  }
}

SimTime sum_of(const StepResult& step, std::initializer_list<StepPart> parts) {
  SimTime sum;
  for (const StepPart part : parts) {
    for (const auto& [name, time] : step.parts) {
      sum += name == to_string(part) ? time : SimTime();
    }
  }
  return sum;
}

struct ReadFile {
  std::filesystem::path path;
  bool is_workload = false;
  Flat keys = {};  // In file order.
};

// A key that clusters do not have.
bool has_model(ConfigDocument& document) {
  const ConfigNode root = document.root();
  return root.is_map() && root.optional("model").has_value();
}

void flatten(const ConfigNode& node, const std::string& path, Flat& flat) {
  if (node.is_map()) {
    for (const auto& [key, child] : node.entries()) {
      flatten(child, path.empty() ? key : path + "." + key, flat);
    }
  } else if (node.is_sequence()) {
    std::size_t index = 0;
    for (const ConfigNode& item : node.items()) {
      flatten(item, fmt::format("{}.{}", path, index++), flat);
    }
  } else {
    flat.emplace_back(path, node.is_scalar() ? node.as_string() : node.found());
  }
}

std::filesystem::path find_file(const std::string& name) {
  const std::vector<std::string> workloads = yaml_names_in(configs_folder() / "workloads");
  const bool is_workload = std::find(workloads.begin(), workloads.end(), name) != workloads.end();
  return find_config(is_workload ? "workloads" : "clusters", name);
}

ReadFile read(const std::string& name) {
  ReadFile file{.path = find_file(name)};
  ConfigDocument document = ConfigDocument::load(file.path);
  file.is_workload = has_model(document);
  // Parts of the catalogue and models by name stay names; a server is what it is made of.
  if (file.is_workload) {
    static_cast<void>(load_workload(file.path, configs_folder() / "workloads" / "models"));
  }
  flatten(document.root(), "", file.keys);
  return file;
}

}  // namespace

RunComparison compare_results(const std::string& before, const std::string& after) {
  const Result first = load_result(before);
  const Result second = load_result(after);
  if (first.kind != second.kind) {
    throw ConfigError(
        fmt::format("compare: expected two results of one command, found a step and a collective"));
  }
  RunComparison comparison{
      .what = first.kind == ResultKind::Step ? "steps" : "collectives",
      .before = before,
      .after = after,
      .inputs = changed_values(inputs_of(first), inputs_of(second)),
      .resources = changed_values(resources_in(first), resources_in(second)),
      .figures = changed_values(chosen(first.json, kFigures), chosen(second.json, kFigures))};
  if (first.kind == ResultKind::Collective) {
    add_collectives(first, second, comparison);
    return comparison;
  }
  const StepResult step = step_of(first);
  const StepResult other = step_of(second);
  comparison.times.push_back(
      {.label = "step", .before = step.time, .after = other.time, .parts = paired(step, other)});
  return comparison;
}

RunComparison compare_with_trace(const std::string& result, const std::string& trace, int steps) {
  const StepResult step = step_of(load_result(result));
  const KinetoTrace events = read_kineto_events(
      {.name = trace, .rank = std::nullopt, .text = read_file(trace, kMaxTraceBytes)});
  const TraceBreakdown measured = breakdown_of(events, steps);
  const SimTime computation =
      sum_of(step, {StepPart::Linear, StepPart::Attention, StepPart::MemoryBound, StepPart::Casts,
                    StepPart::Head, StepPart::Recompute, StepPart::Optimizer});
  const SimTime traffic = sum_of(step, {StepPart::Tensor, StepPart::Context, StepPart::Expert,
                                        StepPart::Data, StepPart::Offload, StepPart::Pipeline});
  RunComparison comparison{
      .what = "a predicted step and a measured one",
      .before = result,
      .after = fmt::format("{}, {} operations of the GPU{}", trace, events.events.size(),
                           steps > 1 ? fmt::format(", {} steps", steps) : "")};
  comparison.times.push_back(
      {.label = "step",
       .before = step.time,
       .after = measured.time,
       .parts = {
           {.name = "computation", .before = computation, .after = measured.computation},
           {.name = "traffic that shows", .before = traffic, .after = measured.shown_traffic()},
           {.name = "waiting",
            .before = step.time - computation - traffic,
            .after = measured.idle}}});
  for (const TraceBreakdown::Traffic& each : measured.traffic) {
    comparison.notes.push_back(
        fmt::format("measured, {} alone: {:.6f} s", each.operation, each.time.seconds()));
  }
  comparison.notes.emplace_back(
      "a collective or message that waits for a late rank is traffic in a trace, and a bubble or "
      "jitter in the prediction");
  return comparison;
}

RunComparison compare_files(const std::string& before, const std::string& after) {
  const ReadFile first = read(before);
  const ReadFile second = read(after);
  if (first.is_workload != second.is_workload) {
    throw ConfigError(fmt::format(
        "compare: expected two clusters or two workloads, found a cluster and a workload"));
  }
  RunComparison comparison{.what = first.is_workload ? "workloads" : "clusters",
                           .before = before,
                           .after = after,
                           .inputs = changed_values(first.keys, second.keys)};
  if (!first.is_workload) {
    const Catalogue& catalogue = load_default_catalogue();
    const auto resources = [&](const ReadFile& file) {
      const Cluster cluster = load_cluster(file.path, catalogue, {});
      Flat all = run_inputs(cluster, {}).resources;
      all.emplace_back("gpus", std::to_string(cluster.gpus.size()));
      return all;
    };
    comparison.resources = changed_values(resources(first), resources(second));
  }
  return comparison;
}

}  // namespace trainyard
