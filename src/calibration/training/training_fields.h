// SPDX-License-Identifier: Apache-2.0
// Describes what a source says about one training run: model, machine, plan and software, as far as
// it says it. A field that is not said is absent; nothing is guessed here.
//
// Tables (training_rows.h) and the assumptions of cases (training_case.h) are written with the same
// keys. docs/accuracy/training-validation.md lists them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/precision.h"
#include "sim/fields.h"

namespace trainyard {

// The common form of a family of transformers, where a source gives no more than sizes.
enum class ModelForm : std::uint8_t {
  Gpt,    // Learned positions, layer norms, biases, plain feed-forward, the head tied.
  Bloom,  // As Gpt with ALiBi instead of positions and a norm behind the embedding.
  Llama,  // Rotary positions, RMS norms, no biases, gated feed-forward, a head of its own.
};

struct ModelFields {
  std::optional<std::string> name = {};  // As the source calls it.
  // A file of configs/workloads/models; the sizes below then only change layers and vocabulary.
  std::optional<std::string> file = {};
  std::optional<ModelForm> form = {};  // Without a file.
  std::optional<std::int64_t> layers = {};
  std::optional<std::int64_t> hidden = {};
  std::optional<std::int64_t> heads = {};
  std::optional<std::int64_t> kv_heads = {};  // As heads, if the source names none.
  std::optional<std::int64_t> head_size = {};
  std::optional<std::int64_t> feed_forward = {};
  std::optional<std::int64_t> feed_forward_ratio = {};  // The same by the hidden size.
  std::optional<std::int64_t> vocabulary = {};
  std::optional<std::int64_t> sequence = {};
  std::optional<std::int64_t> parameters = {};  // A published count, where it is exact.
  std::optional<std::int64_t> experts = {};
  std::optional<std::int64_t> active_experts = {};
  std::optional<std::int64_t> expert_size = {};
  std::optional<std::int64_t> dense_layers = {};  // The first ones, without experts.
  std::optional<bool> latent_attention = {};
  // Adapters beside frozen weights (parallelism/model/adapters.h): with a rank there are some.
  std::optional<std::int64_t> adapter_rank = {};
  std::optional<std::vector<AdapterTarget>> adapter_targets = {};  // Without them: all layers.
};

struct MachineFields {
  std::optional<std::string> gpu = {};  // A part of configs/hardware/gpus.yaml, if it is there.
  std::optional<int> gpus = {};
  std::optional<int> gpus_per_node = {};
  std::optional<std::string> network = {};  // In the words of the source.
};

struct PlanFields {
  std::optional<int> tensor = {};
  std::optional<bool> sequence_parallelism = {};
  std::optional<int> context = {};
  std::optional<int> pipeline = {};
  std::optional<int> chunks = {};
  std::optional<const PipelineSchedule*> schedule = {};
  std::optional<int> data = {};
  std::optional<int> expert = {};
  std::optional<int> expert_tensor = {};
  std::optional<int> zero_stage = {};
  std::optional<int> shard_group = {};          // 0: all data and context ranks.
  std::optional<bool> shards_within_node = {};  // HSDP: the group is the node.
  std::optional<std::int64_t> micro_batch = {};
  std::optional<std::int64_t> global_batch = {};
  std::optional<std::int64_t> micro_batches = {};  // Micro-batches of a data rank in a step.
  std::optional<Recompute> recompute = {};
  std::optional<std::string> other_recompute = {};    // Text that no Recompute represents.
  std::optional<std::vector<int>> stage_layers = {};  // As the source counts them.
};

struct SoftwareFields {
  std::optional<std::string> profile = {};  // A name of configs/software.
  std::optional<Precision> precision = {};
  std::optional<bool> compiled = {};
  std::optional<bool> overlaps_tensor = {};    // Collectives of tensor ranks beside GEMMs.
  std::optional<bool> overlaps_data = {};      // Overlap of gradients and weights with passes.
  std::optional<bool> overlaps_pipeline = {};  // Transfers between stages.
  std::optional<bool> overlaps_experts = {};   // Tokens to experts and back.
};

struct TrainingFields {
  ModelFields model;
  MachineFields machine;
  PlanFields plan;
  SoftwareFields software;
};

// Rows model, cluster and parallel.
void training_fields(Fields& fields, TrainingFields& all);
// Rows of keys that are for people.
void skip_keys(Fields& fields, std::initializer_list<std::string_view> keys);

// Fills in what `fields` lacks and `assumed` has. Returns the names of what was taken, such as
// "parallel.cp".
std::vector<std::string> fill_missing(TrainingFields& fields, const TrainingFields& assumed);
// Takes everything that `corrected` has. Returns the names of what was changed.
std::vector<std::string> replace_with(TrainingFields& fields, const TrainingFields& corrected);

}  // namespace trainyard
