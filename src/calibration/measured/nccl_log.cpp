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
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "calibration/measured/measured_rows.h"
#include "parallelism/workload/imported_text.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string_view>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::optional<int> small_number(std::string_view text) {
  const auto value = imported_number(text, std::numeric_limits<int>::max());
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

// Columns of a time and its bandwidths, out of place or in place.
constexpr std::array<std::string_view, 3> kTimeColumns{"time", "algbw", "busbw"};
using TimeColumns = std::array<std::optional<std::size_t>, kTimeColumns.size()>;

// The header's columns by meaning; indices into a row's words.
struct Header {
  std::size_t line = 0;
  std::string_view prefix;
  std::size_t words = 0;
  TimeColumns out;  // The first column of a name is out of place, the second in place.
  TimeColumns in_place;
  std::vector<std::size_t> wrong;
  std::optional<std::size_t> best;
};

std::optional<Header> parse_header(std::string_view line) {
  const std::size_t hash = line.find('#');
  if (hash == std::string_view::npos) {
    return std::nullopt;
  }
  const Words words = imported_words(line.substr(hash + 1));
  if (words.empty() || (words[0] != "size" && words[0] != "bytes")) {
    return std::nullopt;
  }
  Header header;
  header.prefix = line.substr(0, hash);
  header.words = words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto* const name = std::ranges::find(kTimeColumns, words[i]);
    if (name != kTimeColumns.end()) {
      const auto at = static_cast<std::size_t>(name - kTimeColumns.begin());
      (header.out.at(at) ? header.in_place : header.out).at(at) = i;
    } else if (words[i] == "#wrong") {
      header.wrong.push_back(i);
    } else if (words[i] == "best") {
      header.best = i;
    }
  }
  if (!std::ranges::all_of(header.out, [](const auto& at) { return at.has_value(); })) {
    return std::nullopt;
  }
  return header;
}

// Returns how many of the leading characters of `text` satisfy `is_member`.
template <typename Predicate>
std::size_t run_length(std::string_view text, Predicate is_member) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_member);
  return static_cast<std::size_t>(end - text.begin());
}

// The line without a prefix that equals the header's up to its numbers and blanks; the line itself
// if it has none.
std::string_view without_prefix(std::string_view line, std::string_view prefix) {
  std::string_view rest = line;
  while (!prefix.empty()) {
    if (is_blank(prefix.front())) {
      prefix.remove_prefix(run_length(prefix, is_blank));
      rest.remove_prefix(run_length(rest, is_blank));
    } else if (rest.empty()) {
      return line;
    } else if (is_digit(prefix.front()) && is_digit(rest.front())) {
      prefix.remove_prefix(run_length(prefix, is_digit));
      rest.remove_prefix(run_length(rest, is_digit));
    } else if (prefix.front() == rest.front()) {
      prefix.remove_prefix(1);
      rest.remove_prefix(1);
    } else {
      return line;
    }
  }
  return rest;
}

// A row begins with a size and another number; a torn one may end within either.
bool looks_like_row(const Words& words) {
  if (words.empty() || !std::all_of(words[0].begin(), words[0].end(), is_digit)) {
    return false;
  }
  return words.size() == 1 || is_digit(words[1].front());
}

// Reads what the lines around the table say about the run.
class Surroundings {
 public:
  void read(std::string_view line) {
    read_program(line);
    const std::size_t hash = line.find('#');
    if (hash == std::string_view::npos) {
      return;
    }
    const std::string_view comment = line.substr(hash + 1);
    const Words words = imported_words(comment);
    if (words.size() > 3 && words[0] == "Collective" && words[1] == "test") {
      said_.operation = program_operation(words[3]);
    } else if (words.size() > 2 && words[0] == "nccl-tests" && words[1] == "version") {
      version_ = words[2];
    } else if (words.size() > 1 && words[0] == "Rank") {
      read_device(words);
    } else if (words.size() > 3 && words[0] == "nThread" && words[2] == "nGpus") {
      read_launch(words);
    } else if (words.size() == 6 && words[0] == "ranks" && words[2] == "nodes") {
      said_.ranks = small_number(words[1]);
      said_.nodes = small_number(words[3]);
      said_.gpus_per_node = small_number(words[5]);
    } else if (comment.starts_with(" Simulated by Trainyard")) {
      simulated_ = true;
    } else if (comment.find("Out of bounds values") != std::string_view::npos) {
      failed_ = comment.find("FAILED") != std::string_view::npos;
    } else if (comment.find("Avg bus bandwidth") != std::string_view::npos) {
      ended_ = true;
    }
  }

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool failed() const { return failed_; }

  [[nodiscard]] MeasuredTable described() const {
    MeasuredTable table = said_;
    table.source = simulated_         ? "Trainyard output"
                   : version_.empty() ? "nccl-tests log"
                                      : fmt::format("nccl-tests log (nccl-tests {})", version_);
    describe_operation(table);
    describe_ranks(table);
    if (simulated_) {
      table.remarks.emplace_back("the file is output of this program: simulated, not measured");
    }
    if (failed_) {
      table.remarks.emplace_back("nccl-tests reported wrong results (\"Out of bounds values\")");
    }
    if (!ended_) {
      table.remarks.emplace_back(
          "the log has no \"Avg bus bandwidth\" line: the run may not have finished");
    }
    return table;
  }

