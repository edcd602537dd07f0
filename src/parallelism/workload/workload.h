// SPDX-License-Identifier: Apache-2.0
// A training job as its YAML file describes it: model, plan, batch, precision and the software that
// runs it. docs/models/step.md explains the keys.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/model/expert_routing.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/precision.h"
#include "sim/fields.h"

namespace trainyard {

// The values of the key `kind` of a file of a workload; without it, the first.
inline constexpr std::array<std::string_view, 3> kWorkloadKinds{"transformer", "recommender",
                                                                "convolutional"};

// The traffic that is overlapped with computation. Where nothing is said, as the software does it.
struct OverlapChoice {
  std::optional<bool> tensor = {};    // Collectives of tensor ranks beside the GEMMs next to them.
  std::optional<bool> data = {};      // Overlap of gradients and weights with passes.
  std::optional<bool> pipeline = {};  // Transfers between stages.
  std::optional<bool> expert = {};    // Tokens to experts and back.
};

struct Workload {
  std::string name;  // Name of the file.
  std::string title;
  Model model;
  std::string software;  // Name of a profile in configs/software.
  Precision precision = Precision::Bf16;
  ParallelPlan plan;
  bool data_fills_cluster = false;   // The file leaves `data` to plan_for().
  bool batch_fills_cluster = false;  // The file leaves the global batch to batched_plan().
  OverlapChoice overlap;
  ExpertLoads routing = {};
};

void compression_fields(Fields& fields, GradientCompression& compression);
// All but the names of workload and model.
void workload_fields(Fields& fields, Workload& workload);

// Strict. `models` is the folder of the models that are named instead of described; `settings` are
// "key.path=value" as --set takes them. Throws ConfigError with the place of the mistake.
[[nodiscard]] Workload load_workload(const std::filesystem::path& file,
                                     const std::filesystem::path& models,
                                     const std::vector<std::string>& settings = {});
// Returns whether the file is a workload of that kind; false for what is no YAML, too.
[[nodiscard]] bool is_workload_of(const std::filesystem::path& file, std::string_view kind);
// Sets the settings, and puts the file of a model that is named in the place of its name, which is
// the result; that of the document where the model is described.
[[nodiscard]] std::string compose_workload(ConfigDocument& document,
                                           const std::filesystem::path& models,
                                           const std::vector<std::string>& settings);
// Builds what load_workload() loads from a document that is already parsed; the name is that of the
// document.
[[nodiscard]] Workload build_workload(ConfigDocument& document, const std::filesystem::path& models,
                                      const std::vector<std::string>& settings = {});

// The plan as the file has it, with a micro-batch of each GPU where no global batch is said.
[[nodiscard]] ParallelPlan batched_plan(const Workload& workload, int gpus);

// The plan for that many GPUs, with as many data ranks as they leave where the file says nothing,
// and checked. Throws ConfigError with one line that names the numbers that clash.
[[nodiscard]] ParallelPlan plan_for(const Workload& workload, int gpus);

}  // namespace trainyard
