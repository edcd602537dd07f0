// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/tuner_csv.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>

#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"
#include "sim/text_file.h"

namespace trainyard::nccl {
namespace {

constexpr std::array<std::string_view, 10> kColumns{
    "collective", "min_bytes", "max_bytes", "algorithm",  "protocol",
    "channels",   "nNodes",    "nRanks",    "numPipeOps", "regBuff"};
constexpr std::size_t kMinColumns = 8;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) {
      return cells;
    }
    line.remove_prefix(comma + 1);
  }
}

class RowReader {
 public:
  RowReader(std::string place, std::vector<std::string_view> cells)
      : place_(std::move(place)), cells_(std::move(cells)) {}

  [[nodiscard]] TunerRow read() const {
    if (cells_.size() < kMinColumns || cells_.size() > kColumns.size()) {
      throw ConfigError(place_ + ": expected 8 to 10 columns, found " +
                        std::to_string(cells_.size()));
    }
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    TunerRow row;
    row.function = name<Function>(0, parse_function,
                                  "broadcast, reduce, allgather, reducescatter or allreduce");
    row.min_bytes = number(1, 0, kMax);
    row.max_bytes = number(2, 0, kMax);
    if (row.max_bytes < row.min_bytes) {
      fail(2, "at least min_bytes");
    }
    row.algorithm =
        name<Algorithm>(3, parse_plugin_algorithm,
                        "tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree or pat");
    row.protocol = name<Protocol>(4, parse_protocol, "ll, ll128 or simple");
    row.channels = optional_number(5, 1, 64);
    row.nodes = optional_number(6, 1, std::numeric_limits<int>::max());
    row.ranks = optional_number(7, 1, std::numeric_limits<int>::max());
    row.operations = optional_number(8, 1, std::numeric_limits<int>::max());
    if (const auto registered = optional_number(9, 0, 1)) {
      row.registered = *registered == 1;
    }
    row.place = place_;
    return row;
  }

 private:
  // "nvls_tree" as well as NVLSTree.
  static std::optional<Algorithm> parse_plugin_algorithm(std::string_view name) {
    std::string joined(name);
    joined.erase(std::remove(joined.begin(), joined.end(), '_'), joined.end());
    return parse_algorithm(joined);
  }

  [[noreturn]] void fail(std::size_t column, const std::string& expected) const {
    throw ConfigError(place_ + ": " + std::string(kColumns[column]) + ": expected " + expected +
                      ", found " + in_quotes(cells_[column]));
  }

  template <typename Value, typename Parse>
  [[nodiscard]] Value name(std::size_t column, Parse parse, const std::string& expected) const {
    const std::optional<Value> value = parse(cells_[column]);
    if (!value) {
      fail(column, expected);
    }
    return *value;
  }

  [[nodiscard]] std::int64_t number(std::size_t column, std::int64_t min, std::int64_t max) const {
    const auto value = parse_number(cells_[column], min, max);
    if (!value) {
      fail(column, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    }
    return *value;
  }

  [[nodiscard]] std::optional<int> optional_number(std::size_t column, std::int64_t min,
                                                   std::int64_t max) const {
    if (column >= cells_.size() || cells_[column] == "-1") {
      return std::nullopt;
    }
    return static_cast<int>(number(column, min, max));
  }

  std::string place_;
  std::vector<std::string_view> cells_;
};

template <typename Value>
bool fits(const std::optional<Value>& wanted, Value value) {
  return !wanted || *wanted == value;
}

}  // namespace

TunerTable TunerTable::load(const std::filesystem::path& file) {
  return parse(read_whole_file(file, file.string(), kMaxTextBytes), file.string());
}

TunerTable TunerTable::parse(std::string_view text, const std::string& name) {
  TunerTable table;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    const std::string_view line = trimmed(whole.substr(0, whole.find('#')));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) {
      continue;
    }
    const auto cells = cells_of(line);
    if (cells.front() == "collective" || cells.front() == "collective_type") {
      continue;  // A header.
    }
    const std::string place = shortened(name) + ":" + std::to_string(line_number);
    table.rows_.push_back(RowReader(place, cells).read());
  }
  if (table.rows_.empty()) {
    throw ConfigError(shortened(name) + ": expected at least one row, found none");
  }
  return table;
}

const TunerRow* TunerTable::find(const Communicator& communicator, Function function, Bytes bytes,
                                 int operations) const {
  for (const TunerRow& row : rows_) {
    if (row.function == function && bytes.count() >= row.min_bytes &&
        bytes.count() <= row.max_bytes && fits(row.nodes, communicator.nodes) &&
        fits(row.ranks, communicator.ranks) && fits(row.operations, operations) &&
        fits(row.registered, false)) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace trainyard::nccl
