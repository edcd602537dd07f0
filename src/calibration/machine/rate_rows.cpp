// SPDX-License-Identifier: Apache-2.0
#include "calibration/machine/rate_rows.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace trainyard {
namespace {

constexpr double kMaxMicroseconds = 1e9;
// The bytes that turn bandwidths into times.
constexpr double kBytes = 1e9;
// An H200 holds its clock for about so long before the power limit takes it down: of the batches of
// a product that take 100 ms in all, the first ones ran at 788 and the last at 688 TFLOP/s.
constexpr double kBurst = 0.1e6;  // Microseconds.
// The harness repeats a kernel at least so long for each of its repetitions, in microseconds.
constexpr double kShortBatch = 200.0;

SimTime microseconds_of(double value) {
  return SimTime(std::llround(value * 1e6));
}

std::int64_t whole_number(const HarnessSample& sample, const std::string& name) {
  const double number = sample.number(name);
  return number >= 1.0 && number < 1e9 ? std::llround(number) : 0;
}

bool has_time(const HarnessSample& sample) {
  return sample.unit == "us" && sample.median > 0.0 && sample.median < kMaxMicroseconds;
}

std::optional<Precision> precision_of(std::string_view id) {
  for (std::size_t index = 0; index < kPrecisionCount; ++index) {
    const auto precision = static_cast<Precision>(index);
    if (row_of(precision).harness == id) {
      return precision;
    }
  }
  return std::nullopt;
}

std::optional<RateRow> product_row(const HarnessSample& sample) {
  const Gemm product{.m = whole_number(sample, "m"),
                     .n = whole_number(sample, "n"),
                     .k = whole_number(sample, "k")};
  if (sample.quantity != "matrix product time" || !has_time(sample) || product.m == 0 ||
      product.n == 0 || product.k == 0) {
    return std::nullopt;
  }
  return RateRow{.kind = RateRow::Kind::Product,
                 .text = fmt::format("m {}, n {}, k {}", product.m, product.n, product.k),
                 .product = product,
                 .measured = microseconds_of(sample.median)};
}

std::optional<RateRow> attention_row(const HarnessSample& sample) {
  const std::int64_t head = whole_number(sample, "head");
  const std::int64_t sequence = whole_number(sample, "sequence");
  const std::string direction = sample.text("direction");
  RateRow row{.kind = direction == "backward" ? RateRow::Kind::AttentionBackward
                                              : RateRow::Kind::AttentionForward,
              .text = fmt::format("{}, {} tokens, heads of {}", direction, sequence, head),
              .attention = {.sequences = whole_number(sample, "batch"),
                            .heads = whole_number(sample, "heads"),
                            .queries = sequence,
                            .keys = sequence,
                            .query_size = head,
                            .value_size = head,
                            .is_causal = sample.text("mask") != "none"},
              .measured = {}};
  if (sample.quantity != "attention time" || !has_time(sample) || head == 0 || sequence == 0 ||
      row.attention.sequences == 0 || row.attention.heads == 0 ||
      (direction != "forward" && direction != "backward")) {
    return std::nullopt;
  }
  row.measured = microseconds_of(sample.median);
  return row;
}

RateRow memory_row(std::string text, double gigabytes_per_second) {
  return {.kind = RateRow::Kind::Memory,
          .text = std::move(text),
          .bytes = kBytes,
          .measured = microseconds_of(kBytes / gigabytes_per_second / 1e3)};
}

std::optional<RateRow> elementwise_row(const HarnessSample& sample) {
  if (sample.quantity != "memory-bound bandwidth" || !(sample.median > 0.0)) {
    return std::nullopt;
  }
  return memory_row(fmt::format("{}, {} x {}", sample.text("kernel"),
                                whole_number(sample, "tokens"), whole_number(sample, "hidden")),
                    sample.median);
}

// The fastest of each kind; the harness counts the bytes that are written, or those that are read.
void add_memory_rows(const HarnessSet& set, RateTable& table) {
  static const std::map<std::string, double> kPasses{{"copy bandwidth", 2.0},
                                                     {"read bandwidth", 1.0},
                                                     {"write bandwidth", 1.0},
                                                     {"reduction bandwidth", 3.0}};
  std::map<std::string, double> fastest;
  for (const HarnessSample& sample : set.samples) {
    const auto passes = kPasses.find(sample.quantity);
    if (sample.id == "gpu.memory" && passes != kPasses.end() && sample.median > 0.0) {
      double& best = fastest[sample.quantity];
      best = std::max(best, sample.median * passes->second);
    }
  }
  for (const auto& [quantity, rate] : fastest) {
    table.rows.push_back(memory_row(quantity, rate));
  }
}

// Rate of the same product when warm, over the rate before.
double warmth(const HarnessSet& set, const std::string& id) {
  for (const HarnessSample& warm : set.samples) {
    if (warm.id != id || warm.quantity != "matrix product rate" ||
        !(warm.number("seconds_before") > 0.0)) {
      continue;
    }
    for (const HarnessSample& burst : set.samples) {
      if (burst.id == id && burst.quantity == warm.quantity &&
          burst.number("seconds_before") == 0.0 && burst.number("m") == warm.number("m") &&
          burst.number("n") == warm.number("n") && burst.number("k") == warm.number("k") &&
          burst.median > 0.0 && warm.median > 0.0) {
        return std::min(1.0, warm.median / burst.median);
      }
    }
  }
  return 1.0;
}

// A product that was repeated for long was warm itself.
void warm_up(RateTable& table, double repetitions) {
  for (RateRow& row : table.rows) {
    const double each = static_cast<double>(row.measured.picoseconds()) / 1e6;
    const double took = repetitions * std::max(each, kShortBatch);
    const double still_cold = std::max(0.0, 1.0 - took / kBurst);
    row.measured = microseconds_of(each / std::pow(table.warm, still_cold));
  }
}

void add_table(RateTable table, double repetitions, std::vector<RateTable>& tables) {
  if (table.rows.empty()) {
    return;
  }
  warm_up(table, repetitions);
  std::ranges::stable_sort(table.rows, {}, &RateRow::measured);
  tables.push_back(std::move(table));
}

}  // namespace

