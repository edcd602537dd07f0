// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/kineto_events.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

KinetoTrace events(const std::string& text) {
  return read_kineto_events({.name = "a.json", .rank = 0, .text = text});
}

std::string events_error(const std::string& text) {
  try {
    (void)events(text);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

std::string with_args(const std::string& args, const std::string& name = "ncclDevKernel") {
  return R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": ")" + name +
         R"(", "ts": 1, "dur": 2, "args": {)" + args + "}}]}";
}

const std::string kCall =
    R"("stream": 20, "Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10,)"
    R"( "Group size": 2, "dtype": "BFloat16", "Process Group Name": "0",)"
    R"( "Process Group Ranks": "[0, 1]")";

std::string call_error(const std::string& from, const std::string& to) {
  std::string args = kCall;
  args.replace(args.find(from), from.size(), to);
  return events_error(with_args(args));
}

}  // namespace

TEST_CASE("work of the GPU is taken from a profile, the rest is counted", "[kineto]") {
  const KinetoTrace trace = events(
      R"({"schemaVersion": 1, "nested": {"traceEvents": [{"x": {}}]}, "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "args": {"a": {}}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 5, "dur": 2},
        {"ph": "M", "name": "process_name", "args": {"name": "python"}},
        {"ph": "X", "cat": "kernel", "name": "late", "ts": 1468837789533.645, "dur": 0.5,
         "args": {"stream": 7, "device": 0}},
        {"ph": "X", "cat": "gpu_memset", "name": "early", "ts": 2.001, "dur": 1,
         "args": {"stream": 7, "device": 0}}],
        "distributedInfo": {"rank": 3, "world_size": 4,
          "pg_config": [{"pg_name": "1", "ranks": [2, 3]}, {"pg_name": "2"}]}})");
  REQUIRE(trace.events.size() == 2);
  REQUIRE(trace.events[0].name == "early");
  REQUIRE(trace.events[0].start == SimTime());
  REQUIRE(trace.events[1].start == nanoseconds(1'468'837'789'533'645 - 2'001));
  REQUIRE(trace.events[1].time == nanoseconds(500));
  REQUIRE(trace.left_out == std::map<std::string, std::size_t>{{"cpu_op", 2}, {"no duration", 1}});
  REQUIRE(trace.rank == 3);
  REQUIRE(trace.world_size == 4);
  REQUIRE(trace.groups.at("1") == std::vector<int>{2, 3});
}

