// SPDX-License-Identifier: Apache-2.0
// The table of a sweep as its page needs it: what varies, the figures of each row, and which of
// these are worth seeing first.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/formats/table.h"

namespace trainyard {

struct HtmlSweep {
  struct Key {
    std::string name;
    std::vector<std::string> values;   // Numbers in rising order, others as they came.
    std::vector<double> numbers = {};  // Numbers of all values, if all are numbers.
  };
  struct Figure {
    std::string name;
    bool is_more_better = false;
  };
  std::vector<Key> keys = {};
  std::vector<Figure> figures = {};
  // Objects of `keys`, the index of the value of each key, and `figures`, numbers or null.
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  // The choice to begin with: keys of the axes, the figure of the lines, and what it is traded for.
  std::size_t x = 0;
  std::size_t y = 0;
  std::size_t first = 0;
  std::size_t second = 0;
};

// Draws a table whose first columns are what varies and whose last one is the error of a row. Rows
// with errors are left out. Where points have several rows, the columns that tell these apart are
// keys as well: sizes, algorithms, jobs.
[[nodiscard]] HtmlSweep html_sweep(const Table& table, std::size_t varied);

// Returns whether more of it is better, by its name: rates, shares of what could be, room. For all
// else less is better.
[[nodiscard]] bool is_more_better(const std::string& figure);

}  // namespace trainyard
