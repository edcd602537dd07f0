// SPDX-License-Identifier: Apache-2.0
// One table, three forms: aligned text for people, CSV and JSON for programs.
//
// A cell has a text and a typed value. The text form prints the texts; CSV and JSON print the
// values under the columns' keys, which carry their units ("time_us"), with all their digits.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/units.h"

namespace trainyard {

enum class Format { Table, Csv, Json };
// The words of --format, in the order of Format.
inline constexpr std::array<std::string_view, 3> kFormats{"table", "csv", "json"};
[[nodiscard]] std::optional<Format> parse_format(std::string_view name);

// The formats in which a column, a figure or a table appears. A page is the HTML of --report.
enum class Shown : std::uint8_t {
  Text = 1,
  Csv = 2,
  Json = 4,
  Page = 8,
  People = Text | Page,
  Programs = Csv | Json,
  NotPage = Text | Programs,
  All = People | Programs
};
[[nodiscard]] constexpr Shown operator|(Shown one, Shown other) {
  return static_cast<Shown>(static_cast<unsigned>(one) | static_cast<unsigned>(other));
}
[[nodiscard]] constexpr bool appears_in(Shown shown, Shown format) {
  return (static_cast<unsigned>(shown) & static_cast<unsigned>(format)) != 0;
}

enum class Align { Left, Right };

struct Column {
  std::string name;  // For the text form.
  std::string key;   // For CSV and JSON, with the unit.
  Align align = Align::Right;
  std::string unit = {};      // Shown below the name in the text form; may be empty.
  std::size_t min_width = 0;  // Width in the text form.
  Shown shown = Shown::All;
};

// monostate is "no value": an empty CSV field, null in JSON.
using CellValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

struct Cell {
  std::string text;
  CellValue value;

  // A cell whose text is its value.
  static Cell of(std::string_view text) { return {std::string(text), std::string(text)}; }
  static Cell of(std::int64_t value) { return {std::to_string(value), value}; }
  static Cell count(std::integral auto value) { return of(static_cast<std::int64_t>(value)); }
  // "12.3", with all digits for programs.
  static Cell number(double value, int decimals);
  // "-" in the text form: never blank, so that every line has as many words as columns.
  static Cell none() { return {"-", std::monostate()}; }
  // Cells of what may be missing.
  static Cell number(const std::optional<double>& value, int decimals) {
    return value ? number(*value, decimals) : none();
  }
  static Cell any(std::string_view text) { return text.empty() ? none() : of(text); }
  static Cell yes_no(bool value) { return {value ? "yes" : "no", value}; }
};

// A column and its cell of one row.
struct Field {
  Column column;
  Cell cell;
};

// "12.94 s", "1.888 ms", "52.1 us".
[[nodiscard]] std::string short_time(SimTime time);
// A size as people read it: "1.5 GiB".
[[nodiscard]] std::string short_size(Bytes size);

[[nodiscard]] Column column(std::string name, std::string key, Align align = Align::Right,
                            std::string unit = "");

// Columns whose names are their keys, for programs.
[[nodiscard]] std::vector<Column> key_columns(std::initializer_list<const char*> keys);

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // A row has as many cells as there are columns.
  void add_row(std::vector<Cell> cells);

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<std::vector<Cell>>& rows() const { return rows_; }
  // The indices of the columns that appear in `format`.
  [[nodiscard]] std::vector<std::size_t> columns_in(Shown format) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// A table of `items` whose columns stand beside their cells: `fields_of(item)` lists them, the same
// columns for each item, and for `model`.
template <typename Items, typename FieldsOf>
[[nodiscard]] Table table_of(const Items& items, const FieldsOf& fields_of,
                             const typename Items::value_type& model = {}) {
  std::vector<Column> columns;
  for (Field& field : fields_of(model)) {
    columns.push_back(std::move(field.column));
  }
  Table table(std::move(columns));
  for (const auto& item : items) {
    std::vector<Cell> cells;
    for (Field& field : fields_of(item)) {
      cells.push_back(std::move(field.cell));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// Tells whether the text form's header lines begin with '#', as those of nccl-tests do.
enum class HeaderMark { None, Hash };

// Columns two blanks apart, lines without trailing blanks.
[[nodiscard]] std::string render_text(const Table& table, HeaderMark mark = HeaderMark::None);
// RFC 4180, except that lines end in \n: a header of keys, fields quoted where needed.
[[nodiscard]] std::string render_csv(const Table& table);
// JSON is an array of objects, keys in column order.
[[nodiscard]] std::string render(const Table& table, Format format);

}  // namespace trainyard