std::vector<RateTable> rate_tables(const HarnessSet& set) {
  std::map<std::string, RateTable> by_id;
  const auto add = [&](const HarnessSample& sample, const std::optional<RateRow>& row) {
    if (row) {
      by_id[sample.id].rows.push_back(*row);
    }
  };
  for (const HarnessSample& sample : set.samples) {
    if (precision_of(sample.id)) {
      add(sample, product_row(sample));
    } else if (sample.id == "gpu.attention") {
      add(sample, attention_row(sample));
    } else if (sample.id == "gpu.elementwise") {
      add(sample, elementwise_row(sample));
    }
  }
  add_memory_rows(set, by_id["gpu.memory"]);
  std::vector<RateTable> tables;
  for (auto& [id, table] : by_id) {
    table.id = id;
    if (const std::optional<Precision> precision = precision_of(id)) {
      table.precision = *precision;
      table.warm = warmth(set, id);
    }
    add_table(std::move(table), static_cast<double>(set.repetitions + set.warmup), tables);
  }
  return tables;
}

SimTime predicted_time(const RateRow& row, const ComputeRates& rates) {
  const OperatorTimes times(rates);
  switch (row.kind) {
    case RateRow::Kind::Product:
      return times.linear(row.product);
    case RateRow::Kind::AttentionForward:
      return times.attention_forward(row.attention);
    case RateRow::Kind::AttentionBackward:
      return times.attention_backward(row.attention);
    case RateRow::Kind::Memory:
      break;
  }
  return times.memory(row.bytes);
}

}  // namespace trainyard
