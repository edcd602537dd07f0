// SPDX-License-Identifier: Apache-2.0
// The result of a command as one document. A command fills it once; text, CSV, JSON and the page of
// --report are renderings of it, so that a figure is named, computed and given a unit in one place
// (docs/guide/extending.md).
//
// Entries keep the order in which they are added. The text has the heading, figures and tables,
// then the parts, then the notes. CSV is the first table that appears in it; in a document without
// one it is a header and one row of all figures and parts. JSON is one object with every entry.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/formats/table.h"
#include "sim/units.h"

namespace trainyard {

// One value of the result. Text and page show figures with a label, CSV and JSON those with a key.
struct Figure {
  std::string key = {};     // The last word is the unit: "step_time_s", "memory_peak_gib".
  Cell cell = {};           // The text is for people, the value, with all its digits, for programs.
  std::string label = {};   // "step time"
  std::string unit = {};    // The unit of the cell's text, which need not be that of the key: "ms".
  std::string remark = {};  // Follows the unit in the text: ", 12.0 /s for each GPU".
  std::string group = {};   // The object of JSON that holds the key. CSV has no groups.
  Shown shown = Shown::All;
};

// A value that no cell can hold, such as a plan or a list of groups. Only JSON has it.
struct Detail {
  std::string key;
  nlohmann::ordered_json value;
};

enum class TimeUnit { Seconds, Milliseconds, Microseconds };

struct NamedTime {
  std::string name;
  SimTime time;
};

// Times that add up to `whole`. The text has those that are not zero with their shares, in `unit`;
// CSV has a column "NAME_s" for each; JSON has "KEY_ps", "breakdown_s" and "breakdown_ps".
struct Parts {
  std::string key;  // The key of the whole without its unit: "step_time".
  SimTime whole;
  std::vector<NamedTime> times;
  TimeUnit unit = TimeUnit::Seconds;
  std::optional<int> rank = {};  // The rank whose parts they are, where ranks differ.
};

// The inputs of a run, as its JSON says: so that two results can be compared without the files that
// they came from (cli/compare/comparisons.h).
struct RunInputs {
  std::vector<std::string> settings = {};  // "key.path=value", as --set had them.
  // Other options that decide the machine or its software: "nodes" and "2".
  std::vector<std::pair<std::string, std::string>> options = {};
  // Rates of the cluster's links, by resource (parallelism/run/resources.h), and of its GPUs: "nic"
  // and "48 GB/s".
  std::vector<std::pair<std::string, std::string>> resources = {};
};

struct NamedTable {
  std::string key;  // The key of the array in JSON.
  Table table;
  std::string title = {};                 // The line above it in the text; may be empty.
  bool is_apart = false;                  // A blank line stands above it in the text.
  std::vector<std::string> remarks = {};  // Lines below it in the text.
  Shown shown = Shown::All;
  HeaderMark mark = HeaderMark::None;
  std::string page_title = {};  // Its title on the page, where that is another one.

  // Whether people see it in that form: a table with a title needs rows as well.
  [[nodiscard]] bool appears(Shown form) const {
    return appears_in(shown, form) && (title.empty() || !table.rows().empty());
  }
};

// Lines below a title, for what is no table. Only text and page have them.
struct Lines {
  std::string title;
  std::vector<std::string> lines = {};
};

struct Document {
  std::string title = {};                 // The title of the page.
  std::string subtitle = {};              // The line below it.
  std::vector<std::string> heading = {};  // Lines of the text, marked with '#'.
  using Entry = std::variant<Figure, Detail, Parts, RunInputs, NamedTable, Lines>;
  std::vector<Entry> entries = {};
  // Values of the cluster that nobody has measured or published: "PART: KEY = VALUE: SOURCE".
  std::vector<std::string> estimates = {};
  std::vector<std::string> notes = {};
  std::size_t value_end = 35;  // The column of the text in which values of figures end.

  // Adds a figure without a label.
  void add(std::string key, CellValue value, Shown in = Shown::All);
  void add(Entry entry) { entries.push_back(std::move(entry)); }
  // Adds a value of JSON alone.
  void add_detail(std::string key, nlohmann::ordered_json value);
  // Adds a table, whose title is `above`, apart from what it follows.
  void add_table(std::string above, Table table, Shown shown = Shown::People, std::string key = "");
  // Adds a figure that the page alone shows, large.
  void add_card(std::string label, std::string_view text);
};

[[nodiscard]] std::string render(const Document& document, Format format);

// Renders what has a document.
template <typename Report>
[[nodiscard]] auto render(const Report& report, Format format)
    -> decltype(render(document_of(report), format)) {
  return render(document_of(report), format);
}

// "48.0 GB/s, of 50": text, unit and remark of a figure.
[[nodiscard]] std::string value_text(const Figure& figure);

}  // namespace trainyard
