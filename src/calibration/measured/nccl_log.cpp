// SPDX-License-Identifier: Apache-2.0
// The format, as nccl-tests 2.0 to 2.18 and rccl-tests print it:
//
//   # Collective test starting: all_reduce_perf                        (newer versions)
//   # nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 ...
//   #  Rank  0 Group  0 Pid  1234 on host1 device  0 [0x0f] NVIDIA A100-SXM4-40GB
//   #                                     out-of-place                       in-place
//   #       size         count      type   redop    root     time   algbw   busbw #wrong     time
//   ... #        (B)    (elements)                               (us)  (GB/s)  (GB/s) (us) ...
//              8             2     float     sum      -1    12.90    0.00    0.00      0    12.87
//   # Out of bounds values : 0 OK
//   # Avg bus bandwidth    : 92.3405
//
// Versions differ in their columns ("redop" and "root" come and go; "#wrong" was "error" and "res",
// "size" was "bytes"), so the header says where each value is, and a row has exactly as many values
// as the header has words. Launchers put a prefix before every line ("[1,0]<stdout>:", " 0: ",
// "(head, rank=0, pid=3808) "): what stands before the header's '#' is the prefix, equal up to its
// numbers and blanks. Other programs' lines in between are skipped; they do not begin with a size
// and a number.
//
// A table of ours (report/results/collective_report.h) has a column "best" when it lists several
// algorithms per size; then its rows marked "*" are taken.
#include "calibration/measured/nccl_log.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "calibration/measured/bus_ratio.h"
#include "calibration/measured/log_context.h"
#include "calibration/measured/measured_rows.h"
#include "calibration/measured/table_header.h"
#include "parallelism/workload/imported_text.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string_view>;

// A run begins with these lines, older releases with the second of them.
bool begins_run(std::string_view line) {
  return line.find("Collective test starting") != std::string_view::npos ||
         line.find("nThread ") != std::string_view::npos;
}

bool ends_run(std::string_view line) {
  return line.find("Avg bus bandwidth") != std::string_view::npos;
}

// The bandwidths of a row, where the line is one.
std::optional<PrintedRow> bandwidths_of(std::string_view line, const TableHeader& header,
                                        std::size_t number) {
  const Words words = imported_words(without_prefix(line, header.prefix));
  if (!looks_like_row(words) || words.size() != header.words) {
    return std::nullopt;
  }
  PrintedRow row{.size = {}, .out_of_place = {}, .in_place = {}, .line = number};
  row.out_of_place.algbw_gbps = parse_printed(words[header.out[1].value()]);
  row.out_of_place.busbw_gbps = parse_printed(words[header.out[2].value()]);
  return row;
}

class LogReader {
 public:
  LogReader(const std::string& name, std::vector<std::string>* damage)
      : name_(name), damage_(damage) {}

  MeasuredTable read(std::string_view text) {
    std::size_t number = 0;
    for (const std::string_view line : split_lines(text)) {
      try {
        read_line(line, ++number);
      } catch (const ConfigError& error) {
        if (damage_ == nullptr) {
          throw;
        }
        damage_->emplace_back(error.what());
      }
    }
    if (rows_.empty()) {
      throw ConfigError(fmt::format("{}:{}: expected rows below the table's header, found none",
                                    name_, header_ ? header_->line : 1));
    }
    return table();
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& message) const {
    throw ConfigError(fmt::format("{}:{}: {}", name_, line, message));
  }

  void read_line(std::string_view line, std::size_t number) {
    if (stopped_) {
      return;
    }
    if (std::optional<TableHeader> header = parse_table_header(line)) {
      if (header_) {
        stopped_ = true;
        fail(number, fmt::format("a second table starts here (the first is on line {}): expected "
                                 "one run per file",
                                 header_->line));
      }
      header_ = header;
      header_->line = number;
      return;
    }
    if (!header_) {
      context_.read(line);
      return;
    }
    const Words words = imported_words(without_prefix(line, header_->prefix));
    if (!looks_like_row(words)) {
      context_.read(line);
    } else if (!context_.ended()) {
      read_row(words, number);
    } else if (words.size() == header_->words) {
      fail(number, "a row after the end of the table: expected one run per file");
    }
  }

  void read_row(const Words& words, std::size_t number) {
    if (words.size() != header_->words) {
      fail(number, fmt::format("expected {} values as in the header on line {}, found {} (a torn "
                               "row; NCCL_DEBUG_FILE keeps other output out of the table)",
                               header_->words, header_->line, words.size()));
    }
    const std::optional<std::int64_t> size = imported_number(words[0]);
    if (!size) {
      fail(number, fmt::format("expected a size in bytes, found {}", in_quotes(words[0])));
    }
    if (*size == 0) {
      ++empty_rows_;
      return;
    }
    if (header_->best && words[*header_->best] != "*") {
      ++worse_rows_;
      return;
    }
    for (const std::size_t at : header_->wrong) {
      if (const auto wrong = imported_number(words[at]).value_or(0); wrong > 0) {
        wrong_.push_back({number, fmt::format("#wrong is {} at {} B", wrong, *size)});
      }
    }
    PrintedRow row{.size = Bytes(*size),
                   .out_of_place = read_time(words, number, header_->out),
                   .in_place = std::nullopt,
                   .line = number};
    const std::optional<std::size_t> in_place = header_->in_place.front();
    if (in_place && words[*in_place] != "N/A" && words[*in_place] != "-") {
      row.in_place = read_time(words, number, header_->in_place);
    }
    // The factor is not needed: the header promises all three values.
    if (const std::optional<std::string_view> reason = unusable(row, std::nullopt)) {
      fail(number, fmt::format("expected a time, found {}", *reason));
    }
    rows_.push_back(row);
  }

