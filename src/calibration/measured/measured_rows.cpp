// SPDX-License-Identifier: Apache-2.0
// Completing and checking measured rows.
//
// A consistent row satisfies algbw = bytes / time and busbw = algbw x factor. Each printed number
// represents an interval (PrintedNumber), so the test is whether intervals overlap: exact for a
// program that computed the row from one unrounded time, whatever number of digits it printed.
#include "calibration/measured/measured_rows.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <map>
#include <string>

#include "calibration/measured/bus_ratio.h"
#include "sim/numbers.h"

namespace trainyard {
namespace {

// Above this ratio of the two columns, one of them is a spike or the buffers are treated apart.
constexpr double kColumnsApart = 1.25;
// A time computed from a bandwidth is kept if rounding leaves it this exact.
constexpr double kCoarsestRounding = 0.05;
// The longest time taken, a month: SimTime holds three and a half.
constexpr double kLongestTimeUs = 30.0 * 86400.0 * 1e6;

// Counts rows that share a remark.
class Tally {
 public:
  explicit Tally(std::string_view what) : what_(what) {}
  void add(Bytes size) {
    if (count_ == 0) {
      first_ = size;
    }
    ++count_;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  void report(std::size_t rows, std::vector<std::string>& remarks) const {
    if (count_ > 0) {
      remarks.push_back(
          fmt::format("{} of {} rows: {} (first: {} B)", count_, rows, what_, first_.count()));
    }
  }

 private:
  std::string_view what_;
  std::size_t count_ = 0;
  Bytes first_;
};

double size_of(Bytes size) {
  return static_cast<double>(size.count());
}

// bytes / us / 1000 is GB/s.
double bandwidth_gbps(Bytes size, double time_us) {
  return size_of(size) / time_us / 1e3;
}

bool lacks_bandwidth(const PrintedTime& row) {
  return !row.algbw_gbps || !row.busbw_gbps;
}

bool algbw_agrees(Bytes size, const PrintedTime& row) {
  if (!row.time_us || !row.algbw_gbps) {
    return true;
  }
  const double longest = row.time_us->value + row.time_us->half_step;
  const double shortest = row.time_us->value - row.time_us->half_step;
  const double min = bandwidth_gbps(size, longest);
  const double max = shortest > 0.0 ? bandwidth_gbps(size, shortest) : HUGE_VAL;
  const PrintedNumber& algbw = *row.algbw_gbps;
  return max >= algbw.value - algbw.half_step && min <= algbw.value + algbw.half_step;
}

bool busbw_agrees(const PrintedTime& row, std::optional<double> factor) {
  if (!row.algbw_gbps || !row.busbw_gbps || !factor) {
    return true;
  }
  const double expected = row.algbw_gbps->value * *factor;
  const double tolerance = row.algbw_gbps->half_step * *factor + row.busbw_gbps->half_step;
  return std::abs(expected - row.busbw_gbps->value) <= tolerance;
}

// The bandwidth that a missing time can be computed from.
std::optional<PrintedNumber> algbw_of(const PrintedTime& row, std::optional<double> factor) {
  if (row.algbw_gbps) {
    return row.algbw_gbps;
  }
  if (row.busbw_gbps && factor) {
    return PrintedNumber{.value = row.busbw_gbps->value / *factor,
                         .half_step = row.busbw_gbps->half_step / *factor};
  }
  return std::nullopt;
}

bool usable(const PrintedTime& row, std::optional<double> factor) {
  if (row.time_us) {
    return row.time_us->value > 0.0 && row.time_us->value < kLongestTimeUs;
  }
  return algbw_of(row, factor).has_value();
}

// Returns whether the time is missing and the bandwidth rounded too much to compute it from; 0.00
// always is.
bool is_coarse(const PrintedTime& row, std::optional<double> factor) {
  if (row.time_us) {
    return false;
  }
  const PrintedNumber bandwidth = algbw_of(row, factor).value();
  return bandwidth.half_step > kCoarsestRounding * bandwidth.value;
}

// `row` must be usable and not coarse.
MeasuredTime complete(Bytes size, const PrintedTime& row, std::optional<double> factor) {
  const std::optional<PrintedNumber> printed_algbw = algbw_of(row, factor);
  const double time_us =
      row.time_us ? row.time_us->value : size_of(size) / printed_algbw.value().value / 1e3;
  const double algbw = printed_algbw ? printed_algbw->value : bandwidth_gbps(size, time_us);
  const double busbw = row.busbw_gbps ? row.busbw_gbps->value : algbw * factor.value_or(0.0);
  return {.time = SimTime(std::llround(time_us * 1e6)), .algbw_gbps = algbw, .busbw_gbps = busbw};
}

void note_repeated_sizes(MeasuredTable& table) {
  std::map<Bytes, int> counts;
  for (const MeasuredRow& row : table.rows) {
    ++counts[row.size];
  }
  for (const auto& [size, count] : counts) {
    if (count > 1) {
      table.remarks.push_back(
          fmt::format("{} B is measured {} times: the row with the median time is compared",
                      size.count(), count));
    }
  }
}

}  // namespace

std::optional<PrintedNumber> parse_printed(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') {
    return std::nullopt;  // No sign, no "inf", no "nan".
  }
  const auto value = parse_number<double>(text);
  if (!value) {
    return std::nullopt;
  }
  PrintedNumber number{.value = *value};
  if (text.find_first_of("eE") != std::string_view::npos) {
    number.half_step = 0.005 * number.value;  // nccl-tests never prints times so; be lenient.
    return number;
  }
  const std::size_t point = text.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : text.size() - point - 1;
  // A hair more than half a step, for the rounding of our own arithmetic.
  number.half_step = 0.50001 * std::pow(10.0, -static_cast<double>(decimals));
  return number;
}

std::optional<std::string_view> unusable(const PrintedRow& row, std::optional<double> factor) {
  if (!usable(row.out_of_place, factor)) {
    return "neither a positive time nor a bandwidth to compute it from";
  }
  if (row.in_place && !usable(*row.in_place, factor)) {
    return "neither a positive in-place time nor a bandwidth to compute it from";
  }
  return std::nullopt;
}

std::optional<double> factor_of(const MeasuredTable& table) {
  if (!table.operation || !table.ranks) {
    return std::nullopt;
  }
  const double factor = bus_factor(*table.operation, *table.ranks);
  return factor > 0.0 ? std::optional(factor) : std::nullopt;
}

void add_rows(const std::vector<PrintedRow>& rows, MeasuredTable& table) {
  const std::optional<double> factor = factor_of(table);
  Tally coarse("left out, no time and a bandwidth rounded by more than 5 %");
  Tally no_time("time not printed, computed from the bandwidth");
  Tally no_bandwidth("a bandwidth not printed, computed");
  Tally wrong_algbw("algbw does not agree with bytes / time");
  Tally wrong_busbw("busbw does not agree with algbw and the number of ranks");
  Tally columns_apart("out-of-place and in-place times differ by more than a quarter");
  for (const PrintedRow& printed : rows) {
    const PrintedTime& out = printed.out_of_place;
    if (is_coarse(out, factor)) {
      coarse.add(printed.size);
      continue;
    }
    const MeasuredTime time = complete(printed.size, out, factor);
    MeasuredRow row{.size = printed.size,
                    .time = time.time,
                    .algbw_gbps = time.algbw_gbps,
                    .busbw_gbps = time.busbw_gbps,
                    .in_place = std::nullopt,
                    .line = printed.line};
    if (printed.in_place && !is_coarse(*printed.in_place, factor)) {
      row.in_place = complete(printed.size, *printed.in_place, factor);
      const double ratio = row.time / row.in_place->time;
      if (ratio > kColumnsApart || ratio < 1.0 / kColumnsApart) {
        columns_apart.add(printed.size);
      }
    }
    if (!out.time_us) {
      no_time.add(printed.size);
    } else if (lacks_bandwidth(out) || (printed.in_place && lacks_bandwidth(*printed.in_place))) {
      no_bandwidth.add(printed.size);
    }
    if (!algbw_agrees(printed.size, out)) {
      wrong_algbw.add(printed.size);
    }
    if (!busbw_agrees(out, factor)) {
      wrong_busbw.add(printed.size);
    }
    table.rows.push_back(row);
  }
  for (const Tally* const tally :
       {&coarse, &no_time, &no_bandwidth, &wrong_algbw, &wrong_busbw, &columns_apart}) {
    tally->report(rows.size(), table.remarks);
  }
  note_repeated_sizes(table);
  // Old nccl-tests divided other bytes by the time and left the factor out.
  if (4 * wrong_algbw.count() <= rows.size()) {
    table.bus_ratio = bus_ratio_of(rows);
  }
}

}  // namespace trainyard
