// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/nsys_events.h"

#include <spdlog/fmt/fmt.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

using nlohmann::json;

constexpr const char* kNoName = "no name";

// All rows have the columns process, device, stream, start, end and the one that gives the name.
constexpr std::string_view kKernels =
    "SELECT {0}, deviceId, streamId, start, \"end\", value FROM CUPTI_ACTIVITY_KIND_KERNEL AS work "
    "LEFT JOIN StringIds ON StringIds.id = work.demangledName";
constexpr std::string_view kCopies =
    "SELECT {0}, deviceId, streamId, start, \"end\", copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY AS "
    "work";
constexpr std::string_view kFills =
    "SELECT {0}, deviceId, streamId, start, \"end\", 'Memset' FROM CUPTI_ACTIVITY_KIND_MEMSET AS "
    "work";

// Kinds of copies are those of CUpti_ActivityMemcpyKind.
std::string_view copy_name(std::int64_t kind) {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 4> kKinds{
      {{1, "Memcpy HtoD"}, {2, "Memcpy DtoH"}, {8, "Memcpy DtoD"}, {10, "Memcpy PtoP"}}};
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(),
                                         [&](const auto& each) { return each.first == kind; });
  return found == kKinds.end() ? "Memcpy" : found->second;
}

// Work of GPUs, in whichever form it is exported.
class NsysRows {
 public:
  explicit NsysRows(const ImportedFile& file) : file_(file) {}

  struct Row {
    std::int64_t process = 0;
    std::int64_t device = 0;
    std::int64_t stream = 0;
    std::int64_t start = 0;  // In nanoseconds, as the end.
    std::int64_t end = 0;
  };
  void add(const Row& row, std::string_view name) {
    KinetoTrace& trace = traces_[{row.process, row.device}];
    KinetoEvent& event = trace.events.emplace_back();
    event.name = trace.names.own(name);
    const auto place = [&] { return fmt::format("{}: {}", file_.name, shortened(event.name)); };
    event.stream = row.stream;
    if (row.start < 0 || row.end < row.start || row.end > kMaxNanoseconds) {
      fail_imported(place(), "start",
                    fmt::format("nanoseconds from 0 to {}, before the end", kMaxNanoseconds),
                    fmt::format("{} to {}", row.start, row.end));
    }
    event.start = nanoseconds(row.start);
    event.time = times_.add(row.end - row.start, nanoseconds(1), place, "end");
    mark_collective(event);
  }

  std::vector<KinetoTrace> traces() && {
    std::vector<KinetoTrace> traces;
    for (auto& [key, trace] : traces_) {
      std::stable_sort(
          trace.events.begin(), trace.events.end(),
          [](const KinetoEvent& a, const KinetoEvent& b) { return a.start < b.start; });
      const SimTime first = trace.events.front().start;
      for (KinetoEvent& event : trace.events) {
        event.start = event.start - first;
      }
      trace.name = file_.name;
      traces.push_back(std::move(trace));
    }
    return traces;
  }

 private:
  // Starts count from the begin of the recording: 46 days.
  static constexpr std::int64_t kMaxNanoseconds = 4'000'000'000'000'000;

  const ImportedFile& file_;
  ImportedTimes times_;
  std::map<std::pair<std::int64_t, std::int64_t>, KinetoTrace> traces_;
};

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class DatabaseReader {
 public:
  explicit DatabaseReader(const ImportedFile& file) : file_(file), rows_(file) {
    sqlite3* database = nullptr;
    const int status = sqlite3_open(":memory:", &database);
    database_.reset(database);
    // The text is not changed: the database is read only.
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(file.text.data()));
    const auto size = static_cast<sqlite3_int64>(file.text.size());
    if (status != SQLITE_OK || sqlite3_deserialize(database, "main", bytes, size, size,
                                                   SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
      fail("a database of SQLite");
    }
  }

  std::vector<KinetoTrace> read() {
    for (const auto& [table, query] : {std::pair{"CUPTI_ACTIVITY_KIND_KERNEL", kKernels},
                                       std::pair{"CUPTI_ACTIVITY_KIND_MEMCPY", kCopies},
                                       std::pair{"CUPTI_ACTIVITY_KIND_MEMSET", kFills}}) {
      if (has_column(table, "start")) {
        // Exports of single processes may lack it.
        const bool has_process = has_column(table, "globalPid");
        read_rows(fmt::format(fmt::runtime(query), has_process ? "globalPid" : "0"));
      }
    }
    return std::move(rows_).traces();
  }

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

  [[noreturn]] void fail(std::string_view expected) const {
    fail_imported(file_.name, "", expected, escaped(sqlite3_errmsg(database_.get())));
  }

  [[nodiscard]] Statement prepared(const std::string& query) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      fail("tables as Nsight Systems exports them");
    }
    return Statement(statement);
  }

  [[nodiscard]] bool has_column(std::string_view table, std::string_view column) const {
    const Statement statement = prepared(
        fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table, column));
    return has_row(statement);
  }

  [[nodiscard]] bool has_row(const Statement& statement) const {
    const int status = sqlite3_step(statement.get());
    if (status != SQLITE_ROW && status != SQLITE_DONE) {
      fail("a database that is whole");
    }
    return status == SQLITE_ROW;
  }

  void read_rows(const std::string& query) {
    const Statement statement = prepared(query);
    const auto number = [&](int column) { return sqlite3_column_int64(statement.get(), column); };
    while (has_row(statement)) {
      const bool is_kind = sqlite3_column_type(statement.get(), 5) == SQLITE_INTEGER;
      const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 5));
      rows_.add({.process = number(0),
                 .device = number(1),
                 .stream = number(2),
                 .start = number(3),
                 .end = number(4)},
                is_kind           ? copy_name(number(5))
                : name == nullptr ? kNoName
                                  : name);
    }
  }

  const ImportedFile& file_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  NsysRows rows_;
};