  PrintedTime read_time(const Words& words, std::size_t number, const TimeColumns& columns) const {
    std::array<std::optional<PrintedNumber>, kTimeColumns.size()> values;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!columns.at(i)) {
        continue;
      }
      const std::string_view word = words[*columns.at(i)];
      values.at(i) = parse_printed(word);
      if (!values.at(i)) {
        fail(number,
             fmt::format("{}: expected a number, found {}", kTimeColumns.at(i), in_quotes(word)));
      }
    }
    return {.time_us = values[0], .algbw_gbps = values[1], .busbw_gbps = values[2]};
  }

  MeasuredTable table() const {
    MeasuredTable table = context_.described();
    if (empty_rows_ > 0) {
      table.remarks.push_back(fmt::format("{} rows of 0 bytes left out", empty_rows_));
    }
    if (worse_rows_ > 0) {
      table.remarks.push_back(fmt::format("{} rows not marked best (\"*\") left out", worse_rows_));
    }
    if (!wrong_.empty()) {
      table.remarks.push_back(fmt::format(
          "rows report wrong results (#wrong), the first on line {}", wrong_.front().line));
    }
    table.wrong_results = wrong_;
    if (wrong_.empty() && context_.failed()) {
      table.wrong_results.push_back({.what = "\"Out of bounds values\" are FAILED"});
    }
    add_rows(rows_, table);
    return table;
  }

  const std::string& name_;
  std::vector<std::string>* damage_;  // None: what is wrong is an error.
  std::optional<TableHeader> header_;
  bool stopped_ = false;  // Set when what follows is of another run.
  LogContext context_;
  std::vector<PrintedRow> rows_;
  std::size_t empty_rows_ = 0;
  std::size_t worse_rows_ = 0;
  std::vector<WrongResult> wrong_;
};

}  // namespace

bool is_nccl_log(std::string_view text) {
  const std::vector<std::string_view> lines = split_lines(text);
  return std::any_of(lines.begin(), lines.end(),
                     [](std::string_view line) { return parse_table_header(line).has_value(); });
}

MeasuredTable parse_nccl_log(std::string_view text, const std::string& name,
                             std::vector<std::string>* damage) {
  return LogReader(name, damage).read(text);
}

std::string LogRunText::padded() const {
  return std::string(first_line - 1, '\n') + std::string(text);
}

std::vector<LogRunText> split_runs(std::string_view text) {
  std::vector<LogRunText> runs{{.text = text}};
  std::size_t number = 1;
  std::size_t begin = 0;  // Begin of the last run.
  const auto cut = [&](std::size_t at, std::size_t line) {
    runs.back().text = text.substr(begin, at - begin);
    runs.push_back({.first_line = line, .text = text.substr(at)});
    begin = at;
  };
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    const bool is_header = is_nccl_log(line);
    if (runs.back().header_line > 0 && (is_header || begins_run(line))) {
      cut(at, number);
    }
    if (is_header) {
      runs.back().header_line = number;
    }
    if (runs.back().header_line > 0 && ends_run(line)) {
      cut(end, number + 1);
    }
    at = end;
  }
  std::erase_if(runs, [](const LogRunText& one) { return one.header_line == 0; });
  return runs;
}

std::optional<std::string> why_separate(std::string_view text, const std::string& name) {
  std::optional<TableHeader> header;
  std::size_t headers = 0;
  std::map<int, std::size_t> listed;  // How often a rank was, since the last row.
  std::vector<PrintedRow> rows;
  std::string programs;
  std::size_t most = 1;
  std::size_t number = 0;
  const auto count_programs = [&] {
    const std::size_t count = listed.empty() ? 0 : listed.begin()->second;
    if (count > most) {
      most = count;
      programs = fmt::format(
          "{}:{}: expected the rows of one run, found those of {} programs, each with {} of its "
          "own, side by side: nccl-tests built without MPI=1 does not join its processes",
          name, number, most,
          listed.size() == 1 ? "one rank" : fmt::format("{} ranks", listed.size()));
    }
    listed.clear();
  };
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (const std::optional<TableHeader> found = parse_table_header(line)) {
      header = found;
      ++headers;
    } else if (const std::optional<int> rank = listed_rank(line)) {
      ++listed[*rank];
    } else if (const auto row = header ? bandwidths_of(line, *header, number) : std::nullopt) {
      count_programs();
      rows.push_back(*row);
    }
  }
  count_programs();
  const std::optional<BusRatio> ratio = bus_ratio_of(rows);
  if (ratio && is_of_one_rank(*ratio)) {
    return fmt::format(
        "{}:{}: expected a run of two ranks or more, found busbw 0 on every row: each process ran "
        "alone, with one rank (-np 1 -g 1, or nccl-tests built without MPI=1)",
        name, rows.front().line);
  }
  // A run that broke off before its table listed its ranks as well.
  return most > 1 && headers >= most ? std::optional(programs) : std::nullopt;
}

}  // namespace trainyard
