// SPDX-License-Identifier: Apache-2.0
// Databases are made here, with the columns that the reader takes and some that it does not.
#include "support/catch.h"

#include "parallelism/trace_import/nsys_events.h"

#include <sqlite3.h>

#include <string>
#include <vector>

#include "support/imported.h"
#include "support/imported_workloads.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr const char* kTables =
    "CREATE TABLE StringIds (id INTEGER, value TEXT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT,"
    " streamId INT, globalPid INT, demangledName INT, shortName INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT,"
    " globalPid INT, bytes INT, copyKind INT);"
    "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL');";

std::string database_of(const std::string& statements) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(":memory:", &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string text(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(database);
  return text;
}

std::vector<KinetoTrace> nsys(const std::string& text) {
  return read_nsys_events({.name = "a.sqlite", .rank = {}, .text = text});
}

std::string nsys_error(const std::string& text) {
  try {
    (void)nsys(text);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

// Two processes, the second one with two GPUs, as both forms below have them.
void require_three_gpus(const std::vector<KinetoTrace>& traces) {
  REQUIRE(traces.size() == 3);
  REQUIRE(traces[0].events.size() == 3);
  REQUIRE(traces[0].events[0].name == "Memcpy HtoD");
  REQUIRE(traces[0].events[1].name == "gemm");
  REQUIRE(traces[0].events[1].start == 1_us);
  REQUIRE(traces[0].events[1].time == 2'500_ns);
  REQUIRE(traces[0].events[2].kind == KinetoKind::Recorded);
  REQUIRE(traces[0].events[2].stream == 20);
  REQUIRE(traces[1].events.at(0).name == "no name");
  REQUIRE(traces[2].events.at(0).time == 1_us);
}

}  // namespace

TEST_CASE("each GPU of a database of Nsight Systems has its work", "[nsys]") {
  const std::string text =
      database_of(std::string(kTables) +
                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 7500, 0, 1, 7, 10, 1, 1),"
                  " (7500, 9000, 0, 1, 20, 10, 2, 1), (1000, 2000, 1, 1, 7, 20, 1, 1),"
                  " (1000, 3000, 0, 1, 7, 20, 99, 1);"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (4000, 5000, 0, 7, 10, 64, 1);");
  REQUIRE(is_sqlite(text));
  require_three_gpus(nsys(text));
  // They are ranks, and take what was recorded.
  const ImportedWorkload workload =
      imported_workload(ImportedFormat::Kineto, {{.name = "a.sqlite", .rank = {}, .text = text}});
  REQUIRE(workload.graph.ranks() == 3);
  REQUIRE(run_round(workload).result.finish == 5_us);
}

TEST_CASE("databases that Nsight Systems did not write are refused", "[nsys]") {
  REQUIRE(nsys(database_of("CREATE TABLE other (start INT);")).empty());
  REQUIRE(nsys_error(database_of("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT);")) ==
          "a.sqlite: expected tables as Nsight Systems exports them, found no such column: "
          "deviceId");
  const std::string whole = database_of(kTables);
  REQUIRE(nsys_error(whole.substr(0, 100)) != "no error");
  std::string damaged = whole;
  for (std::size_t at = 200; at < damaged.size(); ++at) {
    damaged[at] = 'x';
  }
  REQUIRE(nsys_error(damaged).find("a.sqlite: expected ") == 0);
  REQUIRE(
      nsys_error(database_of(std::string(kTables) + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                                                    " (5000, 4000, 0, 1, 7, 10, 1, 1);")) ==
      "a.sqlite: gemm: start: expected nanoseconds from 0 to 4000000000000000, before the end, "
      "found 5000 to 4000");
  REQUIRE(imported_error(ImportedFormat::Kineto,
                         {{.name = "a.sqlite", .rank = {}, .text = database_of(kTables)}}) ==
          "a.sqlite: expected operations of a GPU, found none");
}

// The same work as in the database above. Zero is left out, as protocol buffers write JSON.
TEST_CASE("JSON of Nsight Systems is read line by line, as the database is", "[nsys]") {
  const auto event = [](const std::string& process, const std::string& device,
                        const std::string& stream, const std::string& start, const std::string& end,
                        const std::string& what) {
    return R"({"Type":79,"CudaEvent":{"startNs":")" + start + R"(","endNs":")" + end +
           R"(","correlationId":7,)" + device + R"("contextId":"1","streamId":")" + stream +
           R"(","globalPid":")" + process + "\"," + what + "}}\n";
  };
  const auto kernel = [](const std::string& name) {
    return R"("eventClass":3,"kernel":{"demangledName":")" + name + R"(","shortName":"0"})";
  };
  const std::string one = R"("deviceId":1,)";
  const std::string events =
      event("10", "", "7", "5000", "7500", kernel("1")) +
      event("10", "", "20", "7500", "9000", kernel("2")) +
      event("20", one, "7", "1000", "2000", kernel("1")) +
      event("20", "", "7", "1000", "3000", kernel("99")) +
      event("10", "", "7", "4000", "5000",
            R"("eventClass":1,"memcpy":{"sizebytes":"64","copyKind":"1"})") +
      event("10", "", "7", "1", "2", R"("eventClass":5,"sync":{"eventId":1})") +
      R"({"Type":48,"TraceProcessEvent":{"startNs":"1","endNs":"2","name":"3"}})"
      "\n";
  const std::string names =
      R"({"data":["[Unknown]","gemm","ncclDevKernel_AllReduce_Sum_bf16_RING_LL"]})"
      "\n";
  const std::string one_by_one =
      R"({"type":"String","id":"1","value":"gemm"})"
      "\n"
      R"({"type":"String","id":"2","value":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL"})"
      "\n";
  for (const std::string& text : {events + names, names + events, events + one_by_one}) {
    REQUIRE(is_lines_of_json(text));
    require_three_gpus(nsys(text));
    const ImportedWorkload workload =
        imported_workload(ImportedFormat::Kineto, {{.name = "a.jsonl", .rank = {}, .text = text}});
    REQUIRE(run_round(workload).result.finish == 5_us);
  }
  REQUIRE(nsys_error(with(events, R"("streamId":"7")", R"("streamId":"x")")) ==
          "a.sqlite:1: streamId: expected a whole number, found \"x\"");
  REQUIRE(nsys_error(with(events, "}}\n", "}\n")).find("a.sqlite:1: expected an object, found ") ==
          0);
  REQUIRE(nsys_error(events + R"({"data":[1]})") == "a.sqlite:8: name: expected a text, found 1");
  REQUIRE(nsys_error(with(events, R"("endNs":"7500")", R"("endNs":"75")")) ==
          "a.sqlite: no name: start: expected nanoseconds from 0 to 4000000000000000, before the "
          "end, found 5000 to 75");
}

TEST_CASE("profiles of PyTorch are no lines of objects", "[nsys]") {
  REQUIRE(!is_lines_of_json("{\n  \"traceEvents\": [\n  {\"ph\": \"X\"}\n]}\n"));
  REQUIRE(!is_lines_of_json(R"({"schemaVersion": 1, "traceEvents": []})"));
  REQUIRE(!is_lines_of_json(" \n"));
}

}  // namespace trainyard
