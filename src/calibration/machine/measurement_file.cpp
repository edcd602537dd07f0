// SPDX-License-Identifier: Apache-2.0
#include "calibration/machine/measurement_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "calibration/machine/harness_set.h"
#include "calibration/measured/measured_damage.h"
#include "calibration/measured/nccl_json.h"
#include "calibration/measured/nccl_log.h"
#include "calibration/measured/osu_log.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Remarks that repair() makes with their lines.
bool is_said_by_line(const std::string& remark) {
  return has(remark, " B is measured ") || has(remark, "algbw does not agree");
}

// Adds a table, which costs no more than the rows that are wrong in it.
void add_table(MeasurementFile& file, MeasuredTable table) {
  const std::size_t before = file.warnings.size();
  repair(table, file.name, file.warnings);
  const bool repaired = file.warnings.size() > before;
  for (const std::string& remark : table.remarks) {
    if (!repaired || !is_said_by_line(remark)) {
      file.warnings.push_back(fmt::format("{}: {}", file.name, remark));
    }
  }
  if (!table.rows.empty()) {
    file.tables.push_back({.file = file.name, .table = std::move(table)});
  }
}

MeasurementFile file_of(MeasuredTable table, const std::string& name, std::string_view kind) {
  MeasurementFile file{.name = name, .kind = kind};
  add_table(file, std::move(table));
  if (file.tables.empty()) {
    throw ConfigError(fmt::format("{}: expected a row that can be used, found none", name));
  }
  return file;
}

// All runs of a log; one without a row that can be used costs no more than itself.
MeasurementFile file_of_log(const std::string& text, const std::string& name) {
  if (const std::optional<std::string> why = why_separate(text, name)) {
    throw ConfigError(*why);
  }
  MeasurementFile file{.name = name, .kind = "nccl-tests"};
  for (const LogRunText& run : split_runs(text)) {
    try {
      add_table(file, parse_nccl_log(run.padded(), name, &file.warnings));
    } catch (const ConfigError& error) {
      file.warnings.emplace_back(error.what());
    }
  }
  if (file.tables.empty()) {
    throw ConfigError(file.warnings.empty()
                          ? fmt::format("{}: expected a row that can be used, found none", name)
                          : file.warnings.back());
  }
  return file;
}

MeasurementFile file_of_set(const std::string& text, const std::string& name) {
  HarnessSet set = parse_harness_set(text, name);
  MeasurementFile file{.name = name, .kind = "measurement set", .warnings = set.warnings};
  file.tables = collective_tables(set, name);
  for (CalibrationTable& table : file.tables) {
    repair(table.table, fmt::format("{} {}", name, table.part), file.warnings);
  }
  file.rates = rate_tables(set);
  file.gpu = set.gpus.empty() ? "" : set.gpus.front();
  if (PastedOutput copies = copy_rates(set); !copies.values.empty()) {
    file.links = std::move(copies);
  }
  if (file.tables.empty() && file.rates.empty() && !file.links) {
    throw ConfigError(
        fmt::format("{}: expected collectives with a GPU for each rank (nccl.processes.*, "
                    "nccl.one-process.*, network.*), kernels of one GPU (gpu.gemm.*, "
                    "gpu.attention, gpu.elementwise, gpu.memory) or copies (gpu.host-link, "
                    "peer.copy-engine), found none of them",
                    name));
  }
  return file;
}

MeasurementFile file_of_links(const std::string& text, PastedTool tool, const std::string& name) {
  MeasurementFile file{.name = name, .kind = to_string(tool)};
  file.links = parse_pasted(text, tool, name);
  file.warnings = file.links->warnings;
  return file;
}

bool is_same(const MeasuredTable& one, const MeasuredTable& other) {
  return one.operation == other.operation && one.ranks == other.ranks &&
         std::equal(one.rows.begin(), one.rows.end(), other.rows.begin(), other.rows.end(),
                    [](const MeasuredRow& a, const MeasuredRow& b) {
                      return a.size == b.size && a.time == b.time;
                    });
}

}  // namespace

MeasurementFile read_measurements(const std::string& text, const std::string& name) {
  if (is_nccl_log(text)) {
    return file_of_log(text, name);
  }
  if (is_nccl_json(text)) {
    return file_of(parse_measurement(text, name), name, "nccl-tests");
  }
  if (is_osu_log(text)) {
    return file_of(parse_measurement(text, name), name, "OSU Micro-Benchmarks");
  }
  if (is_harness_set(text)) {
    return file_of_set(text, name);
  }
  if (is_host_set(text)) {
    return {.name = name, .kind = "measurement set of a host", .host = parse_host_set(text, name)};
  }
  if (const std::optional<PastedTool> tool = pasted_tool(text)) {
    return file_of_links(text, *tool, name);
  }
  if (is_measured_yaml(text)) {
    return file_of(parse_measurement(text, name), name, "YAML table");
  }
  throw ConfigError(fmt::format(
      "{}: expected output of nccl-tests (a header line with size, time, algbw and busbw, or "
      "JSON), nvbandwidth, p2pBandwidthLatencyTest, perftest or OSU, a measurement set of "
      "trainyard-calibrate or trainyard-calibrate-hosts, or a YAML table (source, system, test, "
      "rows), found none of them",
      name));
}

void drop_copies(std::vector<MeasurementFile>& files) {
  std::vector<CalibrationTable> seen;
  for (MeasurementFile& file : files) {
    std::vector<CalibrationTable> kept;
    for (CalibrationTable& table : file.tables) {
      const auto copy = std::find_if(seen.begin(), seen.end(), [&](const CalibrationTable& one) {
        return is_same(one.table, table.table) && one.environment == table.environment;
      });
      if (copy != seen.end()) {
        file.warnings.push_back(
            fmt::format("{}: left out: the same rows as in {}", table.file, copy->file));
      } else {
        seen.push_back(table);
        kept.push_back(std::move(table));
      }
    }
    file.tables = std::move(kept);
  }
}

}  // namespace trainyard