TEST_CASE("starts count from the first operation, whatever the clock of the profile", "[kineto]") {
  const auto starts = [](const std::string& first, const std::string& second) {
    const std::string begin = R"({"ph": "X", "cat": "kernel", "name": "gemm", "dur": 2, "ts": )";
    const std::string end = R"(, "args": {"stream": 7}})";
    return R"({"traceEvents": [)" + begin + second + end + ", " + begin + first + end + "]}";
  };
  const auto between = [&](const std::string& first, const std::string& second) {
    const KinetoTrace trace = events(starts(first, second));
    REQUIRE(trace.events.at(0).start == SimTime());
    return trace.events.at(1).start;
  };
  // ChromeTraceBaseTime: up to 7,889,238 s, with nanoseconds.
  REQUIRE(between("5500000001000.0", "5500000001002.5") == nanoseconds(2'500));
  REQUIRE(between("7889237999999.998", "7889237999999.999") == nanoseconds(1));
  // Since the epoch, in whole microseconds.
  REQUIRE(between("1683000000000000", "1683000000000003") == microseconds(3));
  REQUIRE(
      events_error(starts("1", "4000000000002"))
          .find("event 0 (gemm): ts: expected at most 4e+12 microseconds after the first operation "
                "of the GPU, found 4000000000001.000") != std::string::npos);
  REQUIRE(events_error(starts("1", "1e16")).find("ts: expected microseconds from 0 to 9e+15") !=
          std::string::npos);
  REQUIRE(events_error(starts("-1", "1")).find("ts: expected microseconds") != std::string::npos);
}

TEST_CASE("a collective has its bytes and ranks from what was noted down", "[kineto]") {
  const KinetoTrace trace = events(with_args(kCall));
  REQUIRE(trace.events[0].kind == KinetoKind::Call);
  REQUIRE(trace.events[0].operation == Operation::AllReduce);
  REQUIRE(trace.events[0].size == Bytes(20));
  REQUIRE(trace.events[0].ranks == std::vector<int>{0, 1});
  std::string gather = kCall;
  gather.replace(gather.find("allreduce"), 9, "_allgather_base");
  gather.replace(gather.find("Out msg nelems\": 10"), 19, "Out msg nelems\": 20");
  REQUIRE(events(with_args(gather)).events[0].size == Bytes(40));
  std::string cut = kCall;
  cut.replace(cut.find("[0, 1]"), 6, "[0, 1, ...]");
  REQUIRE(!events(with_args(cut)).events[0].ranks);
  std::string send = kCall;
  send.replace(send.find("allreduce"), 9, "send");
  REQUIRE(events_error(with_args(send)) ==
          "a.json: event 0 (ncclDevKernel): Dst Rank: expected a whole number from 0 to 1000000, "
          "found none");
  const KinetoEvent sent = events(with_args(send + R"(, "Dst Rank": "5")")).events[0];
  REQUIRE(sent.kind == KinetoKind::Send);
  REQUIRE(sent.peer == 5);
}

TEST_CASE("calls that cannot be predicted keep their recorded time", "[kineto]") {
  const auto kind = [](const std::string& args, const std::string& name) {
    const KinetoTrace trace = events(with_args(args, name));
    REQUIRE(trace.events.at(0).time == microseconds(2));
    return trace.events[0].kind;
  };
  for (const char* name :
       {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclDevKernel_SendRecv",
        "void rcclGenericKernel<2>(ncclDevKernelArgsStorage<4096ul>)",
        "mscclKernel_Sum_float_Simple_true"}) {
    REQUIRE(kind(R"("stream": 7)", name) == KinetoKind::Recorded);
    REQUIRE(kind(kCall, name) == KinetoKind::Call);
  }
  REQUIRE(kind(R"("stream": 7)", "gemm") == KinetoKind::Work);
  std::string gather = kCall;
  gather.replace(gather.find("allreduce"), 9, "gather");
  REQUIRE(kind(gather, "ncclDevKernel") == KinetoKind::Recorded);
  std::string split = kCall;
  split.replace(split.find("allreduce"), 9, "all_to_allv");
  REQUIRE(kind(split + R"(, "In split size": "[5, 5]")", "ncclDevKernel") == KinetoKind::Call);
  REQUIRE(kind(split + R"(, "In split size": "[4, 6]")", "ncclDevKernel") == KinetoKind::Recorded);
}

TEST_CASE("older versions of PyTorch write other names of categories", "[kineto]") {
  const KinetoTrace trace = events(
      R"({"traceEvents": [
        {"ph": "X", "cat": "Kernel", "name": "a", "ts": 1, "dur": 2, "args": {"stream": 7}},
        {"ph": "X", "cat": "Memcpy", "name": "b", "ts": 3, "dur": 2, "args": {"stream": 7}},
        {"ph": "X", "cat": "Memset", "name": "c", "ts": 5, "dur": 2, "args": {"stream": 7}},
        {"ph": "X", "cat": "Runtime", "name": "d", "ts": 5, "dur": 2}]})");
  REQUIRE(trace.events.size() == 3);
  REQUIRE(trace.left_out == std::map<std::string, std::size_t>{{"Runtime", 1}});
}

TEST_CASE("what is missing in a profile is named with its event", "[kineto]") {
  const std::string place = "a.json: event 0 (ncclDevKernel): ";
  REQUIRE(call_error("BFloat16", "Float7") ==
          place + "dtype: expected a type of PyTorch such as Float or BFloat16, found \"Float7\"");
  REQUIRE(call_error("\"In msg nelems\": 10", "\"In msg nelems\": -1")
              .find(place + "In msg nelems: expected a whole number") == 0);
  REQUIRE(call_error("\"Group size\": 2", "\"Group size\": 3") ==
          place + "Group size: expected 2 as there are ranks, found 3");
  REQUIRE(events_error(with_args(R"("device": 0)", "gemm")) ==
          "a.json: event 0 (gemm): stream: expected a whole number from 0 to 1099511627776, found "
          "none");
  REQUIRE(events_error(R"({"traceEvents": [{"ph": "B", "cat": "kernel", "name": "a"}]})") ==
          "a.json: event 0 (a): ph: expected X, a complete event, on a GPU, found \"B\"");
  REQUIRE(events_error(R"({"traceEvents": {}})") ==
          "a.json: traceEvents: expected a list of objects, found something else");
  REQUIRE(events_error("[1]") == "a.json: traceEvents: expected a list of events, found none");
  const std::string truncated = with_args(kCall).substr(0, 150);
  REQUIRE(events_error(truncated).find("a.json:1:151: expected JSON, found ") == 0);
}

}  // namespace trainyard