// Objects on lines of their own. A kernel has the number of its name in a table of texts, which is
// a line too, before or behind.
class LinesReader {
 public:
  explicit LinesReader(const ImportedFile& file) : file_(file), rows_(file) {}

  std::vector<KinetoTrace> read() {
    each_line([&](const json& object) { read_names(object); });
    each_line([&](const json& object) { read_event(object); });
    return std::move(rows_).traces();
  }

 private:
  // Most lines are of the host, and are not looked at.
  template <typename Read>
  void each_line(const Read& read) {
    std::string_view rest = file_.text;
    for (line_ = 1; !rest.empty(); ++line_) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      constexpr std::array kKeys{R"("CudaEvent")", R"("data")", R"("String")"};
      if (std::any_of(kKeys.begin(), kKeys.end(),
                      [&](const char* key) { return line.find(key) != std::string_view::npos; })) {
        const json object = json::parse(line, nullptr, false);
        if (!object.is_object()) {
          fail("", "an object", shortened(line));
        }
        read(object);
      }
    }
  }

  [[noreturn]] void fail(std::string_view field, std::string_view expected,
                         std::string_view found) const {
    fail_imported(fmt::format("{}:{}", file_.name, line_), field, expected, found);
  }

  static std::string found_text(const json& value) {
    return value.is_structured()
               ? "a list or an object"
               : shortened(value.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  void read_names(const json& object) {
    if (const auto data = object.find("data"); data != object.end() && data->is_array()) {
      for (std::size_t number = 0; number < data->size(); ++number) {
        enter_name(static_cast<std::int64_t>(number), (*data)[number]);
      }
    } else if (object.value("type", json()) == "String") {
      enter_name(number(object, "id"), object.value("value", json()));
    }
  }
  void enter_name(std::int64_t number, const json& text) {
    if (!text.is_string()) {
      fail("name", "a text", found_text(text));
    }
    names_[number] = text.get<std::string>();
  }

  void read_event(const json& object) {
    const auto event = object.find("CudaEvent");
    if (event == object.end() || !event->is_object()) {
      return;
    }
    const auto kernel = event->find("kernel");
    const auto copy = event->find("memcpy");
    std::string name;
    if (kernel != event->end()) {
      const auto found = names_.find(number(*kernel, "demangledName"));
      name = found == names_.end() ? kNoName : found->second;
    } else if (copy != event->end()) {
      name = copy_name(number(*copy, "copyKind"));
    } else if (event->contains("memset")) {
      name = "Memset";
    } else {
      return;  // Waits and records of the host.
    }
    rows_.add({.process = number(*event, "globalPid"),
               .device = number(*event, "deviceId"),
               .stream = number(*event, "streamId"),
               .start = number(*event, "startNs"),
               .end = number(*event, "endNs")},
              name);
  }

  // Numbers of 64 bits are texts, and zero is left out: the JSON of protocol buffers.
  [[nodiscard]] std::int64_t number(const json& object, const char* key) const {
    const json value = object.is_object() ? object.value(key, json(0)) : json();
    std::optional<std::int64_t> whole;
    if (value.is_string()) {
      whole = parse_number<std::int64_t>(value.get_ref<const std::string&>());
    } else if (value.is_number_integer()) {
      whole = value.get<std::int64_t>();
    }
    if (!whole) {
      fail(key, "a whole number", found_text(value));
    }
    return *whole;
  }

  const ImportedFile& file_;
  std::size_t line_ = 0;
  NsysRows rows_;
  std::map<std::int64_t, std::string> names_;
};

}  // namespace

bool is_sqlite(std::string_view text) {
  return text.starts_with("SQLite format 3");
}

bool is_lines_of_json(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  const std::size_t end = text.find('\n', std::min(first, text.size()));
  const std::size_t next = text.find_first_not_of(kBlanks, end);
  return next != std::string_view::npos && text[first] == '{' && text[next] == '{' &&
         text[text.find_last_not_of(kBlanks, end)] == '}';
}

std::vector<KinetoTrace> read_nsys_events(const ImportedFile& file) {
  return is_sqlite(file.text) ? DatabaseReader(file).read() : LinesReader(file).read();
}

}  // namespace trainyard
