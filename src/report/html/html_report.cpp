// SPDX-License-Identifier: Apache-2.0
#include "report/html/html_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <variant>

#include "report/formats/document.h"
#include "report/formats/json.h"
#include "sim/check.h"

namespace trainyard {
namespace {

Json json_of(const HtmlTimeline& timeline) {
  return {{"note", timeline.note},
          {"tracks", timeline.tracks},
          {"names", timeline.names},
          {"spans", timeline.encoded}};
}

Json json_of(const HtmlLinks& links) {
  return {{"note", links.note}, {"units", links.units}, {"edges", links.edges}};
}

Json json_of(const HtmlCurve& curve) {
  Json points = Json::array();
  for (const HtmlPoint& point : curve.points) {
    Json one = Json::array({point.size.count(), point.busbw_gbps, nullptr, nullptr, point.remark});
    if (point.band) {
      one[2] = point.band->first;
      one[3] = point.band->second;
    }
    points.push_back(std::move(one));
  }
  return {{"name", curve.name}, {"points", std::move(points)}};
}

// Six digits are more than a pixel.
double short_number(double value) {
  constexpr double kDigits = 6.0;
  if (value == 0.0 || !std::isfinite(value)) {
    return value;
  }
  const double factor = std::pow(10.0, kDigits - 1.0 - std::floor(std::log10(std::abs(value))));
  return std::round(value * factor) / factor;
}

Json json_of(const HtmlChart& chart) {
  Json json{{"title", chart.title},    {"note", chart.note},     {"xLabel", chart.x_label},
            {"yLabel", chart.y_label}, {"xLog", chart.is_x_log}, {"steps", chart.has_steps}};
  json["series"] = Json::array();
  for (const HtmlLine& line : chart.lines) {
    Json points = Json::array();
    for (const auto& [x, y] : line.points) {
      points.push_back(Json::array({short_number(x), short_number(y)}));
    }
    json["series"].push_back({{"name", line.name}, {"points", std::move(points)}});
  }
  return json;
}

Json json_of(const HtmlSweep& sweep) {
  Json json{{"x", sweep.x}, {"y", sweep.y}, {"first", sweep.first}, {"second", sweep.second}};
  json["keys"] = Json::array();
  for (const HtmlSweep::Key& key : sweep.keys) {
    json["keys"].push_back({{"name", key.name}, {"values", key.values}});
    if (!key.numbers.empty()) {
      json["keys"].back()["numbers"] = key.numbers;
    }
  }
  json["figures"] = Json::array();
  for (const HtmlSweep::Figure& figure : sweep.figures) {
    json["figures"].push_back({{"name", figure.name}, {"isMore", figure.is_more_better}});
  }
  json["rows"] = sweep.rows;
  return json;
}

// The columns of a page that say something in any row.
std::vector<std::size_t> told_columns(const Table& table) {
  std::vector<std::size_t> columns = table.columns_in(Shown::Page);
  std::erase_if(columns, [&](std::size_t index) {
    return std::ranges::all_of(table.rows(), [&](const std::vector<Cell>& row) {
      return row[index].text.empty() || row[index].text == Cell::none().text;
    });
  });
  return columns;
}

Json json_of(const HtmlTable& table) {
  Json json;
  json["title"] = table.title;
  json["note"] = table.note;
  json["remarks"] = table.remarks;
  json["columns"] = Json::array();
  json["numeric"] = Json::array();
  const std::vector<std::size_t> shown = told_columns(table.table);
  for (const std::size_t index : shown) {
    const Column& column = table.table.columns()[index];
    json["columns"].push_back(column.unit.empty() ? column.name : column.name + " " + column.unit);
    json["numeric"].push_back(column.align == Align::Right);
  }
  json["rows"] = Json::array();
  for (const std::vector<Cell>& row : table.table.rows()) {
    Json cells = Json::array();
    for (const std::size_t index : shown) {
      cells.push_back(row[index].text);
    }
    json["rows"].push_back(std::move(cells));
  }
  return json;
}

template <typename Items>
Json array_of(const Items& items) {
  Json array = Json::array();
  for (const auto& item : items) {
    array.push_back(json_of(item));
  }
  return array;
}

Json json_of(const HtmlReport& report) {
  Json json;
  json["title"] = report.title;
  json["subtitle"] = report.subtitle;
  json["summary"] = Json::array();
  for (const auto& [label, value] : report.summary) {
    json["summary"].push_back(Json::array({label, value}));
  }
  json["breakdown"] = Json::array();
  for (const auto& [name, time] : report.breakdown) {
    if (time > SimTime()) {
      json["breakdown"].push_back(Json::array({name, time.seconds()}));
    }
  }
  json["curves"] = array_of(report.curves);
  json["charts"] = array_of(report.charts);
  json["sweep"] = json_of(report.sweep);
  json["timeline"] = json_of(report.timeline);
  json["links"] = json_of(report.links);
  json["tables"] = array_of(report.tables);
  json["notes"] = report.notes;
  return json;
}

// In an element of a page nothing but its end is read as markup: every "<" goes.
std::string for_script(const Json& json) {
  const std::string text =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string made;
  for (const char character : text) {
    made += character == '<' ? "\\u003c" : std::string(1, character);
  }
  return made;
}

// As text of an element.
std::string for_element(const std::string& text) {
  std::string made;
  for (const char character : text) {
    made += character == '<' ? "&lt;" : character == '&' ? "&amp;" : std::string(1, character);
  }
  return made;
}

// Adds an entry of a document to its page.
struct PageForm {
  HtmlReport& page;

