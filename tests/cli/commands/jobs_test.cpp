// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

// A workload of two layers.
class SmallJobs {
 public:
  [[nodiscard]] std::string run(const std::vector<std::string>& servers, const std::string& format,
                                const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{
        "--cluster", (kConfigsFolder / "clusters/hgx-h100-clos.yaml").string(),
        "--nodes",   "4",
        "--set",     "fabric.oversubscription=4",
        "--set",     "fabric.nodes_per_leaf=2",
        "--steps",   "2",
        "--format",  format};
    for (const std::string& each : servers) {
      arguments.insert(arguments.end(), {"--job", file_.string() + "@" + each});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out;
    const int status = run_command(jobs_command(), arguments, out);
    REQUIRE(status == 0);
    return out.str();
  }

 private:
  ScratchFolder folder_;
  std::filesystem::path file_ = folder_.write("small.yaml", R"(title: Two layers of Llama 3 8B
source: "config.json of https://huggingface.co/meta-llama/Meta-Llama-3-8B, fewer layers"
model:
  title: two layers
  source: "as above"
  hidden: 4096
  vocabulary: 128256
  layers:
    - count: 2
      attention: {heads: 32, kv_heads: 8, head_size: 128}
      feed_forward: {size: 14336, gated: true}
software: megatron-core
precision: bf16
plan: {tensor: 8}
batch: {micro: 1, global: 8, sequence: 1024}
)");
};

std::string refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(),
                   {"--cluster", (kConfigsFolder / "clusters/dgx-h100.yaml").string()});
  std::ostringstream out;
  try {
    (void)run_command(jobs_command(), arguments, out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("jobs are compared with themselves alone", "[cli][jobs]") {
  const SmallJobs small;
  const auto json = nlohmann::json::parse(small.run({"0,2", "1,3"}, "json"));
  REQUIRE(json["jobs"].size() == 2);
  for (const auto& job : json["jobs"]) {
    REQUIRE(job["gpus"] == 16);
    REQUIRE(job["steps"].get<int>() >= 2);
    REQUIRE(job["slowdown"].get<double>() ==
            Approx(job["together_s"].get<double>() / job["alone_s"].get<double>()));
    REQUIRE(job["slowdown"].get<double>() > 1.0);
  }
  REQUIRE(json["links"].size() == 5);
  REQUIRE(json["links"][0]["busy_share"].get<double>() <= 1.0);
  const std::string csv = small.run({"0-1"}, "csv");
  REQUIRE(csv.find("job,gpus,alone_s,together_s,longest_s,slowdown,steps\n") == 0);
  REQUIRE(csv.find(",1,2\n") != std::string::npos);
}

TEST_CASE("jobs with packets say what fast-forward has skipped", "[cli][jobs]") {
  const SmallJobs small;
  const std::string text =
      small.run({"0", "1"}, "table", {"--fidelity", "packet", "--fast-forward", "exact"});
  REQUIRE(text.find("of them skipped)") != std::string::npos);
}

TEST_CASE("jobs are refused in one line", "[cli][jobs]") {
  REQUIRE(refusal({}) == "jobs: expected --job, found none; see trainyard jobs --help");
  for (const char* text :
       {"x", "@1", "x@", "x@b", "x@3-1", "x@-1", "x@1-", "x@0,,1", "x@1.5", "x@9999999"}) {
    REQUIRE(refusal({"--job", text}) ==
            "--job: expected WORKLOAD@SERVERS with servers such as 0-3,8, found \"" +
                std::string(text) + "\"");
  }
}

}  // namespace trainyard
