// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "parallelism/memory/step_memory.h"
#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kStepConfigs = source_dir().string() + "/configs/";

std::vector<std::string> with_files_step(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(),
                   {"--cluster", kStepConfigs + "clusters/dgx-h100.yaml", "--nodes", "8",
                    "--workload", kStepConfigs + "workloads/mixtral-8x7b.yaml"});
  return arguments;
}

std::string output_of_step(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(run_command(step_command(), arguments, out) == 0);
  return out.str();
}

nlohmann::json json_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  return nlohmann::json::parse(output_of_step(with_files_step(std::move(arguments))));
}

std::string error_of_step(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(step_command(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

// GiB, of the moments in a file of --memory.
double highest_of(const std::string& file) {
  std::istringstream lines(read_text_file(file));
  std::string line;
  std::getline(lines, line);
  double highest = 0.0;
  while (std::getline(lines, line)) {
    // Moments have commas, sizes come last.
    double sum = 0.0;
    std::size_t end = line.size();
    for (std::size_t index = 0; index < kMemoryClasses.size(); ++index) {
      const std::size_t comma = line.rfind(',', end - 1);
      sum += std::stod(line.substr(comma + 1, end - comma - 1));
      end = comma;
    }
    highest = std::max(highest, sum);
  }
  return highest;
}

}  // namespace

TEST_CASE("a step of the shipped workload has parts that add up", "[step-command]") {
  const auto json = json_of({});
  REQUIRE(json["gpus"] == 64);
  REQUIRE(json["plan"]["data"] == 2);
  std::int64_t sum = 0;
  for (const auto& part : json["breakdown_ps"]) {
    sum += part.get<std::int64_t>();
  }
  REQUIRE(sum == json["step_time_ps"].get<std::int64_t>());
  REQUIRE(json["runtime"] == "nccl");
  REQUIRE(json["notes"][0].get<std::string>().find("closed forms: ") == 0);
  REQUIRE(json == json_of({}));
}

TEST_CASE("settings go to the workload or to the cluster", "[step-command]") {
  REQUIRE(json_of({"--set", "batch.global=128"})["plan"]["global_batch"] == 128);
  REQUIRE(json_of({"--set", "name=mine"})["cluster"] == "mine");
  REQUIRE(error_of_step(with_files_step({"--set", "plan.tensr=2"})) ==
          "--set plan.tensr=2: plan: unknown key \"tensr\"; did you mean \"tensor\"?");
  REQUIRE(error_of_step(with_files_step({"--set", "sequence=4096"})) ==
          "--set sequence=4096: expected a whole path, found \"sequence\"; did you mean "
          "batch.sequence?");
}

TEST_CASE("the plain runtime has fidelities, the analytical one is a lower bound",
          "[step-command]") {
  const auto time = [](const std::string& fidelity) -> double {
    return json_of({"--runtime", "plain", "--fidelity", fidelity})["step_time_s"];
  };
  REQUIRE(time("analytical") <= time("flow"));
  REQUIRE(error_of_step(with_files_step({"--runtime", "plain", "--fidelity", "ports"})) ==
          "--fidelity: expected flow, analytical, packet or mixed, found \"ports\"");
  const double ports = json_of({})["step_time_s"];
  REQUIRE(json_of({"--fidelity", "ports"})["step_time_s"] == ports);
  REQUIRE(json_of({"--fidelity", "flow"})["step_time_s"].get<double>() ==
          Approx(ports).epsilon(0.05));
}

TEST_CASE("a graph takes about as long as the closed forms, and its parts add up",
          "[step-command]") {
  const auto closed = json_of({});
  const auto graph = json_of({"--method", "graph"});
  REQUIRE(graph["step_time_s"].get<double>() ==
          Approx(closed["step_time_s"].get<double>()).epsilon(0.05));
  std::int64_t sum = 0;
  for (const auto& part : graph["breakdown_ps"]) {
    sum += part.get<std::int64_t>();
  }
  REQUIRE(sum == graph["step_time_ps"].get<std::int64_t>());
  REQUIRE(graph["notes"][0].get<std::string>().find("a graph of ") == 0);
}

TEST_CASE("a slow rank makes a step longer, and a trace shows it", "[step-command]") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "trainyard_step_trace_test.json";
  const auto slow =
      json_of({"--method", "graph", "--slow-rank", "5=1.25", "--trace", file.string()});
  const auto usual = json_of({"--method", "graph"});
  const double ratio = slow["step_time_s"].get<double>() / usual["step_time_s"].get<double>();
  REQUIRE(ratio > 1.0);
  REQUIRE(ratio < 1.25);
  std::ifstream input(file);
  const auto trace = nlohmann::json::parse(input);
  REQUIRE(trace["traceEvents"].size() > 1000);
  std::filesystem::remove(file);
}

TEST_CASE("a rank that is faster than others of its stage waits for them", "[step-command]") {
  const auto time = [](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--method", "graph"};
    all.insert(all.end(), more.begin(), more.end());
    return json_of(all)["step_time_ps"].get<std::int64_t>();
  };
  REQUIRE(time({"--slow-rank", "0=0.5"}) == time({}));
  REQUIRE(time({"--slow-rank", "0=1.5"}) > time({}));
}

TEST_CASE("the memory of every pass is written, and its highest moment is the peak",
          "[step-command]") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "memory.csv").string();
  const nlohmann::json step = json_of({"--memory", file, "--set", "plan.pipeline=2"});
  const std::string text = read_text_file(file);
  REQUIRE(text.rfind("rank,position,moment,weights_gib,", 0) == 0);
  const std::size_t optimizer = text.find(",optimizer,");
  REQUIRE(optimizer != std::string::npos);
  REQUIRE(text.find(",optimizer,", optimizer + 1) != std::string::npos);  // Of both ranks.
  REQUIRE(highest_of(file) == Approx(step["memory_peak_gib"].get<double>()).epsilon(1e-12));
}

