// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/inputs.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

InputNames names_of(const Command& command, const std::vector<std::string>& arguments) {
  return read_input_names(parse_options(command, arguments));
}

}  // namespace

TEST_CASE("settings of the workload are apart from those of the cluster", "[cli]") {
  const InputNames names =
      names_of(step_command(), {"--cluster", "dgx-h100", "--workload", "llama-3-8b", "--set",
                                "batch.micro=1", "--set", "fabric.cable=20 m"});
  REQUIRE(names.workload_settings == std::vector<std::string>{"batch.micro=1"});
  REQUIRE(names.overrides.settings == std::vector<std::string>{"fabric.cable=20 m"});
  REQUIRE(names.settings() == std::vector<std::string>{"fabric.cable=20 m", "batch.micro=1"});
  const InputNames cluster_alone =
      names_of(cost_command(), {"--cluster", "dgx-h100", "--set", "batch.micro=1"});
  REQUIRE(cluster_alone.workload_settings.empty());
  REQUIRE_THROWS_WITH(names_of(step_command(), {}),
                      "step: expected --cluster, found none; see trainyard step --help");
}

TEST_CASE("a model is a setting of the workload, or of the default job", "[cli]") {
  const auto model_alone = [](const std::string& model) {
    return names_of(step_command(),
                    {"--cluster", "dgx-h100", "--model", model, "--set", "batch.micro=2"});
  };
  InputNames names = model_alone("gpt2");
  REQUIRE(names.workload == "data-parallel");
  REQUIRE(names.workload_settings ==
          std::vector<std::string>{"model=gpt2", "batch.sequence=1024", "batch.micro=2"});
  REQUIRE(model_alone("vit-large-16").workload_settings[1] == "batch.sequence=197");
  std::vector<std::string> notes;
  add_job_note(names, notes);
  REQUIRE(notes.size() == 1);
  REQUIRE(load_job(names.workload, names.workload_settings).workload.model.hidden == 768);
  names = names_of(search_command(),
                   {"--cluster", "dgx-h100", "--workload", "llama-3-8b", "--model", "qwen2.5-7b"});
  add_job_note(names, notes);
  REQUIRE(notes.size() == 1);
  const Workload workload = load_job(names.workload, names.workload_settings).workload;
  REQUIRE(workload.name == "llama-3-8b");
  REQUIRE(workload.model.name == "qwen2.5-7b");
  REQUIRE(workload.plan.tensor == 4);
}

TEST_CASE("a wrong name is answered with the nearest workload and model", "[cli]") {
  REQUIRE_THROWS_WITH(
      find_workload("llama-2-7b"),
      "--workload: expected a workload, found the model llama-2-7b; use --model llama-2-7b");
  REQUIRE(find_model("qwen2.5-7b").filename() == "qwen2.5-7b.yaml");
  REQUIRE_THROWS_WITH(
      find_model("qwen2.5-7"),
      Catch::Matchers::StartsWith("--model: expected a file or one of the ") &&
          Catch::Matchers::EndsWith(
              " names in configs/workloads/models, found \"qwen2.5-7\"; did you mean "
              "\"qwen2.5-7b\", \"qwen2.5-3b\", \"qwen2.5-72b\" or \"qwen2.5-0.5b\"?"));
  REQUIRE_THROWS_WITH(find_model("llama-4"),
                      Catch::Matchers::Contains("; did you mean \"llama-4-maverick\", "
                                                "\"llama-4-scout\", \"llama-"));
  REQUIRE_THROWS_WITH(find_model("mixtral-8x7"),
                      Catch::Matchers::EndsWith("found \"mixtral-8x7\"; did you mean "
                                                "\"mixtral-8x7b\", \"mixtral-8x22b\" or "
                                                "--workload mixtral-8x7b?"));
  REQUIRE_THROWS_WITH(find_model("no such model at all"),
                      Catch::Matchers::EndsWith("found \"no such model at all\""));
}

TEST_CASE("inputs are what the names say", "[cli]") {
  spdlog::logger log("test");
  const Inputs inputs = load_inputs({.cluster = "dgx-h100",
                                     .overrides = {.nodes = 2},
                                     .workload = "llama-3-8b",
                                     .workload_settings = {"batch.micro=2"}},
                                    log);
  REQUIRE(inputs.machine.cluster.nodes == 2);
  REQUIRE(inputs.workload.plan.micro_batch == 2);
  REQUIRE(inputs.machine.software.name == load_job("llama-3-8b").software.name);
  REQUIRE_THROWS_AS(load_profile("no-such.yaml"), ConfigError);
  REQUIRE_THROWS_AS(load_gpu_rates("no-such.yaml"), ConfigError);
  REQUIRE_THROWS_AS(load_cluster_inputs({.cluster = "no-such"}, log), ConfigError);
}

TEST_CASE("what a run was made of are its settings and the rates of its links", "[run-inputs]") {
  const RunInputs inputs = run_inputs(shipped_cluster("dgx-h100", {.nodes = 2}), {"a=b"});
  REQUIRE(inputs.settings == std::vector<std::string>{"a=b"});
  REQUIRE(inputs.resources.front().first == "nvlink");
  REQUIRE(inputs.resources.front().second == "369 GB/s");
}

}  // namespace trainyard
