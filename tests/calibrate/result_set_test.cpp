// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibrate/result_set.h"

#include <limits>

#include "calibrate/fake_backend.h"
#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard::calibrate {
namespace {

ResultSet small_set() {
  ResultSet set;
  set.backend = "fake";
  set.started = "2026-01-31T23:59:59Z";
  set.updated = set.started;
  set.repetitions = 30;
  set.warmup = 5;
  set.machine = FakeBackend().machine(Options{});
  set.results.push_back(
      {.id = "gpu.memory",
       .status = Status::Measured,
       .reason = "",
       .seconds = 1.5,
       .samples = {{.quantity = "copy bandwidth",
                    .unit = "GB/s",
                    .parameters = {{"bytes", std::int64_t{1} << 40}, {"share", 0.5}, {"op", "x"}},
                    .summary = summarise({1.0, 2.0, 3.0})}},
       .records = {{"remark", "not \xFF UTF-8"}}});
  set.results.push_back({.id = "peer.latency",
                         .status = Status::NotMeasured,
                         .reason = "needs 2 GPUs, found 1",
                         .seconds = 0.0,
                         .samples = {},
                         .records = {}});
  return set;
}

std::string replaced(std::string text, const std::string& old, const std::string& with) {
  const std::size_t place = text.find(old);
  REQUIRE(place != std::string::npos);
  return text.replace(place, old.size(), with);
}

std::string complaint_about(const std::string& text) {
  try {
    (void)parse_result_set(text, "a.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a measurement set is read as it was written") {
  const ScratchFolder scratch;
  const auto file = scratch.path() / "set.json";
  write_result_set(file, small_set());
  const ResultSet set = read_result_set(file);
  REQUIRE(set.results.size() == 2);
  REQUIRE(set.results[0].samples[0].parameters.size() == 3);
  REQUIRE(std::get<std::int64_t>(set.results[0].samples[0].parameters[0].value) == std::int64_t{1}
                                                                                       << 40);
  REQUIRE(set.results[0].samples[0].summary.p90 == 2.8);
  REQUIRE(set.results[1].reason == "needs 2 GPUs, found 1");
  REQUIRE(set.machine.gpus[0].uuid == "GPU-fake-a-0");
  REQUIRE(why_another_run(set, small_set()).empty());
  write_result_set(file, set);  // Over the old one; nothing else is left in the folder.
  REQUIRE(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
}

TEST_CASE("the schema of a measurement set is enforced") {
  const ScratchFolder scratch;
  const auto file = scratch.path() / "set.json";
  write_result_set(file, small_set());
  const std::string good = read_text_file(file);
  REQUIRE(complaint_about(good).empty());
  REQUIRE(complaint_about(replaced(good, "trainyard-measurements", "other")) ==
          "a.json: measurement set.format: expected \"trainyard-measurements\", found \"other\"");
  REQUIRE(complaint_about(replaced(good, "\"version\": 1", "\"version\": 2")) ==
          "a.json: measurement set.version: expected 1, found 2");
  REQUIRE(complaint_about(replaced(good, "\"count\": 3", "\"count\": 0")) ==
          "a.json: measurements[0].samples[0].count: expected a whole number of 1 or more, "
          "found 0");
  REQUIRE(complaint_about(replaced(good, "\"median\": 2.0", "\"median\": 9.0")) ==
          "a.json: measurements[0].samples[0].median: expected min <= p10 <= median <= p90 <= max, "
          "found 9.0");
  REQUIRE(complaint_about(replaced(good, "\"GB/s\"", "\"GiB/s\"")) ==
          "a.json: measurements[0].samples[0].unit: expected one of us, GB/s, TFLOP/s, ratio, MHz, "
          "W, C, count, found \"GiB/s\"");
  REQUIRE(complaint_about(replaced(good, "\"not measured\"", "\"measured\"")) ==
          "a.json: measurements[1].reason: expected a reason where, and only where, it is not "
          "measured, found \"needs 2 GPUs, found 1\"");
  REQUIRE(complaint_about(replaced(good, "peer.latency", "gpu.memory")) ==
          "a.json: measurements[1].id: expected each once, found \"gpu.memory\" again");
  REQUIRE(complaint_about(replaced(good, "\"seconds\"", "\"second\"")) ==
          "a.json: measurements[0]: expected one of id, status, reason, seconds, samples, records, "
          "found \"second\"");
  REQUIRE_FALSE(complaint_about(good.substr(0, good.size() / 2)).empty());
  REQUIRE(complaint_about("[]") == "a.json: measurement set: expected an object, found array");
  REQUIRE_THROWS_AS(read_result_set(scratch.path()), ConfigError);
  REQUIRE_THROWS_AS(read_result_set(scratch.path() / "none"), ConfigError);
}

TEST_CASE("a run goes on only on the same machine with the same options") {
  const ResultSet old = small_set();
  ResultSet now = small_set();
  now.machine.gpus[0].uuid = "GPU-other";
  REQUIRE(why_another_run(old, now) == "expected the GPUs \"GPU-other\", found \"GPU-fake-a-0\"");
  now = small_set();
  now.machine.nccl = "2.30.7";
  REQUIRE(why_another_run(old, now) == "expected NCCL \"2.30.7\", found \"2.28.9\"");
  now = small_set();
  now.repetitions = 40;
  REQUIRE(why_another_run(old, now) == "expected --repetitions \"40\", found \"30\"");
}

TEST_CASE("a measurement set that cannot be written is an error of one line") {
  REQUIRE_THROWS_WITH(write_result_set("/nowhere/set.json", small_set()),
                      "/nowhere/set.json: cannot be written: No such file or directory");
}

TEST_CASE("a child's report ends at its last whole line") {
  const Sample sample = small_set().results[0].samples[0];
  const std::string line = sample_line(sample);
  ChildReport report = parse_child_output(line + line.substr(0, 20));
  REQUIRE(report.samples.size() == 1);
  REQUIRE_FALSE(report.ended);
  report = parse_child_output(line + record_line({"remark", "a\nb"}) + end_line());
  REQUIRE(report.ended);
  REQUIRE(report.records[0].text == "a\nb");
  REQUIRE(parse_child_output(not_measured_line("why")).not_measured == "why");
  REQUIRE_THROWS_AS(parse_child_output("NCCL INFO\n"), std::runtime_error);
  REQUIRE_THROWS_AS(parse_child_output("{\"other\": 1}\n"), std::runtime_error);
}

TEST_CASE("a summary of repetitions keeps its order and refuses nonsense") {
  const Summary summary = summarise({5.0, 1.0, 4.0, 2.0, 3.0});
  REQUIRE(summary.count == 5);
  REQUIRE(summary.min == 1.0);
  REQUIRE(summary.p10 == Approx(1.4));
  REQUIRE(summary.median == 3.0);
  REQUIRE(summary.p90 == Approx(4.6));
  REQUIRE(summary.max == 5.0);
  REQUIRE(summarise_rate(10.0, {2.0, 5.0}).max == 5.0);
  REQUIRE_THROWS_AS(summarise({}), std::runtime_error);
  REQUIRE_THROWS_AS(summarise({std::numeric_limits<double>::quiet_NaN()}), std::runtime_error);
  REQUIRE_THROWS_AS(summarise_rate(1.0, {0.0}), std::runtime_error);
}

}  // namespace
}  // namespace trainyard::calibrate