TEST_CASE("a step takes the profile that it is given, and says what that does not rest on",
          "[step-command]") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "trainyard_step_profile_test.yaml";
  const std::string logs = source_dir().string() + "/tests/golden/calibrate/";
  std::ostringstream out;
  REQUIRE(
      run_command(calibrate_command(),
                  std::vector<std::string>{logs + "all_reduce.log", "--cluster",
                                           kStepConfigs + "clusters/dgx-h100.yaml", "--log-level",
                                           "off", "--profile-out", file.string()},
                  out) == 0);
  const auto json = json_of({"--profile", file.string()});
  REQUIRE(json["step_time_ps"] != json_of({})["step_time_ps"]);
  const std::string notes = json["notes"].dump();
  REQUIRE(notes.find("beyond what the profile was fitted to: ") != std::string::npos);
  REQUIRE(error_of_step(with_files_step({"--runtime", "plain", "--profile", file.string()})) ==
          "--profile: expected --runtime nccl or rccl beside it, found plain");
  std::filesystem::remove(file);
}

TEST_CASE("jitter takes every rank, and the same seed gives the same step", "[step-command]") {
  const auto time = [](const char* seed) {
    return json_of({"--method", "graph", "--jitter", "ranks=0.05", "--seed", seed, "--set",
                    "batch.global=2", "--gpus-per-node", "1", "--set", "plan.tensor=1", "--set",
                    "plan.expert=1", "--set", "plan.sequence_parallel=false"})["step_time_ps"]
        .get<std::int64_t>();
  };
  REQUIRE(time("1") == time("1"));
  REQUIRE(time("1") != time("2"));
}

TEST_CASE("with all traffic on one network a step takes about as long on rails",
          "[step-command][long]") {
  const std::vector<std::string> small{
      "--method", "graph",           "--runtime", "plain",
      "--set",    "batch.global=16", "--set",     "batch.sequence=512"};
  std::vector<std::string> shared = small;
  shared.insert(shared.end(), {"--traffic", "shared"});
  const auto run = json_of(shared);
  REQUIRE(run["step_time_s"].get<double>() ==
          Approx(json_of(small)["step_time_s"].get<double>()).epsilon(0.1));
  REQUIRE(run["notes"][1] == "collectives run as plain rings, all groups at once on one network");
}

