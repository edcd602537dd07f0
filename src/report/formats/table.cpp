// SPDX-License-Identifier: Apache-2.0
// The three writers of a table.
#include "report/formats/table.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "report/formats/json.h"
#include "sim/check.h"

namespace trainyard {
namespace {

std::vector<std::size_t> column_widths(const Table& table, const std::vector<std::size_t>& shown) {
  std::vector<std::size_t> widths;
  for (const std::size_t i : shown) {
    const Column& column = table.columns()[i];
    std::size_t width = std::max({column.min_width, column.name.size(), column.unit.size()});
    for (const std::vector<Cell>& row : table.rows()) {
      width = std::max(width, row[i].text.size());
    }
    widths.push_back(width);
  }
  return widths;
}

// Appends one line of the columns `shown`; `text_of(i)` is the text of column i.
template <typename TextOf>
void append_line(const Table& table, const std::vector<std::size_t>& shown,
                 const std::vector<std::size_t>& widths, TextOf text_of, std::string& out) {
  std::string line;
  for (std::size_t place = 0; place < shown.size(); ++place) {
    const std::size_t i = shown[place];
    const std::string& text = text_of(i);
    const std::string padding(widths[place] - text.size(), ' ');
    line += place == 0 ? "" : "  ";
    line += table.columns()[i].align == Align::Right ? padding + text : text + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

std::string shortest(double value) {
  if (!std::isfinite(value)) {
    return "";
  }
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  CHECK(error == std::errc(), "a double needs at most 24 characters");
  return {buffer.data(), end};
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string result = "\"";
  for (const char c : text) {
    result += c == '"' ? "\"\"" : std::string(1, c);
  }
  return result + '"';
}

struct CsvField {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return shortest(value); }
  std::string operator()(const std::string& value) const { return csv_text(value); }
};

struct JsonValue {
  Json operator()(std::monostate) const { return nullptr; }
  template <typename Value>
  Json operator()(const Value& value) const {
    return value;
  }
};

}  // namespace

std::optional<Format> parse_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name);
  return found == kFormats.end() ? std::nullopt
                                 : std::optional(static_cast<Format>(found - kFormats.begin()));
}

Cell Cell::number(double value, int decimals) {
  return {fmt::format("{:.{}f}", value, decimals), value};
}

std::string short_time(SimTime time) {
  const double seconds = time.seconds();
  return seconds >= 0.1    ? fmt::format("{:.4g} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.4g} ms", seconds * 1e3)
                           : fmt::format("{:.4g} us", seconds * 1e6);
}

std::string short_size(Bytes size) {
  const auto count = static_cast<double>(size.count());
  return size >= gib(1)   ? fmt::format("{:.4g} GiB", gibibytes(count))
         : size >= mib(1) ? fmt::format("{:.4g} MiB", count / static_cast<double>(mib(1).count()))
                          : fmt::format("{:.4g} KiB", count / static_cast<double>(kib(1).count()));
}

Column column(std::string name, std::string key, Align align, std::string unit) {
  return {.name = std::move(name), .key = std::move(key), .align = align, .unit = std::move(unit)};
}

std::vector<Column> key_columns(std::initializer_list<const char*> keys) {
  std::vector<Column> columns;
  for (const char* const key : keys) {
    columns.push_back(column(key, key));
  }
  return columns;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  CHECK(!columns_.empty(), "a table needs a column");
}

void Table::add_row(std::vector<Cell> cells) {
  CHECK(cells.size() == columns_.size(), "a row has as many cells as there are columns");
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::columns_in(Shown format) const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (appears_in(columns_[i].shown, format)) {
      indices.push_back(i);
    }
  }
  CHECK(!indices.empty(), "a table needs a column in each format that has it");
  return indices;
}

std::string render_text(const Table& table, HeaderMark mark) {
  const std::vector<std::size_t> shown = table.columns_in(Shown::Text);
  std::vector<std::size_t> widths = column_widths(table, shown);
  const Column& first = table.columns()[shown.front()];
  if (mark == HeaderMark::Hash) {
    // Room for "# " before the names. The first column must be right-aligned for it to stay free.
    CHECK(first.align == Align::Right, "a marked header needs a right-aligned first column");
    widths[0] = std::max(widths[0], std::max(first.name.size(), first.unit.size()) + 2);
  }
  std::string out;
  const auto append_header = [&](auto text_of) {
    const std::size_t begin = out.size();
    append_line(table, shown, widths, text_of, out);
    if (mark == HeaderMark::Hash) {
      out[begin] = '#';
    }
  };
  append_header([&](std::size_t i) -> const std::string& { return table.columns()[i].name; });
  const bool has_units = std::any_of(
      shown.begin(), shown.end(), [&](std::size_t i) { return !table.columns()[i].unit.empty(); });
  if (has_units) {
    append_header([&](std::size_t i) -> const std::string& { return table.columns()[i].unit; });
  }
  for (const std::vector<Cell>& row : table.rows()) {
    append_line(
        table, shown, widths, [&](std::size_t i) -> const std::string& { return row[i].text; },
        out);
  }
  return out;
}

std::string render_csv(const Table& table) {
  const std::vector<std::size_t> shown = table.columns_in(Shown::Csv);
  std::string out;
  const auto append_record = [&](auto field_of) {
    for (std::size_t place = 0; place < shown.size(); ++place) {
      out += (place == 0 ? "" : ",") + field_of(shown[place]);
    }
    out += '\n';
  };
  append_record([&](std::size_t i) { return csv_text(table.columns()[i].key); });
  for (const std::vector<Cell>& row : table.rows()) {
    append_record([&](std::size_t i) { return std::visit(CsvField{}, row[i].value); });
  }
  return out;
}

Json to_json(const CellValue& value) {
  return std::visit(JsonValue{}, value);
}

Json to_json(const Table& table) {
  const std::vector<std::size_t> shown = table.columns_in(Shown::Json);
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows()) {
    Json object = Json::object();
    for (const std::size_t i : shown) {
      object[table.columns()[i].key] = to_json(row[i].value);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string render(const Table& table, Format format) {
  switch (format) {
    case Format::Table:
      return render_text(table);
    case Format::Csv:
      return render_csv(table);
    case Format::Json:
      return to_text(to_json(table));
  }
  CHECK(false, "unknown format");
}

}  // namespace trainyard
