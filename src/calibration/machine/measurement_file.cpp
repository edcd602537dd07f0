// SPDX-License-Identifier: Apache-2.0
#include "calibration/machine/measurement_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "calibration/machine/harness_set.h"
#include "calibration/measured/measured_damage.h"
#include "calibration/measured/nccl_log.h"
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

MeasurementFile file_of(MeasuredTable table, const std::string& name, std::string_view kind,
                        std::vector<std::string> warnings) {
  MeasurementFile file{.name = name, .kind = kind, .warnings = std::move(warnings)};
  const std::size_t before = file.warnings.size();
  repair(table, name, file.warnings);
  const bool repaired = file.warnings.size() > before;
  for (const std::string& remark : table.remarks) {
    if (!repaired || !is_said_by_line(remark)) {
      file.warnings.push_back(fmt::format("{}: {}", name, remark));
    }
  }
  if (table.rows.empty()) {
    throw ConfigError(fmt::format("{}: expected a row that can be used, found none", name));
  }
  file.tables.push_back({.file = name, .table = std::move(table)});
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
    std::vector<std::string> warnings;
    MeasuredTable table = parse_nccl_log(text, name, &warnings);
    return file_of(std::move(table), name, "nccl-tests", std::move(warnings));
  }
  if (is_harness_set(text)) {
    return file_of_set(text, name);
  }
  if (const std::optional<PastedTool> tool = pasted_tool(text)) {
    return file_of_links(text, *tool, name);
  }
  if (is_measured_yaml(text)) {
    return file_of(parse_measurement(text, name), name, "YAML table", {});
  }
  throw ConfigError(fmt::format(
      "{}: expected output of nccl-tests (a header line with size, time, algbw and busbw), "
      "nvbandwidth, p2pBandwidthLatencyTest or perftest, a measurement set of "
      "trainyard-calibrate, or a YAML table (source, system, test, rows), found none of them",
      name));
}

void drop_copies(std::vector<MeasurementFile>& files) {
  std::vector<const CalibrationTable*> seen;
  for (MeasurementFile& file : files) {
    std::vector<CalibrationTable> kept;
    for (CalibrationTable& table : file.tables) {
      const auto copy = std::find_if(seen.begin(), seen.end(), [&](const CalibrationTable* one) {
        return is_same(one->table, table.table) && one->environment == table.environment;
      });
      if (copy != seen.end()) {
        file.warnings.push_back(
            fmt::format("{}: left out: the same rows as in {}", table.file, (*copy)->file));
      } else {
        kept.push_back(std::move(table));
      }
    }
    file.tables = std::move(kept);
    for (const CalibrationTable& table : file.tables) {
      seen.push_back(&table);
    }
  }
}

}  // namespace trainyard
