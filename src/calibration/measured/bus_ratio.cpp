// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/bus_ratio.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>

namespace trainyard {
namespace {

// Above all factors: all_reduce comes near to 2.
constexpr double kMaxFactor = 2.1;
// Rounding of our own arithmetic.
constexpr double kHair = 1e-9;
// Some factor of two or more ranks is 1/2, none is less.
constexpr double kMinFactor = 0.5;

std::optional<BusRatio> ratio_of(const PrintedTime& row) {
  if (!row.algbw_gbps || !row.busbw_gbps) {
    return std::nullopt;
  }
  const PrintedNumber& algbw = *row.algbw_gbps;
  const PrintedNumber& busbw = *row.busbw_gbps;
  if (algbw.value <= 2.0 * algbw.half_step) {
    return std::nullopt;  // It has no digit.
  }
  return BusRatio{
      .min = std::max(0.0, busbw.value - busbw.half_step) / (algbw.value + algbw.half_step),
      .max = (busbw.value + busbw.half_step) / (algbw.value - algbw.half_step)};
}

bool allows(const BusRatio& ratio, double factor) {
  return ratio.min <= factor + kHair && factor <= ratio.max + kHair;
}

std::string text_of(Operation operation, const RankRange& ranks) {
  const std::string name(to_string(operation));
  if (ranks.last == kMaxRatioRanks) {
    return ranks.first <= 2 ? name : fmt::format("{} of {} ranks or more", name, ranks.first);
  }
  return ranks.first == ranks.last
             ? fmt::format("{} of {} ranks", name, ranks.first)
             : fmt::format("{} of {} to {} ranks", name, ranks.first, ranks.last);
}

}  // namespace

std::optional<BusRatio> bus_ratio_of(std::span<const PrintedRow> rows) {
  std::vector<BusRatio> all;
  for (const PrintedRow& row : rows) {
    if (const std::optional<BusRatio> ratio = ratio_of(row.out_of_place)) {
      all.push_back(*ratio);
    }
  }
  std::ranges::sort(all, {}, &BusRatio::min);
  std::vector<double> ends;
  for (const BusRatio& one : all) {
    ends.push_back(one.max);
  }
  std::ranges::sort(ends);
  // Most rows allow a factor at which one of them begins.
  std::optional<BusRatio> best;
  std::size_t most = 0;
  std::size_t ended = 0;
  for (std::size_t begun = 1; begun <= all.size(); ++begun) {
    const double factor = all[begun - 1].min;
    while (ends[ended] + kHair < factor) {
      ++ended;
    }
    if (begun - ended > most) {
      most = begun - ended;
      best = {.min = factor, .max = ends[ended]};
    }
  }
  return 4 * most >= 3 * all.size() && best && best->max < kMaxFactor ? best : std::nullopt;
}

std::optional<RankRange> ranks_of(const BusRatio& ratio, Operation operation) {
  std::optional<RankRange> range;
  for (int ranks = 1; ranks <= kMaxRatioRanks; ++ranks) {
    if (allows(ratio, bus_factor(operation, ranks))) {
      range = {.first = range ? range->first : ranks, .last = ranks};
    } else if (range) {
      break;
    }
  }
  return range;
}

bool is_of_one_rank(const BusRatio& ratio) {
  return ratio.max < kMinFactor;
}

std::optional<std::string> ratio_says_otherwise(const BusRatio& ratio, Operation operation,
                                                std::optional<int> ranks) {
  if (is_of_one_rank(ratio)) {
    return "one rank: busbw is 0 on every row, as each process ran alone";
  }
  const std::optional<RankRange> own = ranks_of(ratio, operation);
  if (own && (!ranks || (own->first <= *ranks && *ranks <= own->last))) {
    return std::nullopt;
  }
  std::vector<std::string> texts;
  if (own) {
    texts.push_back(text_of(operation, *own));
  } else {
    for (const Operation other : kOperations) {
      const std::optional<RankRange> range = ranks_of(ratio, other);
      if (range && range->last > 1 && other != Operation::AllToAllV) {
        texts.push_back(text_of(other, *range));
      }
    }
  }
  const std::string said =
      texts.empty() ? "another operation" : fmt::format("{}", fmt::join(texts, ", "));
  return fmt::format("{} (busbw / algbw is {:.3g})", said, (ratio.min + ratio.max) / 2.0);
}

}  // namespace trainyard
