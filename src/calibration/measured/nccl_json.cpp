// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/nccl_json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "calibration/measured/log_context.h"
#include "calibration/measured/measured_rows.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

using nlohmann::json;

// It prints all values with six decimals.
constexpr double kHalfStep = 0.50001e-6;

class NcclJsonReader {
 public:
  explicit NcclJsonReader(const std::string& name) : name_(name) {}

  MeasuredTable read(const json& root) {
    const json& results = member(root, "results", "");
    if (!results.is_array() || results.empty()) {
      fail("results", "a list of rows", results);
    }
    read_run(root);
    std::vector<PrintedRow> rows;
    for (std::size_t index = 0; index < results.size(); ++index) {
      rows.push_back(read_row(results[index], fmt::format("results[{}]", index)));
    }
    std::erase_if(rows, [](const PrintedRow& row) { return row.size == Bytes(); });
    if (rows.size() < results.size()) {
      table_.remarks.push_back(
          fmt::format("{} rows of 0 bytes left out", results.size() - rows.size()));
    }
    if (!root.contains("end_time")) {
      table_.remarks.emplace_back("the log has no end_time: the run may not have finished");
    }
    add_rows(rows, table_);
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, std::string_view expected,
                         const json& found) const {
    throw ConfigError(fmt::format("{}: {}: expected {}, found {}", name_, place, expected,
                                  in_quotes(found.dump(-1, ' ', true))));
  }

  [[nodiscard]] const json& member(const json& parent, const char* key,
                                   const std::string& place) const {
    if (!parent.is_object()) {
      fail(place, "an object", parent);
    }
    if (!parent.contains(key)) {
      throw ConfigError(fmt::format("{}: {}: expected the key \"{}\", found none", name_,
                                    place.empty() ? "the file" : place, key));
    }
    return parent.at(key);
  }

  [[nodiscard]] std::int64_t whole(const json& parent, const char* key, const std::string& place,
                                   std::int64_t max) const {
    const json& value = member(parent, key, place);
    if (!value.is_number_integer() || value.get<double>() < 0.0 ||
        value.get<double>() > static_cast<double>(max)) {
      fail(place + "." + key, fmt::format("a whole number up to {}", max), value);
    }
    return value.get<std::int64_t>();
  }

  [[nodiscard]] std::optional<PrintedNumber> number(const json& parent, const char* key,
                                                    const std::string& place) const {
    const json& value = member(parent, key, place);
    if (value.is_null() || value == "nan") {
      return std::nullopt;
    }
    if (!value.is_number() || !(value.get<double>() >= 0.0) ||
        !std::isfinite(value.get<double>())) {
      fail(place + "." + key, "a number of 0 or more", value);
    }
    return PrintedNumber{.value = value.get<double>(), .half_step = kHalfStep};
  }

  [[nodiscard]] std::optional<PrintedTime> time_in(const json& row, const char* key,
                                                   const std::string& place) const {
    const json& columns = member(row, key, place);
    if (columns.is_null()) {
      return std::nullopt;
    }
    const std::string at = place + "." + key;
    return PrintedTime{
        .time_us = number(columns, columns.contains("cpu_time") ? "cpu_time" : "time", at),
        .algbw_gbps = number(columns, "alg_bw", at),
        .busbw_gbps = number(columns, "bus_bw", at)};
  }

  PrintedRow read_row(const json& json_row, const std::string& place) {
    constexpr std::int64_t kMaxBytes = std::numeric_limits<std::int64_t>::max() / 8;
    PrintedRow row{.size = Bytes(whole(json_row, "size", place, kMaxBytes)),
                   .out_of_place = {},
                   .in_place = time_in(json_row, "in_place", place)};
    if (const std::optional<PrintedTime> out = time_in(json_row, "out_of_place", place)) {
      row.out_of_place = *out;
    } else if (row.in_place) {
      row.out_of_place = *row.in_place;
    }
    if (row.size == Bytes()) {
      return row;
    }
    if (const auto reason = unusable(row, std::nullopt)) {
      throw ConfigError(fmt::format("{}: {}: expected a time, found {}", name_, place, *reason));
    }
    for (const char* key : {"out_of_place", "in_place"}) {
      const json& columns = json_row.at(key);
      const auto wrong = columns.is_null() ? std::nullopt : number(columns, "nwrong", place);
      if (wrong && wrong->value > 0.0) {
        table_.wrong_results.push_back({.what = fmt::format("{}: nwrong is {} at {} B", place,
                                                            wrong->value, row.size.count())});
      }
    }
    return row;
  }

  void read_run(const json& root) {
    constexpr std::int64_t kMaxGpus = 1'000'000;
    table_.source = "nccl-tests log (JSON)";
    const json& args = member(root, "args", "");
    if (args.is_array() && !args.empty() && args[0].is_string()) {
      table_.operation = program_operation(args[0].get<std::string>());
    }
    if (!table_.operation) {
      table_.remarks.emplace_back("the log does not say which operation was measured");
    }
    const json& config = member(root, "config", "");
    const auto gpus = [&](const char* key) {
      return static_cast<int>(whole(config, key, "config", kMaxGpus));
    };
    table_.threads_per_process = gpus("nthreads");
    table_.gpus_per_process = gpus("ngpus");
    table_.cuda_graph = gpus("graph") != 0;
    read_devices(member(config, "devices", "config"));
  }

  void read_devices(const json& devices) {
    std::set<std::string> hosts;
    for (std::size_t index = 0; index < devices.size(); ++index) {
      const json& device = devices.is_array() ? devices[index] : devices;
      const std::string place = fmt::format("config.devices[{}]", index);
      const json& host = member(device, "hostname", place);
      const json& gpu = member(device, "device_info", place);
      if (!host.is_string() || !gpu.is_string()) {
        fail(place, "a hostname and a device_info in quotes", device);
      }
      if (whole(device, "group", place, std::numeric_limits<int>::max()) != 0) {
        table_.remarks.emplace_back("the log lists several groups of ranks: their size is unknown");
        return;
      }
      hosts.insert(host.get<std::string>());
      table_.system = gpu.get<std::string>();
    }
    const std::int64_t ranks = static_cast<std::int64_t>(devices.size()) *
                               table_.threads_per_process.value() * table_.gpus_per_process.value();
    if (!hosts.empty() && ranks > 0 && ranks <= std::numeric_limits<int>::max()) {
      table_.ranks = static_cast<int>(ranks);
      table_.nodes = static_cast<int>(hosts.size());
      if (*table_.ranks % *table_.nodes == 0) {
        table_.gpus_per_node = *table_.ranks / *table_.nodes;
      }
    }
  }

  const std::string& name_;
  MeasuredTable table_;
};

}  // namespace

bool is_nccl_json(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\"results\"") != std::string_view::npos &&
         text.find("\"out_of_place\"") != std::string_view::npos;
}

MeasuredTable parse_nccl_json(const std::string& text, const std::string& name) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    throw ConfigError(fmt::format(
        "{}: expected whole JSON of nccl-tests -J, found an end or another sign at byte {}", name,
        error.byte));
  } catch (const json::exception&) {
    throw ConfigError(
        fmt::format("{}: expected JSON of nccl-tests -J, found a number too large", name));
  }
  return NcclJsonReader(name).read(root);
}

}  // namespace trainyard
