// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

// Llama 3 8B on a server or two, with few plans.
std::vector<std::string> small_search(std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "--cluster",     (kConfigsFolder / "clusters/dgx-h100.yaml").string(),
      "--workload",    (kConfigsFolder / "workloads/llama-3-8b.yaml").string(),
      "--pp",          "1,2",
      "--vpp",         "2",
      "--cp",          "1",
      "--sp",          "on",
      "--micro-batch", "1,2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string searched(const std::vector<std::string>& more) {
  std::ostringstream out;
  REQUIRE(run_command(search_command(), small_search(more), out) == 0);
  return out.str();
}

std::string refusal(const std::vector<std::string>& more) {
  std::ostringstream out;
  try {
    (void)run_command(search_command(), small_search(more), out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

nlohmann::json searched_json(std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  return nlohmann::json::parse(searched(more));
}

// Of a workload file, on one server.
double step_seconds(const std::string& file, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "--cluster",  (kConfigsFolder / "clusters/dgx-h100.yaml").string(),
      "--nodes",    "1",
      "--workload", file,
      "--format",   "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ostringstream out;
  REQUIRE(run_command(step_command(), arguments, out) == 0);
  return nlohmann::json::parse(out.str())["step_time_s"];
}

}  // namespace

TEST_CASE("the best plan is a workload that takes as long", "[cli][search]") {
  const ScratchFolder folder;
  const std::string best = (folder.path() / "best.yaml").string();
  for (const std::vector<std::string>& method :
       {std::vector<std::string>{}, std::vector<std::string>{"--method", "graph"},
        std::vector<std::string>{"--runtime", "plain"}}) {
    std::vector<std::string> arguments{"--nodes", "1", "--best", "3", "--best-plan", best};
    arguments.insert(arguments.end(), method.begin(), method.end());
    const auto json = searched_json(arguments);
    const double step = json["plans"][0]["step_time_s"];
    REQUIRE(step == step_seconds(best, method));
    REQUIRE(step <= json["plans"][1]["step_time_s"]);
    // The workload's own plan, behind them.
    REQUIRE(json["plans"][3]["place"].is_null());
    REQUIRE(json["plans"][3]["step_time_s"] ==
            step_seconds((kConfigsFolder / "workloads/llama-3-8b.yaml").string(), method));
  }
}

TEST_CASE("on an oversubscribed fabric the best plan is a workload that takes as long",
          "[cli][search][long]") {
  const ScratchFolder folder;
  const std::string best = (folder.path() / "best.yaml").string();
  const std::vector<std::string> fabric{"--set", "fabric.nodes_per_leaf=1", "--set",
                                        "fabric.oversubscription=4"};
  std::vector<std::string> arguments{
      "--cluster",   (kConfigsFolder / "clusters/hgx-h100-clos.yaml").string(),
      "--workload",  (kConfigsFolder / "workloads/llama-3-8b.yaml").string(),
      "--nodes",     "2",
      "--cp",        "1",
      "--sp",        "on",
      "--tp",        "1,2,4",
      "--pp",        "1",
      "--best",      "2",
      "--best-plan", best,
      "--format",    "json"};
  arguments.insert(arguments.end(), fabric.begin(), fabric.end());
  std::ostringstream out;
  REQUIRE(run_command(search_command(), arguments, out) == 0);
  const auto found = nlohmann::json::parse(out.str());
  std::vector<std::string> step{
      "--cluster",  (kConfigsFolder / "clusters/hgx-h100-clos.yaml").string(),
      "--workload", best,
      "--nodes",    "2",
      "--effects",  "off",
      "--format",   "json"};
  step.insert(step.end(), fabric.begin(), fabric.end());
  std::ostringstream timed;
  REQUIRE(run_command(step_command(), step, timed) == 0);
  REQUIRE(nlohmann::json::parse(timed.str())["step_time_s"] == found["plans"][0]["step_time_s"]);
}

TEST_CASE("plans have energy and cost when asked", "[cli][search][long]") {
  const ScratchFolder folder;
  const std::string prices = folder
                                 .write("prices.yaml",
                                        "currency: EUR\nkwh: 0.1\nyears: 4\n"
                                        "parts: {H100-SXM: {price: 10000, idle_watts: 100}}\n")
                                 .string();
  REQUIRE_FALSE(searched_json({"--nodes", "1"})["plans"][0].contains("energy_of_token_j"));
  const auto json = searched_json({"--nodes", "1", "--prices", prices, "--trades"});
  for (const auto& plan : json["plans"]) {
    const double tokens = plan["tokens_per_s"].get<double>() * plan["step_time_s"].get<double>();
    REQUIRE(plan["energy_of_token_j"].get<double>() * tokens / 1e3 ==
            Approx(plan["energy_of_step_kj"].get<double>()));
    REQUIRE(plan["price_of_million_tokens"] > 0.0);
    REQUIRE(plan["currency"] == "EUR");
  }
  const std::string text = searched({"--nodes", "1", "--costs", "--trades"});
  REQUIRE(text.find("energy") != std::string::npos);
  REQUIRE(text.find("with as little energy") != std::string::npos);
}

TEST_CASE("no trade is on more GPUs than one that is no worse", "[cli][search][long]") {
  const auto json = searched_json({"--gpus", "4,8,16", "--best", "1", "--trades"});
  std::vector<nlohmann::json> trades;
  for (const auto& plan : json["plans"]) {
    if (!plan["place"].is_null() && plan["is_trade"]) {
      trades.push_back(plan);
    }
  }
  REQUIRE(trades.size() > 3);
  for (const auto& plan : trades) {
    for (const auto& other : trades) {
      const bool beats = other["gpus"] < plan["gpus"] &&
                         other["step_time_s"] <= plan["step_time_s"] &&
                         other["memory_peak_gib"] <= plan["memory_peak_gib"] &&
                         other["network_gib_per_gpu"] <= plan["network_gib_per_gpu"];
      REQUIRE_FALSE(beats);
    }
  }
}

TEST_CASE("threads change nothing in what is printed", "[cli][search]") {
  const std::string one = searched({"--nodes", "1", "--threads", "1", "--format", "json"});
  REQUIRE(searched({"--nodes", "1", "--threads", "3", "--format", "json"}) == one);
}

TEST_CASE("several numbers of GPUs are searched one by one", "[cli][search][long]") {
  const auto json = searched_json({"--gpus", "4,8,16", "--best", "2"});
  REQUIRE(json["searches"].size() == 3);
  REQUIRE(json["plans"].size() == 9);
  REQUIRE(json["plans"][0]["gpus"] == 4);
  REQUIRE(json["plans"][8]["gpus"] == 16);
  REQUIRE(refusal({"--gpus", "12"}) ==
          "--gpus: expected multiples of the 8 GPUs of a server, found 12");
}

TEST_CASE("a search without pruning finds the same", "[cli][search]") {
  const auto pruned = searched_json({"--nodes", "1"});
  const auto all = searched_json({"--nodes", "1", "--exhaustive"});
  REQUIRE(pruned["plans"] == all["plans"]);
  REQUIRE(all["searches"][0]["plans"]["pruned"] == 0);
  REQUIRE(pruned["searches"][0]["plans"]["pruned"] > 0);
}

TEST_CASE("less memory leaves fewer plans", "[cli][search]") {
  const auto all = searched_json({"--nodes", "1"});
  const auto half = searched_json({"--nodes", "1", "--memory-percent", "50"});
  REQUIRE(half["searches"][0]["plans"]["out_of_memory"] >
          all["searches"][0]["plans"]["out_of_memory"]);
  for (std::size_t index = 0; index + 1 < half["plans"].size(); ++index) {
    REQUIRE(half["plans"][index]["headroom_gib"] >= half["memory_size_gib"].get<double>() / 2.0);
  }
}

TEST_CASE("a search that finds nothing says why", "[cli][search]") {
  const std::string text = searched({"--nodes", "1", "--memory-percent", "5"});
  REQUIRE(text.find("no plan fits") != std::string::npos);
  REQUIRE(text.find("no plan that was not timed") == std::string::npos);
  REQUIRE(refusal({"--nodes", "1", "--set", "plan.servers.count=1"}) ==
          "search: expected gradients summed by collectives, found plan.servers, which have no "
          "closed form");
  const ScratchFolder folder;
  REQUIRE(refusal({"--nodes", "1", "--memory-percent", "5", "--best-plan",
                   (folder.path() / "best.yaml").string()}) ==
          "--best-plan: expected a plan that fits, found none");
  REQUIRE(refusal({"--nodes", "1", "--tp", "3"}) ==
          "search: expected tensor x context x pipeline ranks that divide 8 GPUs, found none");
}

TEST_CASE("plans that need more host memory than a server has do not fit", "[cli][search]") {
  const std::vector<std::string> offload{"--nodes", "1", "--set", "plan.offload.optimizer=true"};
  REQUIRE(!searched_json(offload)["plans"].empty());
  std::vector<std::string> small = offload;
  small.insert(small.end(), {"--set", "server.host_memory=1GiB"});
  const nlohmann::json found = searched_json(small);
  for (const nlohmann::json& plan : found["plans"]) {
    REQUIRE(plan["place"].is_null());  // The plan that was given, for comparison.
  }
}

}  // namespace trainyard
