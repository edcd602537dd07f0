// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/machine/harness_set.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string sample(const std::string& mode, const std::string& algorithm, int channels, int bytes,
                   double us) {
  const std::string time = std::to_string(us);
  return "{\"quantity\": \"collective time\", \"unit\": \"us\", \"parameters\": {\"mode\": \"" +
         mode + "\", \"ranks\": 8, \"algorithm\": \"" + algorithm +
         "\", \"protocol\": \"default\", \"forced_channels\": " + std::to_string(channels) +
         ", \"operation\": \"all_reduce\", \"bytes\": " + std::to_string(bytes) +
         "}, \"count\": 30, \"median\": " + time + ", \"p10\": " + time + ", \"p90\": " + time +
         ", \"min\": " + time + ", \"max\": " + time + "}";
}

std::string measurement(const std::string& id, const std::string& samples) {
  return "{\"id\": \"" + id +
         "\", \"status\": \"measured\", \"reason\": \"\", \"seconds\": 1.0, \"samples\": [" +
         samples + "], \"records\": []}";
}

std::string harness_text(const std::string& measurements) {
  return "{\"format\": \"trainyard-measurements\", \"version\": 1, \"backend\": \"cuda\", "
         "\"options\": {\"repetitions\": 30, \"warmup\": 5}, \"complete\": true, \"machine\": "
         "{\"nccl\": \"2.27.7\", \"gpus\": [{\"name\": \"NVIDIA "
         "H100\"}]}, \"measurements\": [" +
         measurements + "]}";
}

}  // namespace

TEST_CASE("collectives of a measurement set are tables with the variables that forced them") {
  const std::string text = harness_text(
      measurement("nccl.processes.default", sample("process per GPU", "default", 0, 1024, 15.5) +
                                                ", " +
                                                sample("process per GPU", "default", 0, 4096, 17)) +
      ", " +
      measurement("nccl.processes.Ring.LL.c4", sample("process per GPU", "Ring", 4, 1024, 20)) +
      ", " +
      measurement("nccl.one-process.default", sample("one process", "default", 0, 1024, 30)) +
      ", " +
      measurement("nccl.multi-rank.default",
                  sample("two ranks on one GPU", "default", 0, 1024, 9)));
  REQUIRE(is_harness_set(text));
  const HarnessSet set = parse_harness_set(text, "set.json");
  REQUIRE(set.warnings.empty());
  REQUIRE(set.samples.size() == 5);
  const std::vector<CalibrationTable> tables = collective_tables(set, "set.json");
  REQUIRE(tables.size() == 3);
  REQUIRE(tables[0].part == "nccl.processes.default");
  REQUIRE(tables[0].table.rows.size() == 2);
  REQUIRE(tables[0].table.rows[1].time == SimTime(17'000'000));
  REQUIRE(tables[0].table.ranks == 8);
  REQUIRE(tables[0].nccl_version == "2.27.7");
  REQUIRE(tables[0].environment.empty());
  REQUIRE(tables[1].environment ==
          std::vector<std::pair<std::string, std::string>>{
              {"NCCL_ALGO", "Ring"}, {"NCCL_MIN_NCHANNELS", "4"}, {"NCCL_MAX_NCHANNELS", "4"}});
  REQUIRE(tables[2].table.gpus_per_process == 8);
}

TEST_CASE("a measurement set that is cut or wrong is refused in one line") {
  const std::string text =
      harness_text(measurement("a", sample("process per GPU", "default", 0, 1024, 15.5)));
  for (std::size_t end = 1; end < text.size(); end += 7) {
    REQUIRE_THROWS_AS(parse_harness_set(text.substr(0, end), "set.json"), ConfigError);
  }
  REQUIRE_THROWS_WITH(
      parse_harness_set("{\"format\": \"trainyard-measurements\", \"version\": 2}", "set.json"),
      "set.json: version: expected 1, found \"2\"");
  std::string failed = text;
  failed.replace(failed.find("\"measured\", \"reason\": \"\""), 24,
                 "\"timed out\", \"reason\": \"30 s\"");
  REQUIRE(parse_harness_set(failed, "set.json").warnings ==
          std::vector<std::string>{"set.json: a timed out: 30 s"});
}

}  // namespace trainyard
