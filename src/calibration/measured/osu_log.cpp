// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/osu_log.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "calibration/measured/measured_rows.h"
#include "calibration/measured/table_header.h"
#include "parallelism/workload/imported_text.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

struct OsuTest {
  std::string_view title;
  Operation operation;
  bool sizes_are_parts;
};

constexpr std::array kOsuTests{
    OsuTest{"Allreduce", Operation::AllReduce, false},
    OsuTest{"Allgather", Operation::AllGather, true},
    OsuTest{"Reduce_scatter", Operation::ReduceScatter, false},
    OsuTest{"All-to-All Personalized Exchange", Operation::AllToAll, true},
    OsuTest{"Broadcast", Operation::Broadcast, false},
    OsuTest{"Reduce", Operation::Reduce, false},
    OsuTest{"Scatter", Operation::Scatter, true},
    OsuTest{"Gather", Operation::Gather, true},
};

// The test of "OSU MPI-CUDA Allreduce Latency Test"; nothing for another line.
std::optional<OsuTest> osu_test_of(std::string_view line) {
  const std::size_t begin = line.find("OSU ");
  const std::size_t end = line.find(" Latency Test");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return std::nullopt;
  }
  const std::string_view words = line.substr(begin, end - begin);
  const std::size_t name = words.find(' ', 4);  // Behind "OSU MPI-CUDA".
  const auto* const found =
      std::find_if(kOsuTests.begin(), kOsuTests.end(), [&](const OsuTest& one) {
        return name != std::string_view::npos && words.substr(name + 1) == one.title;
      });
  return found == kOsuTests.end() ? std::nullopt : std::optional(*found);
}

bool is_on_gpus(std::string_view title) {
  return title.find("-CUDA") != std::string_view::npos ||
         title.find("-ROCM") != std::string_view::npos ||
         title.find("NCCL") != std::string_view::npos ||
         title.find("RCCL") != std::string_view::npos;
}

std::optional<PrintedRow> osu_row(const std::vector<std::string_view>& words, std::size_t line) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
  const auto size = words.size() < 2 ? std::nullopt : imported_number(words[0], kMaxBytes);
  const auto time = words.size() < 2 ? std::nullopt : parse_printed(words[1]);
  if (!size || *size == 0 || !time) {
    return std::nullopt;
  }
  PrintedRow row{.size = Bytes(*size), .out_of_place = {}, .in_place = {}, .line = line};
  row.out_of_place.time_us = time;
  return unusable(row, std::nullopt) ? std::nullopt : std::optional(row);
}

}  // namespace

bool is_osu_log(std::string_view text) {
  const std::vector<std::string_view> lines = split_lines(text);
  return std::any_of(lines.begin(), lines.end(),
                     [](std::string_view line) { return osu_test_of(line).has_value(); });
}

MeasuredTable parse_osu_log(std::string_view text, const std::string& name) {
  MeasuredTable table;
  std::vector<PrintedRow> rows;
  std::size_t columns = 0;
  std::size_t number = 0;
  const auto fail = [&](std::string_view expected, std::string_view found) {
    throw ConfigError(fmt::format("{}:{}: expected {}, found {}", name, number, expected, found));
  };
  for (const std::string_view line : split_lines(text)) {
    ++number;
    const std::vector<std::string_view> words = imported_words(line);
    if (const std::optional<OsuTest> test = osu_test_of(line)) {
      if (table.operation) {
        fail("one run per file", "a second one");
      }
      if (!is_on_gpus(line)) {
        fail("buffers on GPUs (-d cuda)", in_quotes(line));
      }
      table.operation = test->operation;
      table.sizes_are_parts = test->sizes_are_parts;
    } else if (line.find("Latency(us)") != std::string_view::npos) {
      columns = line.find("Min Latency") != std::string_view::npos ? 5 : 2;
    } else if (columns > 0 && looks_like_row(words)) {
      const std::optional<PrintedRow> row = osu_row(words, number);
      if (!row || words.size() < columns) {
        fail("a size and a time as in the header", in_quotes(line));
      }
      rows.push_back(*row);
    }
  }
  if (rows.empty()) {
    fail("rows below a header with Avg Latency(us)", "none");
  }
  table.source = "OSU Micro-Benchmarks log";
  table.remarks.emplace_back("times of MPI (OSU Micro-Benchmarks), not of NCCL");
  table.remarks.emplace_back("the log does not say how many ranks took part");
  add_rows(rows, table);
  return table;
}

void take_whole_sizes(MeasuredTable& table, int ranks) {
  if (!table.sizes_are_parts) {
    return;
  }
  for (MeasuredRow& row : table.rows) {
    row.size = row.size * ranks;
    row.algbw_gbps *= ranks;
    row.busbw_gbps *= ranks;
  }
  table.sizes_are_parts = false;
}

}  // namespace trainyard
