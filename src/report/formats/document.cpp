// SPDX-License-Identifier: Apache-2.0
#include "report/formats/document.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "report/formats/json.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// How the text shows times of a unit.
struct TimeForm {
  std::string_view name;
  int decimals = 0;
  std::size_t width = 0;
};
constexpr std::array<TimeForm, 3> kTimeForms{TimeForm{"s", 4, 10}, {"ms", 4, 10}, {"us", 3, 13}};

double time_in(SimTime time, TimeUnit unit) {
  switch (unit) {
    case TimeUnit::Seconds:
      return time.seconds();
    case TimeUnit::Milliseconds:
      return 1e3 * time.seconds();
    case TimeUnit::Microseconds:
      return time.microseconds();
  }
  CHECK(false, "unknown unit of time");
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

class TextForm {
 public:
  explicit TextForm(const Document& document) : value_end_(document.value_end) {
    for (const std::string& line : document.heading) {
      text_ += line.empty() ? "#\n" : "# " + one_line(line) + "\n";
    }
    for (const auto& entry : document.entries) {
      std::visit(*this, entry);
    }
    text_ += parts_;
    for (const std::string& note : document.notes) {
      text_ += "# Note: " + one_line(note) + "\n";
    }
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

  void operator()(const Figure& figure) {
    if (figure.label.empty() || !appears_in(figure.shown, Shown::Text)) {
      return;
    }
    text_ += std::exchange(follows_table_, false) ? "\n" : "";
    const std::size_t width = value_end_ - std::min(value_end_, figure.label.size());
    text_ += figure.label + fmt::format("{:>{}}", " " + figure.cell.text, width) +
             value_text({.unit = figure.unit, .remark = figure.remark}) + "\n";
  }
  template <typename Other>
  void operator()(const Other& /*other*/) {}
  void operator()(const Lines& lines) {
    text_ += text_.empty() || lines.title.empty() ? "" : "\n";
    text_ += lines.title.empty() ? "" : lines.title + "\n";
    for (const std::string& line : lines.lines) {
      text_ += "  " + line + "\n";
    }
  }
  void operator()(const Parts& parts) {
    const TimeForm& form = kTimeForms.at(static_cast<std::size_t>(parts.unit));
    Table table({{.name = "part", .key = "part", .align = Align::Left, .min_width = 12},
                 {.name = "time",
                  .key = "time",
                  .unit = fmt::format("({})", form.name),
                  .min_width = form.width},
                 {.name = "share", .key = "share", .unit = "(%)", .min_width = 7}});
    for (const auto& [name, time] : parts.times) {
      if (time > SimTime()) {
        table.add_row({Cell::of(name), Cell::number(time_in(time, parts.unit), form.decimals),
                       Cell::number(100.0 * (time / parts.whole), 2)});
      }
    }
    parts_ += "\n" + render_text(table);
  }
  void operator()(const NamedTable& named) {
    if (!named.appears(Shown::Text)) {
      return;
    }
    text_ += named.is_apart ? "\n" : "";
    text_ += named.title.empty() ? "" : "# " + named.title + "\n";
    text_ += render_text(named.table, named.mark);
    for (const std::string& remark : named.remarks) {
      text_ += "# " + remark + "\n";
    }
    follows_table_ = true;
  }

 private:
  std::size_t value_end_;
  std::string text_;
  std::string parts_;
  bool follows_table_ = false;
};

// One row of all figures.
class RowForm {
 public:
  explicit RowForm(const Document& document) {
    for (const auto& entry : document.entries) {
      std::visit(*this, entry);
    }
  }
  [[nodiscard]] std::string csv() && {
    Table table(std::move(columns_));
    table.add_row(std::move(cells_));
    return render_csv(table);
  }

  void operator()(const Figure& figure) {
    if (!figure.key.empty() && appears_in(figure.shown, Shown::Csv)) {
      add(figure.key, figure.cell.value);
    }
  }
  void operator()(const Parts& parts) {
    for (const auto& [name, time] : parts.times) {
      add(name + "_s", time.seconds());
    }
  }
  template <typename Other>
  void operator()(const Other& /*other*/) {}

 private:
  void add(std::string key, CellValue value) {
    columns_.push_back({.name = "", .key = std::move(key)});
    cells_.push_back({"", std::move(value)});
  }

  std::vector<Column> columns_;
  std::vector<Cell> cells_;
};

class JsonForm {
 public:
  explicit JsonForm(const Document& document) {
    for (const auto& entry : document.entries) {
      std::visit(*this, entry);
    }
    if (!document.estimates.empty()) {
      root_["estimates"] = document.estimates;
    }
    root_["notes"] = document.notes;
  }
  [[nodiscard]] const Json& root() const { return root_; }

  template <typename Other>
  void operator()(const Other& /*other*/) {}
  void operator()(const Figure& figure) {
    if (!figure.key.empty() && appears_in(figure.shown, Shown::Json)) {
      Json& object = figure.group.empty() ? root_ : root_[figure.group];
      object[figure.key] = to_json(figure.cell.value);
    }
  }
  void operator()(const Detail& detail) { root_[detail.key] = detail.value; }
  void operator()(const Parts& parts) {
    root_[parts.key + "_ps"] = parts.whole.picoseconds();
    if (parts.rank) {
      root_["breakdown_rank"] = *parts.rank;
    }
    for (const auto& [name, time] : parts.times) {
      root_["breakdown_s"][name] = time.seconds();
    }
    for (const auto& [name, time] : parts.times) {
      root_["breakdown_ps"][name] = time.picoseconds();
    }
  }
  void operator()(const RunInputs& inputs) {
    root_["settings"] = inputs.settings;
    for (const auto& [option, value] : inputs.options) {
      root_["options"][option] = value;
    }
    for (const auto& [resource, value] : inputs.resources) {
      root_["resources"][resource] = value;
    }
  }
  void operator()(const NamedTable& named) {
    if (appears_in(named.shown, Shown::Json)) {
      root_[named.key] = to_json(named.table);
    }
  }

 private:
  Json root_ = Json::object();
};

std::string csv_of(const Document& document) {
  for (const auto& entry : document.entries) {
    const auto* const named = std::get_if<NamedTable>(&entry);
    if (named != nullptr && appears_in(named->shown, Shown::Csv)) {
      return render_csv(named->table);
    }
  }
  return RowForm(document).csv();
}

}  // namespace

void Document::add(std::string key, CellValue value, Shown in) {
  add(Figure{.key = std::move(key), .cell = {"", std::move(value)}, .shown = in});
}

void Document::add_detail(std::string key, Json value) {
  entries.emplace_back(Detail{.key = std::move(key), .value = std::move(value)});
}

void Document::add_table(std::string above, Table table, Shown shown, std::string key) {
  add(NamedTable{.key = std::move(key),
                 .table = std::move(table),
                 .title = std::move(above),
                 .is_apart = true,
                 .shown = shown});
}

void Document::add_card(std::string label, std::string_view text) {
  add(Figure{.cell = Cell::of(text), .label = std::move(label), .shown = Shown::Page});
}

std::string render(const Document& document, Format format) {
  switch (format) {
    case Format::Table:
      return TextForm(document).text();
    case Format::Csv:
      return csv_of(document);
    case Format::Json:
      return to_text(JsonForm(document).root());
  }
  CHECK(false, "unknown format");
}

std::string value_text(const Figure& figure) {
  return figure.cell.text + (figure.unit.empty() ? "" : " " + figure.unit) + figure.remark;
}

}  // namespace trainyard
