// SPDX-License-Identifier: Apache-2.0
// Reading measured tables: the choice of format, and the YAML form (docs/inputs/measurements.md).
#include "calibration/measured/measurement.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <system_error>

#include "calibration/measured/measured_rows.h"
#include "calibration/measured/nccl_log.h"
#include "sim/config.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// A log with NCCL's debug output of many ranks may be long; more than this is another kind of file.
constexpr std::uintmax_t kLargestFile = std::uintmax_t{256} << 20;

constexpr std::int64_t kMostRanks = 10'000'000;

std::string read_text(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  const std::string name = file.string();
  if (!std::filesystem::exists(status)) {
    throw ConfigError(fmt::format("{}: expected a measured table, found no such file", name));
  }
  if (std::filesystem::is_directory(status)) {
    throw ConfigError(fmt::format("{}: expected a measured table, found a directory", name));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::array<char, 65'536> part{};
  // A device may never end.
  while (text.size() <= kLargestFile && stream.read(part.data(), part.size()).gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.is_open() || stream.bad()) {
    throw ConfigError(fmt::format("{}: cannot be read", name));
  }
  if (text.size() > kLargestFile) {
    throw ConfigError(
        fmt::format("{}: expected at most {} MiB, found a larger file", name, kLargestFile >> 20));
  }
  return text;
}

std::optional<std::string> optional_text(const ConfigNode& node, std::string_view key) {
  const std::optional<ConfigNode> value = node.optional(key);
  if (!value || value->is_null()) {
    return std::nullopt;
  }
  return value->as_string();
}

// Keys that are documentation for people: known, not needed.
template <std::size_t count>
void accept(const ConfigNode& node, const std::array<std::string_view, count>& keys) {
  for (const std::string_view key : keys) {
    if (const std::optional<ConfigNode> value = node.optional(key)) {
      value->skip();
    }
  }
}

void read_source(const ConfigNode& node, MeasuredTable& table) {
  table.source = node.required("title").as_string();
  const std::string place = node.required("repo_or_site").as_string();
  table.source += ", " + optional_text(node, "url").value_or(place);
  if (const std::optional<std::string> date = optional_text(node, "date_if_known")) {
    table.source += ", " + *date;
  }
  accept(node, std::array<std::string_view, 1>{"note"});
}

void read_system(const ConfigNode& node, MeasuredTable& table) {
  table.system = node.required("name").as_string();
  table.nodes = static_cast<int>(node.required("nodes").as_integer(1, kMostRanks));
  table.gpus_per_node = static_cast<int>(node.required("gpus_per_node").as_integer(1, 1024));
  accept(node, std::array<std::string_view, 7>{"gpu", "intra", "inter", "nccl_version", "cuda",
                                               "env", "notes"});
}

void read_test(const ConfigNode& node, MeasuredTable& table) {
  const ConfigNode operation = node.required("op");
  table.operation = parse_operation(operation.as_string());
  if (!table.operation) {
    operation.fail(fmt::format("one of {}", operation_names()), operation.found());
  }
  const ConfigNode ranks = node.required("ranks");
  table.ranks = static_cast<int>(ranks.as_integer(1, kMostRanks));
  const std::int64_t gpus = std::int64_t{*table.nodes} * *table.gpus_per_node;
  if (*table.ranks != gpus) {
    ranks.fail(fmt::format("system.nodes x system.gpus_per_node = {}", gpus), ranks.found());
  }
  if (const std::optional<ConfigNode> columns = node.optional("in_place_or_out")) {
    static constexpr std::array<std::string_view, 1> kOut{"out"};
    (void)columns->as_choice(kOut);  // The only meaning that the rows have.
  }
  table.algorithm_protocol = optional_text(node, "algo_proto").value_or("");
  accept(node, std::array<std::string_view, 3>{"datatype", "in_place_columns", "channels"});
}

std::optional<PrintedNumber> read_number(const ConfigNode& row, std::string_view key) {
  const std::optional<ConfigNode> value = row.optional(key);
  if (!value || value->is_null()) {
    return std::nullopt;
  }
  const std::optional<PrintedNumber> number = parse_printed(value->as_string());
  if (!number) {
    value->fail("a number of 0 or more, or null", value->found());
  }
  return number;
}

PrintedRow read_row(const ConfigNode& node) {
  PrintedRow row;
  row.size =
      Bytes(node.required("bytes").as_integer(1, std::numeric_limits<std::int64_t>::max() / 8));
  row.out_of_place = {.time_us = read_number(node, "time_us"),
                      .algbw_gbps = read_number(node, "algbw"),
                      .busbw_gbps = read_number(node, "busbw")};
  const PrintedTime in_place = {.time_us = read_number(node, "ip_time_us"),
                                .algbw_gbps = read_number(node, "ip_algbw"),
                                .busbw_gbps = read_number(node, "ip_busbw")};
  if (in_place.time_us || in_place.algbw_gbps || in_place.busbw_gbps) {
    row.in_place = in_place;
  }
  return row;
}

MeasuredTable parse_yaml_table(const std::string& text, const std::string& name) {
  ConfigDocument document = ConfigDocument::parse(text, name);
  const ConfigNode root = document.root();
  MeasuredTable table;
  read_source(root.required("source"), table);
  read_system(root.required("system"), table);
  read_test(root.required("test"), table);
  const ConfigNode rows = root.required("rows");
  std::vector<PrintedRow> printed;
  for (const ConfigNode& node : rows.items()) {
    printed.push_back(read_row(node));
    if (const auto reason = unusable(printed.back(), factor_of(table))) {
      node.fail("a time or a bandwidth", *reason);
    }
  }
  if (printed.empty()) {
    rows.fail("at least one row", "none");
  }
  document.finish();
  add_rows(printed, table);
  return table;
}

}  // namespace

// A line that begins with one of the four keys of a YAML table.
bool is_measured_yaml(std::string_view text) {
  for (const std::string key : {"source:", "system:", "test:", "rows:"}) {
    if (text.starts_with(key) || text.find("\n" + key) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

MeasuredTable parse_measurement(const std::string& text, const std::string& name) {
  MeasuredTable table;
  if (is_nccl_log(text)) {
    table = parse_nccl_log(text, name);
  } else if (is_measured_yaml(text)) {
    table = parse_yaml_table(text, name);
  } else {
    throw ConfigError(fmt::format(
        "{}: expected nccl-tests output (a header line with size, time, algbw and busbw) or a YAML "
        "table (source, system, test, rows), found neither",
        name));
  }
  if (table.rows.empty()) {
    throw ConfigError(fmt::format("{}: expected a row with a time, found {}", name,
                                  table.remarks.empty() ? "none" : table.remarks.front()));
  }
  table.name = std::filesystem::path(name).stem().string();
  return table;
}

MeasuredTable load_measurement(const std::filesystem::path& file) {
  return parse_measurement(read_text(file), file.string());
}

}  // namespace trainyard
