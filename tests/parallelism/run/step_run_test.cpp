// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/step_run.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

StepRun run_gpt(const std::string& cluster, std::optional<int> nodes,
                const std::vector<std::string>& settings) {
  const Workload workload = load_workload(kConfigsFolder / "workloads" / "gpt-3-175b.yaml",
                                          kConfigsFolder / "workloads" / "models", settings);
  return run_workload(shipped_cluster(cluster, {.nodes = nodes}), workload,
                      shipped_software(workload.software),
                      {.rates = shipped_rates(), .nccl = nullptr, .fidelity = Fidelity::Flow});
}

}  // namespace

TEST_CASE("twice the data ranks do twice the work in about the same time", "[step-run]") {
  const StepRun few = run_gpt("dgx-a100", 32, {"batch.global=384"});
  const StepRun many = run_gpt("dgx-a100", 64, {"batch.global=768"});
  REQUIRE(few.plan.data == 2);
  REQUIRE(many.plan.data == 4);
  REQUIRE(many.step.time / few.step.time == Approx(1.0).epsilon(0.03));
  REQUIRE(few.simulated < few.calls);
  REQUIRE(few.peak == 312e12);
  REQUIRE(few.memory.device() < few.memory_size);
  REQUIRE(few.memory.device() > few.memory[MemoryClass::Weights]);
  REQUIRE_FALSE(few.memory_verdict.empty());
}

TEST_CASE("tensor ranks on two servers are slower than on one", "[step-run]") {
  const StepRun near = run_gpt("dgx-a100", 16, {"batch.global=192"});
  const StepRun far =
      run_gpt("dgx-a100", 16, {"batch.global=192", "plan.order=[data, pipeline, context, tensor]"});
  REQUIRE(far.step.parts[StepPart::Tensor] / near.step.parts[StepPart::Tensor] > 4.0);
  REQUIRE(far.step.parts[StepPart::Linear] == near.step.parts[StepPart::Linear]);
}

TEST_CASE("published steps of encoders and of images are predicted too fast", "[step-run]") {
  struct Published {
    std::string cluster;
    std::string workload;
    std::vector<std::string> settings;
    int gpus = 1;
    double seconds = 0.0;
    double ratio = 0.0;  // Of the prediction to it; docs/models/models.md.
  };
  const auto bert = [](int micro, int global, int sequence) {
    return std::vector<std::string>{"software=megatron-unfused", "precision=fp16", "plan={}",
                                    "batch={micro: " + std::to_string(micro) +
                                        ", global: " + std::to_string(global) +
                                        ", sequence: " + std::to_string(sequence) + "}"};
  };
  const std::vector<Published> all{
      // NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/README.md, container 20.06:
      // logits of all tokens, A100 40GB, sequences per second.
      {"aws-p4d", "bert-large", bert(64, 65536, 128), 1, 65536 / 415.0, 0.786},
      {"aws-p4d", "bert-large", bert(64, 65536, 128), 8, 65536 / 3231.0, 0.766},
      {"aws-p4d", "bert-large", bert(16, 32768, 512), 1, 32768 / 78.0, 0.738},
      {"aws-p4d", "bert-large", bert(16, 32768, 512), 8, 32768 / 620.0, 0.734},
      // chuanyangjin/fast-DiT, README.md: recomputation, FP16, features from files.
      {"dgx-a100",
       "dit-xl-2",
       {"precision=fp16", "plan={recompute: full}", "batch={micro: 128, global: 128}"},
       1,
       1 / 0.84,
       0.688}};
  for (const Published& one : all) {
    INFO(one.workload << " on " << one.gpus << ", " << one.seconds << " s");
    const Workload workload = load_workload(kConfigsFolder / "workloads" / (one.workload + ".yaml"),
                                            kConfigsFolder / "workloads" / "models", one.settings);
    const StepRun run =
        run_workload(shipped_cluster(one.cluster, {.nodes = 1, .gpus_per_node = one.gpus}),
                     workload, shipped_software(workload.software), {.rates = shipped_rates()});
    REQUIRE(run.step.time.seconds() / one.seconds == Approx(one.ratio).margin(0.002));
  }
}

TEST_CASE("passes of several kinds of GPUs are those of the slowest in each stage", "[step-run]") {
  const std::vector<std::string> one{"software=megatron-flash", "plan={tensor: 4, recompute: full}",
                                     "batch.micro=1"};
  const auto run = [&](const Cluster& cluster, std::vector<std::string> settings,
                       StepTables tables) {
    settings.insert(settings.begin(), one.begin(), one.end());
    const Workload workload = load_workload(kConfigsFolder / "workloads" / "llama-3-8b.yaml",
                                            kConfigsFolder / "workloads" / "models", settings);
    return run_workload(cluster, workload, shipped_software(workload.software), tables);
  };
  const StepTables closed{.rates = shipped_rates()};
  const Cluster mixed = shipped_cluster("mixed-a100", {.settings = {"servers.0.server=hgx-h100"}});
  const StepRun both = run(mixed, {"batch.global=20"}, closed);
  const StepRun slow = run(shipped_cluster("a100-pcie-bridges"), {"batch.global=4"}, closed);
  const StepRun fast = run(shipped_cluster("dgx-h100", {.nodes = 2}), {"batch.global=16"}, closed);
  for (const StepPart part : {StepPart::Linear, StepPart::Attention, StepPart::Recompute}) {
    REQUIRE(both.step.parts[part] == slow.step.parts[part]);
    REQUIRE(both.step.parts[part] > fast.step.parts[part]);
  }
  REQUIRE(both.peak < fast.peak);
  REQUIRE(both.peak > slow.peak);
  REQUIRE(both.kinds_note.has_value());
  REQUIRE_FALSE(slow.kinds_note.has_value());

  // A graph with each rank on its own GPU takes no longer than one of the slowest.
  StepTables graph = closed;
  graph.method = StepMethod::Graph;
  const StepRun folded = run(mixed, {"batch.global=20"}, graph);
  REQUIRE(folded.step.time == both.step.time);
  graph.fidelity = Fidelity::Flow;
  graph.shares_network = true;
  const StepRun shared = run(mixed, {"batch.global=20"}, graph);
  REQUIRE(shared.step.parts[StepPart::Linear] <= both.step.parts[StepPart::Linear]);

  // Where the slow GPUs have one stage of five, that stage sets the pace: the others are faster.
  const StepRun staged = run(mixed, {"batch.global=20", "plan.pipeline=5"}, closed);
  REQUIRE(staged.step.critical_rank == 4);
}

}  // namespace trainyard
