// SPDX-License-Identifier: Apache-2.0
#include "calibration/machine/harness_set.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/config_error.h"
#include "sim/json_complaint.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

using JsonValue = nlohmann::json;

const JsonValue& member(const JsonValue& json, const char* key, const std::string& place) {
  if (!json.is_object() || !json.contains(key)) {
    throw ConfigError(fmt::format("{}: expected the key \"{}\", found none", place, key));
  }
  return json.at(key);
}

std::string text_in(const JsonValue& json, const char* key, const std::string& place) {
  const JsonValue& value = member(json, key, place);
  if (!value.is_string()) {
    throw ConfigError(
        fmt::format("{}.{}: expected text, found {}", place, key, in_quotes(value.dump())));
  }
  return value.get<std::string>();
}

double number_in(const JsonValue& json, const char* key, const std::string& place) {
  const JsonValue& value = member(json, key, place);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    throw ConfigError(
        fmt::format("{}.{}: expected a number, found {}", place, key, in_quotes(value.dump())));
  }
  return value.get<double>();
}

const JsonValue& list_in(const JsonValue& json, const char* key, const std::string& place) {
  const JsonValue& value = member(json, key, place);
  if (!value.is_array()) {
    throw ConfigError(
        fmt::format("{}.{}: expected a list, found {}", place, key, in_quotes(value.dump())));
  }
  return value;
}

HarnessSample read_sample(const JsonValue& json, const std::string& id, const std::string& place) {
  HarnessSample sample{.id = id,
                       .quantity = text_in(json, "quantity", place),
                       .unit = text_in(json, "unit", place),
                       .parameters = {},
                       .median = number_in(json, "median", place),
                       .p10 = number_in(json, "p10", place),
                       .p90 = number_in(json, "p90", place)};
  const JsonValue& parameters = member(json, "parameters", place);
  if (!parameters.is_object()) {
    throw ConfigError(fmt::format("{}.parameters: expected an object, found {}", place,
                                  in_quotes(parameters.dump())));
  }
  for (const auto& [key, value] : parameters.items()) {
    if (value.is_number()) {
      sample.parameters[key] = value.get<double>();
    } else if (value.is_string()) {
      sample.parameters[key] = value.get<std::string>();
    }
  }
  if (!(sample.p10 <= sample.median && sample.median <= sample.p90)) {
    throw ConfigError(fmt::format("{}: expected p10 <= median <= p90, found {}, {} and {}", place,
                                  sample.p10, sample.median, sample.p90));
  }
  return sample;
}

void read_measurement(const JsonValue& json, const std::string& place, const std::string& name,
                      HarnessSet& set) {
  const std::string id = text_in(json, "id", place);
  const std::string status = text_in(json, "status", place);
  if (status != "measured" && status != "not measured") {
    set.warnings.push_back(
        fmt::format("{}: {} {}: {}", name, id, status, shortened(text_in(json, "reason", place))));
  }
  std::size_t number = 0;
  for (const JsonValue& sample : list_in(json, "samples", place)) {
    set.samples.push_back(read_sample(sample, id, fmt::format("{}.samples[{}]", place, number)));
    ++number;
  }
}

HarnessSet read_set(const JsonValue& json, const std::string& name) {
  if (number_in(json, "version", name) != 1.0) {
    throw ConfigError(fmt::format("{}: version: expected 1, found {}", name,
                                  in_quotes(json.at("version").dump())));
  }
  HarnessSet set;
  if (text_in(json, "backend", name) != "cuda") {
    set.warnings.push_back(fmt::format("{}: of the backend {}: of no machine", name,
                                       in_quotes(text_in(json, "backend", name))));
  }
  const JsonValue& complete = member(json, "complete", name);
  if (!complete.is_boolean() || !complete.get<bool>()) {
    set.warnings.push_back(
        fmt::format("{}: the run did not come to its end (--resume continues with it)", name));
  }
  const JsonValue& options = member(json, "options", name);
  set.repetitions = static_cast<int>(number_in(options, "repetitions", name + ": options"));
  set.warmup = static_cast<int>(number_in(options, "warmup", name + ": options"));
  const JsonValue& machine = member(json, "machine", name);
  set.nccl = text_in(machine, "nccl", name + ": machine");
  for (const JsonValue& gpu : list_in(machine, "gpus", name + ": machine")) {
    set.gpus.push_back(text_in(gpu, "name", name + ": machine.gpus"));
  }
  std::size_t number = 0;
  for (const JsonValue& one : list_in(json, "measurements", name)) {
    read_measurement(one, fmt::format("{}: measurements[{}]", name, number), name, set);
    ++number;
  }
  return set;
}

