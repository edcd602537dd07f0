// SPDX-License-Identifier: Apache-2.0
#include "report/html/html_sweep.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "report/formats/json.h"

namespace trainyard {
namespace {

using Cells = std::vector<Cell>;

std::optional<double> number_of(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell.value)) {
    return static_cast<double>(*whole);
  }
  const auto* number = std::get_if<double>(&cell.value);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string text_of(const Cell& cell) {
  return std::holds_alternative<std::monostate>(cell.value) ? "none" : cell.text;
}

// Columns of results whose values say which row of a point it is.
bool tells_apart(const Column& column, const std::vector<const Cells*>& rows, std::size_t at) {
  constexpr std::array<std::string_view, 3> kCounted{"size_bytes", "job", "group"};
  return std::find(kCounted.begin(), kCounted.end(), column.key) != kCounted.end() ||
         std::any_of(rows.begin(), rows.end(), [&](const Cells* row) {
           return std::holds_alternative<std::string>((*row)[at].value);
         });
}

std::size_t different_rows(const std::vector<const Cells*>& rows,
                           const std::vector<std::size_t>& columns) {
  std::set<std::vector<std::string>> seen;
  for (const Cells* row : rows) {
    std::vector<std::string> key;
    for (const std::size_t column : columns) {
      key.push_back(text_of((*row)[column]));
    }
    seen.insert(std::move(key));
  }
  return seen.size();
}

// Returns what varies, and as many more columns as it takes for each row to have a place of its
// own.
std::vector<std::size_t> columns_of_keys(const Table& table, const std::vector<const Cells*>& rows,
                                         std::size_t varied) {
  std::vector<std::size_t> keys;
  for (std::size_t column = 0; column < varied; ++column) {
    keys.push_back(column);
  }
  std::size_t different = different_rows(rows, keys);
  for (std::size_t column = varied; column + 1 < table.columns().size(); ++column) {
    if (different == rows.size()) {
      break;
    }
    if (tells_apart(table.columns()[column], rows, column)) {
      keys.push_back(column);
      const std::size_t now = different_rows(rows, keys);
      if (now == different) {
        keys.pop_back();
      }
      different = now;
    }
  }
  return keys;
}

HtmlSweep::Key key_of(const Column& column, const std::vector<const Cells*>& rows, std::size_t at) {
  HtmlSweep::Key key{.name = column.key, .values = {}};
  std::map<double, std::string> numbers;
  bool has_numbers = true;
  for (const Cells* row : rows) {
    const Cell& cell = (*row)[at];
    const std::string text = text_of(cell);
    if (std::find(key.values.begin(), key.values.end(), text) != key.values.end()) {
      continue;
    }
    key.values.push_back(text);
    const std::optional<double> number = number_of(cell);
    has_numbers = has_numbers && number && numbers.try_emplace(*number, text).second;
  }
  if (has_numbers) {
    key.values.clear();
    for (const auto& [number, text] : numbers) {
      key.values.push_back(text);
      key.numbers.push_back(number);
    }
  }
  return key;
}

// Numbers that are not the same everywhere; if all are, all.
std::vector<std::size_t> figure_columns(const Table& table, const std::vector<const Cells*>& rows,
                                        const std::vector<std::size_t>& keys, std::size_t varied) {
  std::vector<std::size_t> all;
  std::vector<std::size_t> changing;
  for (std::size_t column = varied; column + 1 < table.columns().size(); ++column) {
    if (std::find(keys.begin(), keys.end(), column) != keys.end()) {
      continue;
    }
    std::set<double> values;
    for (const Cells* row : rows) {
      if (const auto number = number_of((*row)[column])) {
        values.insert(*number);
      }
    }
    if (!values.empty()) {
      all.push_back(column);
    }
    if (values.size() > 1) {
      changing.push_back(column);
    }
  }
  return changing.empty() ? all : changing;
}

// The figure that a command is mostly run for, and what it is mostly traded for.
constexpr std::array<std::string_view, 7> kFirst{"step_time_s", "busbw_gb_per_s", "fct_p99_us",
                                                 "slowdown",    "rate_gb_per_s",  "power_kw",
                                                 "time_us"};
constexpr std::array<std::string_view, 6> kSecond{"price_of_million_tokens",
                                                  "energy_of_token_j",
                                                  "memory_peak_gib",
                                                  "time_us",
                                                  "latency_us",
                                                  "price"};

std::optional<std::size_t> place_of_any(const std::vector<HtmlSweep::Figure>& figures,
                                        std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(figures, name, &HtmlSweep::Figure::name);
    if (found != figures.end()) {
      return static_cast<std::size_t>(found - figures.begin());
    }
  }
  return std::nullopt;
}

void choose_first(HtmlSweep& sweep) {
  const auto rank = [&](std::size_t key) {
    const HtmlSweep::Key& of = sweep.keys[key];
    return std::make_pair(!of.numbers.empty(), of.values.size());
  };
  for (std::size_t key = 1; key < sweep.keys.size(); ++key) {
    if (rank(key) > rank(sweep.x)) {
      sweep.x = key;
    }
  }
  sweep.y = sweep.x == 0 ? std::min<std::size_t>(1, sweep.keys.size() - 1) : 0;
  for (std::size_t key = 0; key < sweep.keys.size(); ++key) {
    if (key != sweep.x && sweep.keys[key].values.size() > sweep.keys[sweep.y].values.size()) {
      sweep.y = key;
    }
  }
  sweep.first = place_of_any(sweep.figures, kFirst).value_or(0);
  const std::size_t next = sweep.first == 0 && sweep.figures.size() > 1 ? 1 : 0;
  sweep.second = place_of_any(sweep.figures, kSecond).value_or(next);
}

}  // namespace

bool is_more_better(const std::string& figure) {
  constexpr std::array<std::string_view, 11> kParts{"per_s",    "mfu",        "tflops",    "algbw",
                                                    "busbw",    "goodput",    "rate_",     "fair",
                                                    "headroom", "efficiency", "tokens_per"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return figure.find(part) != std::string::npos; });
}

HtmlSweep html_sweep(const Table& table, std::size_t varied) {
  std::vector<const Cells*> rows;
  for (const Cells& row : table.rows()) {
    if (std::holds_alternative<std::monostate>(row.back().value)) {
      rows.push_back(&row);
    }
  }
  HtmlSweep sweep;
  if (rows.empty()) {
    return sweep;
  }
  const std::vector<std::size_t> keys = columns_of_keys(table, rows, varied);
  const std::vector<std::size_t> figures = figure_columns(table, rows, keys, varied);
  for (const std::size_t column : keys) {
    sweep.keys.push_back(key_of(table.columns()[column], rows, column));
  }
  for (const std::size_t column : figures) {
    const std::string& name = table.columns()[column].key;
    sweep.figures.push_back({.name = name, .is_more_better = is_more_better(name)});
  }
  for (const Cells* row : rows) {
    Json made{{"keys", Json::array()}, {"figures", Json::array()}};
    for (std::size_t index = 0; index < keys.size(); ++index) {
      const std::vector<std::string>& values = sweep.keys[index].values;
      const auto place = std::find(values.begin(), values.end(), text_of((*row)[keys[index]]));
      made["keys"].push_back(static_cast<std::size_t>(place - values.begin()));
    }
    for (const std::size_t column : figures) {
      const std::optional<double> number = number_of((*row)[column]);
      made["figures"].push_back(number ? Json(*number) : Json());
    }
    sweep.rows.push_back(std::move(made));
  }
  choose_first(sweep);
  return sweep;
}

}  // namespace trainyard
