// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/step/step_imported.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kFolder = source_dir().string() + "/configs/";
const std::string kGoal = kFolder + "workloads/imported/dissemination-8.goal";

std::string imported_output(const std::string& workload, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", kFolder + "clusters/dgx-h100.yaml", "--nodes",
                                     "1", "--workload", workload});
  std::ostringstream out;
  const int status = run_command(step_command(), arguments, out);
  REQUIRE(status == 0);
  return out.str();
}

nlohmann::json imported_json(const std::string& workload, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.end(), {"--format", "json"});
  return nlohmann::json::parse(imported_output(workload, std::move(arguments)));
}

std::string refused(const std::string& workload, std::vector<std::string> arguments) {
  try {
    (void)imported_output(workload, std::move(arguments));
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

nlohmann::json without_notes(nlohmann::json result) {
  result.erase("notes");
  return result;
}

}  // namespace

// Each of 8 ranks sends three messages of 64 KiB, each over two links: to the NVSwitch and from it.
TEST_CASE("messages of an imported workload are counted on links", "[step-imported][volumes]") {
  const auto json = imported_json(kGoal);
  REQUIRE(json["volumes"].size() == 1);
  REQUIRE(json["volumes"][0]["tier"] == "nvlink");
  REQUIRE(json["volumes"][0]["bytes"] == 8 * 3 * 65'536 * 2);
}

TEST_CASE("a folded graph is counted with all of its ranks", "[step-imported][volumes]") {
  const std::string layers = kFolder + "workloads/imported/transformer-tp2-dp4.txt";
  const auto folded = imported_json(layers, {"--runtime", "plain"});
  const auto all = imported_json(layers, {"--runtime", "plain", "--jitter", "ranks=0.01"});
  REQUIRE(folded["ranks_run"] != all["ranks_run"]);
  REQUIRE(!folded["volumes"].empty());
  REQUIRE(folded["volumes"] == all["volumes"]);
  REQUIRE(folded["volumes_by_purpose"] == all["volumes_by_purpose"]);
}

TEST_CASE("an imported workload runs like a step of our own", "[step-imported]") {
  const auto json = imported_json(kGoal);
  REQUIRE(json["format"] == "goal");
  REQUIRE(json["traffic"] == "shared");
  std::int64_t sum = 0;
  for (const auto& part : json["breakdown_ps"]) {
    sum += part.get<std::int64_t>();
  }
  REQUIRE(sum == json["time_ps"].get<std::int64_t>());
  REQUIRE(json == imported_json(kGoal));
  // A note says that these are what goes without saying.
  REQUIRE(without_notes(json) ==
          without_notes(imported_json(kGoal, {"--workload-format", "goal", "--method", "graph"})));
  const auto time = [](std::vector<std::string> arguments) -> std::int64_t {
    return imported_json(kGoal, std::move(arguments))["time_ps"];
  };
  REQUIRE(time({"--fidelity", "analytical"}) <= time({}));
  REQUIRE(time({"--compute-scale", "2"}) > time({}));
  REQUIRE(time({"--slow-rank", "7=1.5"}) > time({}));
  REQUIRE(time({"--fidelity", "packet"}) > 0);
}

TEST_CASE("layers of a text workload run as NCCL would, or on one network", "[step-imported]") {
  const std::string workload = kFolder + "workloads/imported/transformer-tp2-dp4.txt";
  const auto nccl = imported_json(workload);
  REQUIRE(nccl["runtime"] == "nccl");
  REQUIRE(nccl["traffic"] == "alone");
  REQUIRE(nccl["ranks_run"] == 1);
  const auto shared = imported_json(workload, {"--runtime", "plain", "--traffic", "shared"});
  REQUIRE(shared["ranks_run"] == 8);
  const auto alone = imported_json(workload, {"--runtime", "plain"});
  REQUIRE(alone["time_ps"] <= shared["time_ps"]);
  REQUIRE(alone["breakdown_ps"]["compute"] == shared["breakdown_ps"]["compute"]);
  REQUIRE(alone["breakdown_ps"]["recompute"] > 175'084'000 * 2 + 79'563'000 + 350'168'000);
}

TEST_CASE("any rank of a text workload can be slow", "[step-imported]") {
  const std::string workload = kFolder + "workloads/imported/transformer-tp2-dp4.txt";
  const std::int64_t plain = imported_json(workload)["time_ps"];
  const auto first = imported_json(workload, {"--slow-rank", "0=1.5"});
  const auto last = imported_json(workload, {"--slow-rank", "7=1.5"});
  REQUIRE(last["ranks_run"] == 8);
  REQUIRE(last["time_ps"] > plain);
  REQUIRE(last["time_ps"] == first["time_ps"]);  // All wait for it, whichever it is.
  REQUIRE(refused(workload, {"--slow-rank", "8=1.5"}) ==
          "--slow-rank: expected a rank that is in the workload, found 8");
}

TEST_CASE("profiles of all ranks run again, and what is no work of a GPU is counted",
          "[step-imported]") {
  const ProgramResult result = run_program(
      {"step", "--cluster", "dgx-h100", "--workload", "configs/workloads/imported/kineto-2"},
      source_dir());
  REQUIRE(result.status == 0);
  REQUIRE(result.error ==
          "trainyard: warning: left out: events that are no work of a GPU: 12 of cpu_op, 12 of "
          "cuda_runtime, 2 of no duration\n");
  REQUIRE(result.output.find("# Note: recorded were ") != std::string::npos);
  REQUIRE(result.output.find("\ncollective ") != std::string::npos);
}

TEST_CASE("profiles run on another machine than they were recorded on", "[step-imported]") {
  const std::string folder = kFolder + "workloads/imported/kineto-2";
  const auto time = [&](const std::vector<std::string>& arguments) -> std::int64_t {
    return imported_json(folder, arguments)["time_ps"];
  };
  REQUIRE(time({"--recorded-on", "H100-SXM"}) == time({}));
  REQUIRE(time({"--recorded-on", "A100-SXM-80GB"}) < time({}));
  REQUIRE(refused(folder, {"--recorded-on", "H1000"})
              .find("--recorded-on: expected a GPU of the catalogue: ") == 0);
  REQUIRE(refused(kGoal, {"--recorded-on", "H100-SXM"}) ==
          "--recorded-on: expected profiles, whose kernels have names, found a goal file");
  REQUIRE(refused(kGoal, {"--execution-traces", "a.json"}) ==
          "--execution-traces: expected profiles, found a goal file");
  // All kernels of these profiles have a name.
  const ScratchFolder scratch;
  scratch.write("e.json", R"({"nodes": []})");
  REQUIRE(time({"--execution-traces", (scratch.path() / "e.json").string()}) == time({}));
}

TEST_CASE("traces of all ranks or of one run with the cluster's network", "[step-imported]") {
  const std::string folder = kFolder + "workloads/imported/chakra-2";
  const auto both = imported_json(folder);
  REQUIRE(both["format"] == "chakra");
  REQUIRE(both["ranks"] == 2);
  REQUIRE(without_notes(both) ==
          without_notes(imported_json(folder + "/trace.{rank}.et", {"--workload-format", "chakra"}))
              .patch(nlohmann::json::array(
                  {{{"op", "replace"}, {"path", "/workload"}, {"value", folder}}})));
  REQUIRE(imported_json(folder, {"--runtime", "plain", "--traffic", "shared"})["time_ps"] > 0);
  // Of messages both ends must be there.
  REQUIRE(refused(folder + "/trace.0.et", {}) ==
          folder +
              "/trace.0.et: rank 0, send: send statistics, node 17: expected another rank of the "
              "graph as its peer, found 1");
}

TEST_CASE("only a workload without messages is said to send nothing", "[step-imported]") {
  const ScratchFolder folder;
  const auto warning_of = [&](const std::string& text) {
    folder.write("a.goal", text);
    return run_program({"step", "--cluster", "dgx-h100", "--nodes", "1", "--workload", "a.goal"},
                       folder.path())
        .error;
  };
  REQUIRE(warning_of("num_ranks 2\nrank 0 {\na: calc 5\n}\nrank 1 {\nb: calc 5\n}\n")
              .find("the workload sends nothing") != std::string::npos);
  REQUIRE(warning_of("num_ranks 2\nrank 0 {\na: send 0b to 1\n}\nrank 1 {\nb: recv 0b from 0\n}\n")
              .empty());
}

TEST_CASE("an output is no file of the workload", "[step-imported]") {
  const ScratchFolder folder;
  const std::string text = read_text_file(kGoal);
  folder.write("a.goal", text);
  const ProgramResult run = run_program({"step", "--cluster", "dgx-h100", "--nodes", "1",
                                         "--workload", "a.goal", "--output", "./a.goal"},
                                        folder.path());
  REQUIRE(run.status == 2);
  REQUIRE(run.error ==
          "trainyard: --output: expected another file than that of --workload, found "
          "\"./a.goal\"\n");
  REQUIRE(read_text_file(folder.path() / "a.goal") == text);
  folder.write("trace.0.json", "{}");
  REQUIRE(refused((folder.path() / "trace.{rank}.json").string(),
                  {"--trace", (folder.path() / "trace.0.json").string()})
              .starts_with("--trace: expected another file than that of --workload, found "));
}

TEST_CASE("a imported workload has a time line", "[step-imported]") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "trace.json").string();
  (void)imported_output(kGoal, {"--trace", file});
  const std::string text = read_text_file(file);
  REQUIRE(text.find("\"rank 7\"") != std::string::npos);
  REQUIRE(text.find("cpu 0") != std::string::npos);
}

