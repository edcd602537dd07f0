// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/nsys_events.h"

#include <spdlog/fmt/fmt.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

// All rows have the columns process, device, stream, start, end and name.
constexpr std::string_view kKernels =
    "SELECT {0}, deviceId, streamId, start, \"end\", value FROM CUPTI_ACTIVITY_KIND_KERNEL AS work "
    "LEFT JOIN StringIds ON StringIds.id = work.demangledName";
// Kinds of copies are those of CUpti_ActivityMemcpyKind.
constexpr std::string_view kCopies =
    "SELECT {0}, deviceId, streamId, start, \"end\", CASE copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN "
    "2 "
    "THEN 'Memcpy DtoH' WHEN 8 THEN 'Memcpy DtoD' WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END "
    "FROM CUPTI_ACTIVITY_KIND_MEMCPY AS work";
constexpr std::string_view kFills =
    "SELECT {0}, deviceId, streamId, start, \"end\", 'Memset' FROM CUPTI_ACTIVITY_KIND_MEMSET AS "
    "work";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class NsysReader {
 public:
  explicit NsysReader(const ImportedFile& file) : file_(file) {
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
    std::vector<KinetoTrace> traces;
    for (auto& [key, events] : events_) {
      std::stable_sort(
          events.begin(), events.end(),
          [](const KinetoEvent& a, const KinetoEvent& b) { return a.start < b.start; });
      const SimTime first = events.front().start;
      for (KinetoEvent& event : events) {
        event.start = event.start - first;
      }
      KinetoTrace& trace = traces.emplace_back();
      trace.name = file_.name;
      trace.events = std::move(events);
    }
    return traces;
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
      const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 5));
      std::vector<KinetoEvent>& events = events_[{number(0), number(1)}];
      KinetoEvent& event = events.emplace_back();
      event.name = name == nullptr ? "no name" : name;
      event.place = fmt::format("{}: {}", file_.name, shortened(event.name));
      event.stream = number(2);
      const std::int64_t start = number(3);
      const std::int64_t end = number(4);
      if (start < 0 || end < start || end > kMaxNanoseconds) {
        fail_imported(event.place, "start",
                      fmt::format("nanoseconds from 0 to {}, before the end", kMaxNanoseconds),
                      fmt::format("{} to {}", start, end));
      }
      event.start = nanoseconds(start);
      event.time = times_.add(end - start, nanoseconds(1), event.place, "end");
      mark_collective(event);
    }
  }

  // Starts count from the begin of the recording: 46 days.
  static constexpr std::int64_t kMaxNanoseconds = 4'000'000'000'000'000;

  const ImportedFile& file_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  ImportedTimes times_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<KinetoEvent>> events_;
};

}  // namespace

bool is_sqlite(std::string_view text) {
  return text.starts_with("SQLite format 3");
}

std::vector<KinetoTrace> read_nsys_events(const ImportedFile& file) {
  return NsysReader(file).read();
}

}  // namespace trainyard