void add_variables(const HarnessSample& sample, CalibrationTable& table) {
  for (const auto& [parameter, variable] :
       {std::pair{"algorithm", "NCCL_ALGO"}, std::pair{"protocol", "NCCL_PROTO"}}) {
    const std::string value = sample.text(parameter);
    if (!value.empty() && value != "default") {
      table.environment.emplace_back(variable, value);
    }
  }
  const auto channels = static_cast<int>(sample.number("forced_channels"));
  if (channels > 0) {
    table.environment.emplace_back("NCCL_MIN_NCHANNELS", std::to_string(channels));
    table.environment.emplace_back("NCCL_MAX_NCHANNELS", std::to_string(channels));
  }
}

// Adds copies of pinned memory and the most bytes.
void add_host_copies(const HarnessSet& set, PastedOutput& output) {
  for (const auto& [direction, test] : {std::pair{"to GPU", "host_to_device_memcpy_ce"},
                                        {"from GPU", "device_to_host_memcpy_ce"}}) {
    const HarnessSample* largest = nullptr;
    for (const HarnessSample& sample : set.samples) {
      if (sample.quantity == "host copy bandwidth" && sample.text("memory") == "pinned" &&
          sample.text("direction") == direction && sample.median > 0.0 &&
          (largest == nullptr || sample.number("bytes") > largest->number("bytes"))) {
        largest = &sample;
      }
    }
    if (largest != nullptr) {
      output.values.push_back({.test = test, .size = {}, .value = largest->median});
    }
  }
}

CalibrationTable table_of(const HarnessSet& set, const HarnessSample& sample, Operation operation,
                          const std::string& name) {
  CalibrationTable table{.file = name, .table = {}, .part = sample.id};
  table.table.source = "trainyard-calibrate";
  table.table.operation = operation;
  table.table.ranks = static_cast<int>(sample.number("ranks"));
  table.table.gpus_per_process = sample.text("mode") == "one process" ? *table.table.ranks : 1;
  table.nccl_version = set.nccl.empty() ? std::nullopt : std::optional(set.nccl);
  add_variables(sample, table);
  return table;
}

}  // namespace

double HarnessSample::number(const std::string& name) const {
  const auto found = parameters.find(name);
  const double* const value =
      found == parameters.end() ? nullptr : std::get_if<double>(&found->second);
  return value == nullptr ? 0.0 : *value;
}

std::string HarnessSample::text(const std::string& name) const {
  const auto found = parameters.find(name);
  const std::string* const value =
      found == parameters.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value == nullptr ? "" : *value;
}

bool is_harness_set(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\"trainyard-measurements\"") != std::string_view::npos;
}

HarnessSet parse_harness_set(const std::string& text, const std::string& name) {
  JsonValue json;
  check_json_depth(name, text);
  try {
    json = JsonValue::parse(text);
  } catch (const JsonValue::exception& error) {
    fail_json(name, text, error);
  }
  return read_set(json, name);
}

std::vector<CalibrationTable> collective_tables(const HarnessSet& set, const std::string& name) {
  std::vector<CalibrationTable> tables;
  std::map<std::pair<std::string, Operation>, std::size_t> places;
  for (const HarnessSample& sample : set.samples) {
    const std::string mode = sample.text("mode");
    const std::optional<Operation> operation = parse_operation(sample.text("operation"));
    const auto bytes = static_cast<std::int64_t>(sample.number("bytes"));
    const bool is_own = mode == "process per GPU" || mode == "one process" || mode == "network";
    if (sample.quantity != "collective time" || !is_own || !operation || bytes <= 0 ||
        sample.median <= 0.0 || sample.median > 1e9 || sample.number("ranks") < 2) {
      continue;
    }
    const auto [place, is_new] = places.try_emplace({sample.id, *operation}, tables.size());
    if (is_new) {
      tables.push_back(table_of(set, sample, *operation, name));
    }
    MeasuredRow row;
    row.size = Bytes(bytes);
    row.time = SimTime(std::llround(sample.median * 1e6));
    row.algbw_gbps = static_cast<double>(bytes) / sample.median / 1e3;
    row.busbw_gbps =
        row.algbw_gbps * bus_factor(*operation, static_cast<int>(sample.number("ranks")));
    tables[place->second].table.rows.push_back(row);
  }
  return tables;
}

PastedOutput copy_rates(const HarnessSet& set) {
  PastedOutput output{.tool = PastedTool::NvBandwidth, .values = {}, .warnings = {}};
  add_host_copies(set, output);
  for (const auto& [quantity, test] :
       {std::pair{"peer bandwidth", "device_to_device_memcpy_write_ce"},
        {"peer bandwidth both ways", "device_to_device_bidirectional_memcpy_write_ce total"}}) {
    for (const HarnessSample& sample : set.samples) {
      if (sample.quantity == quantity && sample.text("how") == "copy engine" &&
          sample.median > 0.0) {
        output.values.push_back({.test = test,
                                 .row = static_cast<int>(sample.number("from")),
                                 .column = static_cast<int>(sample.number("to")),
                                 .size = {},
                                 .value = sample.median});
      }
    }
  }
  return output;
}

}  // namespace trainyard