TEST_CASE("options of the graph want the graph", "[step-command]") {
  REQUIRE(error_of_step(with_files_step({"--slow-rank", "1=2"})) ==
          "--slow-rank: expected --method graph, as closed forms have no time line, found "
          "closed-forms");
  REQUIRE(error_of_step(with_files_step({"--method", "graph", "--slow-rank", "64=2"})) ==
          "slow rank: expected a rank from 0 to 63, found 64");
  REQUIRE(error_of_step(with_files_step({"--method", "graph", "--traffic", "shared"})) ==
          "--traffic shared: expected --runtime plain with --fidelity flow or packet, found nccl");
  REQUIRE(error_of_step(with_files_step({"--method", "graph", "--slow-rank", "1"})) ==
          "--slow-rank: expected RANK=FACTOR, a factor from 0.001 to 1000, found \"1\"");
}

TEST_CASE("a step with parameter servers has the memory of its workers, and no trace",
          "[step-command]") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "memory.csv").string();
  std::vector<std::string> arguments{"--cluster",       kStepConfigs + "clusters/dgx-h100.yaml",
                                     "--nodes",         "2",
                                     "--gpus-per-node", "1",
                                     "--workload",      kStepConfigs + "workloads/llama-3-8b.yaml",
                                     "--set",           "plan={servers: {count: 1, steps: 1}}",
                                     "--set",           "batch.global=1",
                                     "--method",        "graph",
                                     "--runtime",       "plain",
                                     "--traffic",       "shared",
                                     "--format",        "json"};
  const auto with = [&](const std::string& option) {
    std::vector<std::string> more = arguments;
    more.insert(more.end(), {option, file});
    return more;
  };
  const nlohmann::json step = nlohmann::json::parse(output_of_step(with("--memory")));
  REQUIRE(step["plan"]["servers"] ==
          nlohmann::json{{"count", 1}, {"place", "own"}, {"steps", 1}, {"bound", 0}});
  REQUIRE(highest_of(file) == Approx(step["memory_peak_gib"].get<double>()).epsilon(1e-12));
  REQUIRE(error_of_step(with("--trace")) ==
          "--trace: expected a plan without parameter servers, found plan.servers");
}

TEST_CASE("plans that do not fit are refused with their numbers", "[step-command]") {
  REQUIRE(error_of_step(with_files_step({"--set", "plan.tensor=3"}))
              .find("found 3 x 4 x 1 = 12 and 64") != std::string::npos);
  REQUIRE(error_of_step(with_files_step({"--set", "batch.global=63"})).find("found 63 and 1 x 2") !=
          std::string::npos);
  REQUIRE(error_of_step(with_files_step({"--set", "software=none"})).find("\"none\"") !=
          std::string::npos);
  REQUIRE(error_of_step({"--cluster", "dgx-h100"}) ==
          "step: expected --workload or --model, found none; see trainyard step --help");
}

TEST_CASE("a step whose launches bind says that routing changes its parts alone",
          "[step-command]") {
  const auto note_of = [](const std::string& imbalance, const std::string& sequence) {
    const std::string text =
        output_of_step({"--cluster", "dgx-h100", "--nodes", "1", "--model", "deepseek-v2-lite",
                        "--set", "plan.expert=8", "--set", "batch.sequence=" + sequence, "--set",
                        "routing.imbalance=" + imbalance, "--effects", "off"});
    const std::size_t start = text.find("routing: GPUs wait for launches in ");
    return start == std::string::npos ? std::string() : text.substr(start, 60);
  };
  REQUIRE(
      note_of("1.5", "256").starts_with("routing: GPUs wait for launches in 63 % of the step,"));
  REQUIRE(note_of("1", "256").empty());
  REQUIRE(note_of("1.5", "16384").empty());
}

TEST_CASE("the help of step shows every option and an example", "[step-command]") {
  const std::string help = output_of_step({"--help"});
  for (const std::string part : {"--workload", "--runtime", "--fidelity", "--set", "--method",
                                 "--trace", "trainyard step --cluster"}) {
    REQUIRE(help.find(part) != std::string::npos);
  }
}

}  // namespace trainyard
