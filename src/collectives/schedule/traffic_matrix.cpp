// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/traffic_matrix.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"

namespace trainyard {

namespace {

// 4,096 ranks then have less than 2^62 bytes in all.
constexpr std::int64_t kMaxBytes = std::int64_t{256} << 30;
constexpr std::string_view kSeparators = " \t\r,";

class MatrixReader {
 public:
  MatrixReader(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  TrafficMatrix read() {
    while (!rest_.empty()) {
      ++line_;
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      read_line(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
    }
    if (rows_ == 0) {
      throw ConfigError(
          fmt::format("{}: expected a line of bytes for each rank, found none", name_));
    }
    if (rows_ != width_) {
      throw ConfigError(
          fmt::format("{}:{}: expected as many lines as numbers in a line, {}, found {}", name_,
                      line_, width_, rows_));
    }
    return {.ranks = static_cast<int>(width_), .bytes = std::move(bytes_)};
  }

 private:
  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw ConfigError(fmt::format("{}:{}:{}: {}", name_, line_, column + 1, what));
  }

  void read_line(std::string_view line) {
    line = line.substr(0, line.find('#'));
    std::size_t count = 0;
    for (std::size_t at = line.find_first_not_of(kSeparators); at != std::string_view::npos;
         at = line.find_first_not_of(kSeparators, at)) {
      const std::size_t end = std::min(line.find_first_of(kSeparators, at), line.size());
      bytes_.push_back(number(line.substr(at, end - at), at));
      at = end;
      ++count;
    }
    if (count == 0) {
      return;
    }
    if (rows_ > 0 && count != width_) {
      fail(0, fmt::format("expected {} numbers as in the lines before, found {}", width_, count));
    }
    width_ = count;
    if (++rows_ > width_) {
      fail(0, fmt::format("expected at most {} lines, as many as numbers in a line, found more",
                          width_));
    }
  }

  [[nodiscard]] std::int64_t number(std::string_view word, std::size_t column) const {
    const auto value = parse_number(word, std::int64_t{0}, kMaxBytes);
    if (!value) {
      fail(column, fmt::format("expected a number of bytes from 0 to {}, found {}", kMaxBytes,
                               in_quotes(word)));
    }
    return *value;
  }

  std::string_view rest_;
  const std::string& name_;
  int line_ = 0;
  std::size_t rows_ = 0;
  std::size_t width_ = 0;
  std::vector<std::int64_t> bytes_;
};

}  // namespace

Bytes TrafficMatrix::sent(int source) const {
  Bytes sum;
  for (int target = 0; target < ranks; ++target) {
    sum += at(source, target);
  }
  return sum;
}

Bytes TrafficMatrix::received(int target) const {
  Bytes sum;
  for (int source = 0; source < ranks; ++source) {
    sum += at(source, target);
  }
  return sum;
}

Bytes TrafficMatrix::largest() const {
  Bytes max;
  for (int rank = 0; rank < ranks; ++rank) {
    max = std::max({max, sent(rank), received(rank)});
  }
  return max;
}

TrafficMatrix read_traffic_matrix(std::string_view text, const std::string& name) {
  return MatrixReader(text, name).read();
}

}  // namespace trainyard
