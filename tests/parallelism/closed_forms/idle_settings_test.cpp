// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/closed_forms/idle_settings.h"

#include <string>
#include <vector>

#include "support/paths.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

std::vector<std::string> idle_in(const std::string& model,
                                 const std::vector<std::string>& settings) {
  const std::filesystem::path folder = source_dir() / "configs" / "workloads";
  std::vector<std::string> all{"model=" + model, "plan={}"};
  all.insert(all.end(), settings.begin(), settings.end());
  const Workload workload = load_workload(folder / "llama-3-8b.yaml", folder / "models", all);
  return idle_settings(workload, plan_for(workload, 16), shipped_software(workload.software));
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("settings about what is not there are named", "[idle-settings]") {
  REQUIRE(idle_in("llama-3-8b", {}).empty());
  REQUIRE(idle_in("llama-3-8b", {"routing.imbalance=1.5"}) ==
          Texts{"routing: the model has no experts"});
  REQUIRE(idle_in("mixtral-8x7b", {"routing.imbalance=1.5"}) ==
          Texts{"routing: all experts are on every rank"});
  REQUIRE(idle_in("mixtral-8x7b", {"plan.expert=8", "routing.imbalance=1.5"}).empty());
  REQUIRE(idle_in("llama-3-8b", {"plan.schedule=zb-h1"}) ==
          Texts{"plan.schedule: the pipeline has one stage"});
  REQUIRE(idle_in("llama-3-8b", {"plan.schedule=interleaved", "plan.chunks=4"}) ==
          Texts{"plan.schedule: the pipeline has one stage",
                "plan.chunks: the pipeline has one stage"});
  REQUIRE(idle_in("llama-3-8b", {"plan.schedule=zb-h1", "plan.pipeline=4"}).empty());
  REQUIRE(idle_in("llama-3-8b", {"plan.sequence_parallel=true"}) ==
          Texts{"plan.sequence_parallel: there is one tensor rank"});
  REQUIRE(idle_in("llama-3-8b", {"plan.sequence_parallel=true", "plan.tensor=2"}).empty());
  REQUIRE(idle_in("llama-3-8b", {"plan.context_kind=alltoall"}) ==
          Texts{"plan.context_kind: there is one context rank"});
  REQUIRE(idle_in("llama-3-8b", {"plan.zero_stage=1", "plan.tensor=8", "plan.pipeline=2"}) ==
          Texts{"plan.zero_stage: there is one data rank to shard over"});
  // Tensor ranks that hold the same experts share those.
  const Texts experts{"plan.zero_stage=1", "plan.tensor=8", "plan.sequence_parallel=true",
                      "plan.pipeline=2"};
  REQUIRE(idle_in("mixtral-8x7b", experts).empty());
  Texts dealt_out = experts;
  dealt_out.emplace_back("plan.expert=8");
  REQUIRE(idle_in("mixtral-8x7b", dealt_out) ==
          Texts{"plan.zero_stage: there is one data rank to shard over"});
  REQUIRE(
      idle_in("llama-3-8b", {"software=pytorch-native", "plan.gradient_compression={method: fp16}"})
          .empty());
  REQUIRE(idle_in("llama-3-8b", {"software=nemo", "plan.gradient_compression={method: fp16}"}) ==
          Texts{"plan.gradient_compression: gradients have 16 bits without it"});
  REQUIRE(idle_in("llama-3-8b", {"plan.tensor=8", "plan.pipeline=2",
                                 "plan.gradient_compression={method: powersgd}"}) ==
          Texts{"plan.gradient_compression: there is one data rank"});
  REQUIRE(idle_in("llama-3-8b",
                  {"overlap.tensor=true", "overlap.pipeline=false", "overlap.expert=true"}) ==
          Texts{"overlap.tensor: there is one tensor rank",
                "overlap.pipeline: the pipeline has one stage",
                "overlap.expert: no tokens go to other ranks"});
}

}  // namespace trainyard