 private:
  // "all_reduce_perf", also with a suffix such as "_mpi" or a folder before it.
  static std::optional<Operation> program_operation(std::string_view program) {
    const std::size_t end = program.find("_perf");
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    program = program.substr(0, end);
    const std::size_t begin = program.find_last_not_of("abcdefghijklmnopqrstuvwxyz_");
    return parse_operation(begin == std::string_view::npos ? program : program.substr(begin + 1));
  }

  void read_program(std::string_view line) {
    for (const std::string_view word : imported_words(line)) {
      if (const std::optional<Operation> operation = program_operation(word)) {
        mentioned_.insert(*operation);
      }
    }
  }

  // nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 ... graph: 0
  void read_launch(const Words& words) {
    said_.threads_per_process = small_number(words[1]);
    said_.gpus_per_process = small_number(words[3]);
    const auto graph = std::find(words.begin(), words.end(), "graph:");
    said_.cuda_graph = graph != words.end() && graph + 1 != words.end() && *(graph + 1) != "0";
  }

  // Rank 0 [Group 0] Pid 1234 on HOST device 0 [BUS] NAME OF THE GPU
  void read_device(const Words& words) {
    const std::optional<int> rank = small_number(words[1]);
    if (!rank) {
      return;
    }
    ++device_lines_;
    listed_.insert(*rank);
    for (std::size_t i = 2; i + 1 < words.size(); ++i) {
      if (words[i] == "Group" && words[i + 1] != "0") {
        several_groups_ = true;
      } else if (words[i] == "on") {
        hosts_.insert(words[i + 1]);
      } else if (words[i].ends_with("]")) {
        const char* const begin = words[i + 1].data();
        const char* const end = words.back().data() + words.back().size();
        said_.system = std::string(begin, end);
        break;
      }
    }
  }

  void describe_operation(MeasuredTable& table) const {
    if (!table.operation && mentioned_.size() == 1) {
      table.operation = *mentioned_.begin();
    }
    if (!table.operation) {
      table.remarks.emplace_back("the log does not say which operation was measured");
    }
  }

  void describe_ranks(MeasuredTable& table) const {
    if (!listed_.empty()) {
      table.ranks = table.nodes = table.gpus_per_node = std::nullopt;
    }
    if (several_groups_) {
      table.remarks.emplace_back("the log lists several groups of ranks: their size is unknown");
    } else if (!listed_.empty()) {
      describe_listed_ranks(table);
    }
    if (!table.ranks) {
      table.remarks.emplace_back("the log does not say how many ranks took part");
    }
  }

  void describe_listed_ranks(MeasuredTable& table) const {
    const int ranks = *listed_.rbegin() + 1;
    table.ranks = ranks;
    if (listed_.size() < static_cast<std::size_t>(ranks)) {
      table.remarks.push_back(fmt::format("the log lists {} of {} ranks", listed_.size(), ranks));
    } else if (device_lines_ > listed_.size()) {
      table.remarks.push_back(fmt::format(
          "the log lists {} devices but only {} ranks: nccl-tests built without MPI runs as "
          "separate programs",
          device_lines_, ranks));
    } else if (!hosts_.empty()) {
      const int hosts = static_cast<int>(hosts_.size());
      table.nodes = hosts;
      if (ranks % hosts == 0) {
        table.gpus_per_node = ranks / hosts;
      }
    }
  }

  MeasuredTable said_;  // Lines say this of the whole run.
  std::set<Operation> mentioned_;
  std::string_view version_;
  std::size_t device_lines_ = 0;
  std::set<int> listed_;
  std::set<std::string_view> hosts_;
  bool several_groups_ = false;
  bool simulated_ = false;
  bool failed_ = false;
  bool ended_ = false;
};

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
    if (std::optional<Header> header = parse_header(line)) {
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
      surroundings_.read(line);
      return;
    }
    const Words words = imported_words(without_prefix(line, header_->prefix));
    if (!looks_like_row(words)) {
      surroundings_.read(line);
    } else if (!surroundings_.ended()) {
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
    MeasuredTable table = surroundings_.described();
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
    if (wrong_.empty() && surroundings_.failed()) {
      table.wrong_results.push_back({.what = "\"Out of bounds values\" are FAILED"});
    }
    add_rows(rows_, table);
    return table;
  }

  const std::string& name_;
  std::vector<std::string>* damage_;  // None: what is wrong is an error.
  std::optional<Header> header_;
  bool stopped_ = false;  // Set when what follows is of another run.
  Surroundings surroundings_;
  std::vector<PrintedRow> rows_;
  std::size_t empty_rows_ = 0;
  std::size_t worse_rows_ = 0;
  std::vector<WrongResult> wrong_;
};

}  // namespace

bool is_nccl_log(std::string_view text) {
  const std::vector<std::string_view> lines = split_lines(text);
  return std::any_of(lines.begin(), lines.end(),
                     [](std::string_view line) { return parse_header(line).has_value(); });
}

MeasuredTable parse_nccl_log(std::string_view text, const std::string& name,
                             std::vector<std::string>* damage) {
  return LogReader(name, damage).read(text);
}

}  // namespace trainyard
