// SPDX-License-Identifier: Apache-2.0
#include "report/results/compare_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "report/formats/json.h"

namespace trainyard {
namespace {

// The unit in which the largest of all times is read best.
struct ReadableTime {
  std::string unit = "s";
  double of_second = 1.0;
  int digits = 4;
};

ReadableTime readable_of(const RunComparison& comparison) {
  SimTime max;
  for (const ComparedTime& time : comparison.times) {
    max = std::max({max, time.before, time.after});
  }
  return max >= milliseconds(100) ? ReadableTime{} : ReadableTime{"us", 1e6, 2};
}

std::string share_of(SimTime difference, SimTime whole) {
  return whole == SimTime() ? "-" : fmt::format("{:+.2f}", 100.0 * (difference / whole));
}

struct TimeRow {
  std::string name;
  SimTime before;
  SimTime after;
  SimTime whole = {};  // The time that the difference is a share of.
  std::string way = {};
};

Table time_table(const std::vector<TimeRow>& rows, const ReadableTime& unit,
                 const std::string& first, bool has_ways) {
  return table_of(rows, [&](const TimeRow& row) {
    const auto time = [&](const char* name, const char* key, SimTime value, bool has_sign) {
      const double number = value.seconds() * unit.of_second;
      return Field{{.name = name, .key = key, .unit = "(" + unit.unit + ")", .min_width = 10},
                   {has_sign ? fmt::format("{:+.{}f}", number, unit.digits)
                             : fmt::format("{:.{}f}", number, unit.digits),
                    value.seconds()}};
    };
    const SimTime difference = row.after - row.before;
    std::vector<Field> fields{
        {{.name = first, .key = "name", .align = Align::Left, .min_width = 16}, Cell::of(row.name)},
        time("A", "a", row.before, false),
        time("B", "b", row.after, false),
        time("B - A", "difference", difference, true),
        {{.name = "of A", .key = "share", .unit = "(%)", .min_width = 8},
         Cell::of(share_of(difference, row.whole))}};
    if (has_ways) {
      fields.push_back({{.name = "as", .key = "how", .align = Align::Left}, Cell::of(row.way)});
    }
    return fields;
  });
}

std::string way_of(const ComparedTime& time) {
  return time.before_how == time.after_how
             ? time.before_how
             : fmt::format("{} -> {}", time.before_how, time.after_how);
}

Lines changes(const std::string& title, const std::vector<ComparedValue>& values) {
  Lines lines{.title = title};
  const auto or_nothing = [](const std::string& text) { return text.empty() ? "nothing" : text; };
  for (const ComparedValue& value : values) {
    lines.lines.push_back(
        fmt::format("{}: {} -> {}", value.key, or_nothing(value.before), or_nothing(value.after)));
  }
  if (values.empty()) {
    lines.lines.emplace_back("nothing");
  }
  return lines;
}

void add_time_tables(const RunComparison& comparison, Document& document) {
  const ReadableTime unit = readable_of(comparison);
  bool is_first = true;
  const auto add = [&](Table table) {
    document.add(NamedTable{.key = "",
                            .table = std::move(table),
                            .is_apart = std::exchange(is_first, false),
                            .shown = Shown::People,
                            .page_title = "Times"});
  };
  std::vector<TimeRow> sizes;
  for (const ComparedTime& time : comparison.times) {
    sizes.push_back({time.label, time.before, time.after, time.before, way_of(time)});
    if (time.parts.empty()) {
      continue;
    }
    std::vector<TimeRow> parts;
    for (const ComparedPart& part : time.parts) {
      if (part.before > SimTime() || part.after > SimTime()) {
        parts.push_back({part.name, part.before, part.after, time.before});
      }
    }
    parts.push_back(sizes.back());
    add(time_table(parts, unit, "part", false));
  }
  if (!sizes.empty() && comparison.times.front().parts.empty()) {
    add(time_table(sizes, unit, "size", true));
  }
}

// A row for each part and for each time.
Table rows_of(const RunComparison& comparison) {
  Table table(key_columns({"label", "part", "a_s", "b_s", "difference_s"}));
  const auto add = [&](const std::string& label, const std::string& part, SimTime before,
                       SimTime after) {
    table.add_row({Cell::of(label),
                   Cell::of(part),
                   {"", before.seconds()},
                   {"", after.seconds()},
                   {"", (after - before).seconds()}});
  };
  for (const ComparedTime& time : comparison.times) {
    for (const ComparedPart& part : time.parts) {
      add(time.label, part.name, part.before, part.after);
    }
    add(time.label, "all", time.before, time.after);
  }
  return table;
}

Json comparison_json(const std::vector<ComparedValue>& values) {
  Json json = Json::array();
  for (const ComparedValue& value : values) {
    json.push_back({{"key", value.key},
                    {"a", value.before.empty() ? Json(nullptr) : Json(value.before)},
                    {"b", value.after.empty() ? Json(nullptr) : Json(value.after)}});
  }
  return json;
}

Json times_json(const std::vector<ComparedTime>& times) {
  Json json = Json::array();
  for (const ComparedTime& time : times) {
    Json one{{"label", time.label},
             {"a_ps", time.before.picoseconds()},
             {"b_ps", time.after.picoseconds()},
             {"difference_ps", (time.after - time.before).picoseconds()}};
    if (!time.before_how.empty() || !time.after_how.empty()) {
      one["a_how"] = time.before_how;
      one["b_how"] = time.after_how;
    }
    one["parts"] = Json::array();
    for (const ComparedPart& part : time.parts) {
      one["parts"].push_back({{"name", part.name},
                              {"a_ps", part.before.picoseconds()},
                              {"b_ps", part.after.picoseconds()},
                              {"difference_ps", (part.after - part.before).picoseconds()}});
    }
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace

Document document_of(const RunComparison& comparison) {
  Document document{.heading = {"Compared by Trainyard: " + comparison.what,
                                "A: " + comparison.before, "B: " + comparison.after},
                    .notes = comparison.notes};
  document.add("compared", comparison.what);
  document.add("a", comparison.before);
  document.add("b", comparison.after);
  document.add_detail("inputs", comparison_json(comparison.inputs));
  document.add_detail("resources", comparison_json(comparison.resources));
  document.add_detail("figures", comparison_json(comparison.figures));
  document.add_detail("times", times_json(comparison.times));
  document.add(changes("What went in, where it differs:", comparison.inputs));
  document.add(changes("Resources that moved:", comparison.resources));
  add_time_tables(comparison, document);
  if (!comparison.figures.empty()) {
    document.add(changes("Figures that moved:", comparison.figures));
  }
  document.add(NamedTable{.key = "", .table = rows_of(comparison), .shown = Shown::Csv});
  return document;
}

}  // namespace trainyard
