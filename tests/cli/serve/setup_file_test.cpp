// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/serve/setup_file.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string file_of(const std::vector<std::string>& words, RunForm form,
                    const std::filesystem::path& folder = {}) {
  return setup_file({.words = words, .form = form}, folder);
}

}  // namespace

TEST_CASE("the files of a command line give its figures", "[serve]") {
  const ScratchFolder folder;
  const std::vector<std::string> words{"step",
                                       "--cluster",
                                       "hgx-h100-clos",
                                       "--nodes",
                                       "2",
                                       "--workload",
                                       "llama-3-8b",
                                       "--set",
                                       "server.nic.speed=200 Gb/s",
                                       "--set",
                                       "fabric.oversubscription=2",
                                       "--set",
                                       "batch.global=32",
                                       "--set",
                                       "plan.zero_stage=2",
                                       "--nccl-version",
                                       "2.20.3"};
  const std::string cluster = file_of(words, RunForm::Cluster);
  const std::string line =
      "trainyard step --cluster cluster.yaml --workload workload.yaml --nccl-version=\"2.20.3\"";
  REQUIRE(cluster.find("#   " + line + "\n") != std::string::npos);
  REQUIRE(cluster.find("\nnodes: 2\n") != std::string::npos);
  folder.write("cluster.yaml", cluster);
  folder.write("workload.yaml", file_of(words, RunForm::Workload));
  const ProgramResult by_files = run_shell(line + " --format json", folder.path());
  INFO(cluster << by_files.error);
  REQUIRE(by_files.status == 0);
  std::vector<std::string> all = words;
  all.insert(all.end(), {"--format", "json"});
  const ProgramResult by_words = run_program(all, folder.path());
  REQUIRE(by_words.status == 0);
  const auto seconds = [](const ProgramResult& result) {
    return nlohmann::json::parse(result.output).at("step_time_ps");
  };
  REQUIRE(seconds(by_files) == seconds(by_words));
  // A page takes again what it has exported.
  const std::string again =
      file_of({"cost", "--cluster", "cluster.yaml"}, RunForm::Cluster, folder.path());
  REQUIRE(again.substr(again.find("\nname")) == cluster.substr(cluster.find("\nname")));
}

TEST_CASE("a command line without a workload has no file of one", "[serve]") {
  REQUIRE_THROWS_WITH(
      file_of({"collective", "all_reduce", "--cluster", "dgx-h100"}, RunForm::Workload),
      Catch::Contains("expected a command with --workload or --model"));
  REQUIRE_THROWS_AS(file_of({"cost", "--cluster", "dgx-h101"}, RunForm::Cluster), ConfigError);
}

}  // namespace trainyard