TEST_CASE("what a imported workload cannot have is refused", "[step-imported]") {
  REQUIRE(refused(kGoal, {"--method", "closed-forms"}) ==
          "--method: expected graph (as there are no closed forms for a goal file), found "
          "\"closed-forms\"");
  REQUIRE(refused(kGoal, {"--runtime", "nccl"}) ==
          "--runtime: expected plain (as a goal file has messages but no collectives), found "
          "\"nccl\"");
  REQUIRE(refused(kGoal, {"--fidelity", "analytical", "--traffic", "shared"}) ==
          "--traffic shared: expected --runtime plain with --fidelity flow or packet, found "
          "analytical");
  REQUIRE(refused(kGoal, {"--compute-scale", "0"}) ==
          "--compute-scale: expected a factor from 0.001 to 1000, found \"0\"");
  REQUIRE(refused(kGoal, {"--slow-rank", "8=2"}) ==
          "--slow-rank: expected a rank that is in the workload, found 8");
  REQUIRE(refused(kFolder + "workloads/gpt-3-175b.yaml", {"--compute-scale", "2"}) ==
          "--compute-scale: expected a workload of another tool, found one of Trainyard's own");
  REQUIRE(refused(kGoal, {"--memory", "a.csv"}) ==
          "--memory: expected a workload of Trainyard's own, found one of another tool, of which "
          "nobody says what it holds");
  REQUIRE(refused(kGoal, {"--comm-groups", "a.json"}) ==
          "--comm-groups: expected chakra traces, found a goal file");
}

TEST_CASE("a malformed imported workload ends the program with 2 and one line", "[step-imported]") {
  const ScratchFolder folder;
  folder.write("a.goal", "num_ranks 2\nrank 0 {\nrecv 8b from 1\n}\nrank 1 {\n}\n");
  const ProgramResult result =
      run_program({"step", "--cluster", "dgx-h100", "--workload", "a.goal"}, folder.path());
  REQUIRE(result.status == 2);
  REQUIRE(result.output.empty());
  REQUIRE(result.error.find("a.goal: rank 0, receive: recv of line 3: expected a send of rank 1") !=
          std::string::npos);
}

}  // namespace trainyard