  void operator()(const Figure& figure) const {
    if (!figure.label.empty() && appears_in(figure.shown, Shown::Page)) {
      page.summary.emplace_back(figure.label, value_text(figure));
    }
  }
  void operator()(const Parts& parts) const {
    for (const auto& [name, time] : parts.times) {
      page.breakdown.emplace_back(name, time);
    }
  }
  void operator()(const RunInputs& inputs) const { page.tables.push_back(html_inputs(inputs)); }
  void operator()(const NamedTable& named) const {
    if (named.appears(Shown::Page)) {
      page.tables.push_back({.title = !named.page_title.empty() ? named.page_title
                                      : named.title.empty()     ? "Results"
                                                                : named.title,
                             .note = "",
                             .table = named.table,
                             .remarks = named.remarks});
    }
  }
  void operator()(const Lines& lines) const {
    page.tables.push_back(
        {.title = lines.title.ends_with(':') ? lines.title.substr(0, lines.title.size() - 1)
                                             : lines.title,
         .note = "",
         .table = Table(std::vector<Column>{{.name = "", .key = "", .shown = Shown::Text}}),
         .remarks = lines.lines});
  }
  template <typename Other>
  void operator()(const Other& /*other*/) const {}
};

}  // namespace

HtmlTable html_inputs(const RunInputs& inputs) {
  Table table({{.name = "key", .key = "key", .align = Align::Left},
               {.name = "value", .key = "value", .align = Align::Left}});
  for (const std::string& setting : inputs.settings) {
    const std::size_t sign = setting.find('=');
    table.add_row({Cell::of("--set " + setting.substr(0, sign)),
                   Cell::of(sign == std::string::npos ? "" : setting.substr(sign + 1))});
  }
  for (const auto& [option, value] : inputs.options) {
    table.add_row({Cell::of(option), Cell::of(value)});
  }
  for (const auto& [resource, value] : inputs.resources) {
    table.add_row({Cell::of(resource), Cell::of(value)});
  }
  return {.title = "Inputs",
          .note = "What was set, and the rates of the machine's links in each direction.",
          .table = std::move(table)};
}

HtmlTable html_estimates(const std::vector<std::string>& lines) {
  Table table({{.name = "part", .key = "part", .align = Align::Left},
               {.name = "value", .key = "value", .align = Align::Left},
               {.name = "source", .key = "source", .align = Align::Left}});
  for (const std::string& line : lines) {  // "PART: KEY = VALUE: SOURCE"
    const std::size_t first = line.find(": ");
    const std::size_t second = line.find(": ", first + 2);
    table.add_row({Cell::of(line.substr(0, first)),
                   Cell::of(line.substr(first + 2, second - first - 2)),
                   Cell::of(second == std::string::npos ? "" : line.substr(second + 2))});
  }
  return {.title = "Estimates",
          .note =
              "Values of the cluster that nobody has measured or published. All others are from "
              "datasheets and measurements; trainyard topology --format json has every source.",
          .table = std::move(table)};
}

HtmlReport html_page(const Document& document) {
  HtmlReport page{.title = document.title, .subtitle = document.subtitle, .notes = document.notes};
  if (page.title.empty()) {
    for (const std::string& line : document.heading) {
      std::string& place = page.title.empty() ? page.title : page.subtitle;
      place += (place.empty() || line.empty() ? "" : "; ") + line;
    }
  }
  for (const auto& entry : document.entries) {
    std::visit(PageForm{page}, entry);
  }
  if (!document.estimates.empty()) {
    page.tables.push_back(html_estimates(document.estimates));
  }
  return page;
}

std::string render_html(const HtmlReport& report, std::string_view library) {
  CHECK(library.find("</script") == std::string_view::npos, "a script that ends its element");
  const HtmlTemplate& page = html_template();
  std::string text = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  text += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  text += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  text += "<title>" + for_element(report.title) + "</title>\n<style>\n";
  text += page.style;
  text += "</style>\n</head>\n<body>\n";
  text += page.body;
  text += "<script type=\"application/json\" id=\"data\">";
  text += for_script(json_of(report));
  text += "</script>\n<script>\n";
  text += library;
  text += "\n</script>\n<script>\n";
  text += page.script;
  text += "</script>\n</body>\n</html>\n";
  return text;
}

}  // namespace trainyard
