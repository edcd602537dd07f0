// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_fields.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

namespace trainyard {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 40;
constexpr std::int64_t kMostRanks = 1'000'000;
constexpr std::array<std::string_view, 3> kForms{"gpt", "bloom", "llama"};

template <typename Value>
void read_number(const ConfigNode& node, std::string_view key, std::optional<Value>& value,
                 std::int64_t least, std::int64_t most) {
  if (const auto found = node.optional(key)) {
    value = static_cast<Value>(found->as_integer(least, most));
  }
}

void read_size(const ConfigNode& node, std::string_view key, std::optional<std::int64_t>& value) {
  read_number(node, key, value, 1, kMostSize);
}

void read_ranks(const ConfigNode& node, std::string_view key, std::optional<int>& value) {
  read_number(node, key, value, 1, kMostRanks);
}

void read_text(const ConfigNode& node, std::string_view key, std::optional<std::string>& value) {
  if (const auto found = node.optional(key)) {
    value = found->as_string();
  }
}

void read_flag(const ConfigNode& node, std::string_view key, std::optional<bool>& value) {
  if (const auto found = node.optional(key)) {
    value = found->as_bool();
  }
}

void skip_words(const ConfigNode& node, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto found = node.optional(key)) {
      found->skip();
    }
  }
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char letter) { return letter >= '0' && letter <= '9'; });
}

void read_experts(const ConfigNode& node, ModelFields& model) {
  read_size(node, "experts", model.experts);
  read_size(node, "topk", model.active_experts);
  read_size(node, "expert_ffn", model.expert_size);
  if (const auto attention = node.optional("attention")) {
    static constexpr std::array<std::string_view, 2> kKinds{"MHA", "MLA"};
    model.latent_attention = attention->as_choice(kKinds) == 1;
  }
  read_size(node, "dense_layers", model.dense_layers);
  skip_words(node, {"shared"});  // A model file has their size.
}

ModelFields read_model_fields(const ConfigNode& node) {
  ModelFields model;
  read_text(node, "name", model.name);
  read_text(node, "file", model.file);
  if (const auto form = node.optional("form")) {
    model.form = static_cast<ModelForm>(form->as_choice(kForms));
  }
  read_size(node, "layers", model.layers);
  read_size(node, "hidden", model.hidden);
  read_size(node, "heads", model.heads);
  read_size(node, "kv_heads", model.kv_heads);
  read_size(node, "head_dim", model.head_size);
  read_size(node, "ffn_hidden", model.feed_forward);
  read_size(node, "ffn_ratio", model.feed_forward_ratio);
  read_size(node, "vocab", model.vocabulary);
  read_size(node, "seq", model.sequence);
  if (const auto count = node.optional("params"); count && is_number(count->as_string())) {
    model.parameters = count->as_integer(1, std::numeric_limits<std::int64_t>::max());
  }
  if (const auto experts = node.optional("moe")) {
    read_experts(*experts, model);
  }
  skip_words(node, {"mlp", "activation", "note"});
  return model;
}

MachineFields read_machine_fields(const ConfigNode& node) {
  MachineFields machine;
  read_text(node, "gpu", machine.gpu);
  read_ranks(node, "gpus", machine.gpus);
  read_ranks(node, "gpus_per_node", machine.gpus_per_node);
  read_text(node, "inter", machine.network);
  skip_words(node, {"slice", "slices", "gpus_per_stage_replica"});
  return machine;
}

// Sources write "1f1b", "1F1B (interleaved where vpp is given)", "ZB-2p": names of the table and
// others.
void read_schedule(const ConfigNode& node, PlanFields& plan) {
  struct OtherName {
    std::string_view text;
    std::string_view name;
  };
  static constexpr std::array kOtherNames{
      OtherName{"1f1b-i", "interleaved"},
      OtherName{"zb-1p", "zb-h1"},  // "ZB-1p" of arXiv 2401.10241: H1's memory.
      OtherName{"zb-2p", "zb-h2"},
  };
  const auto found = node.optional("schedule");
  if (!found) {
    return;
  }
  const std::string text = lower_case(found->as_string());
  const std::string word = text.substr(0, text.find(' '));
  const auto* const other = std::find_if(kOtherNames.begin(), kOtherNames.end(),
                                         [&](const OtherName& one) { return one.text == word; });
  const std::string_view name = other == kOtherNames.end() ? word : other->name;
  const std::vector<std::string_view> names = pipeline_schedule_names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) {
    found->fail(fmt::format("one of {}, 1f1b-i, zb-1p, zb-2p", fmt::join(names, ", ")),
                found->found());
  }
  plan.schedule = pipeline_schedules()[static_cast<std::size_t>(at - names.begin())];
}

void read_recompute(const ConfigNode& node, PlanFields& plan) {
  if (const auto found = node.optional("recompute")) {
    const std::string text = found->as_string();
    if (text == "none") {
      plan.recompute = Recompute::None;
    } else if (text == "selective" || text == "selective (attention core)") {
      plan.recompute = Recompute::Selective;
    } else if (text == "full") {
      plan.recompute = Recompute::Full;
    } else {
      plan.other_recompute = text;
    }
  }
}

// ZeRO's stage, and the ranks over which it shards: Megatron's fsdp, PyTorch's sharding,
// InternEvo's zero1_group.
void read_sharding(const ConfigNode& node, PlanFields& plan) {
  read_number(node, "zero", plan.zero_stage, 0, 3);
  if (const auto group = node.optional("fsdp")) {
    const std::string text = group->as_string();
    if (is_number(text)) {
      const std::int64_t ranks = group->as_integer(0, kMostRanks);
      if (ranks > 0) {
        plan.zero_stage = 3;
        plan.shard_group = static_cast<int>(ranks);
      }
    } else if (group->as_bool()) {
      plan.zero_stage = 3;
    }
  }
  if (const auto sharding = node.optional("sharding")) {
    static constexpr std::array<std::string_view, 4> kKinds{"FULL_SHARD", "FSDP", "HSDP",
                                                            "SHARD_GRAD_OP"};
    plan.shards_within_node = sharding->as_choice(kKinds) == 2;
  }
  if (const auto group = node.optional("zero1_group");
      group && group->as_string() != "all dp ranks") {
    plan.shard_group = static_cast<int>(group->as_integer(1, kMostRanks));
  }
}

PlanFields read_plan_fields(const ConfigNode& node) {
  PlanFields plan;
  read_ranks(node, "tp", plan.tensor);
  read_flag(node, "sp", plan.sequence_parallelism);
  read_ranks(node, "cp", plan.context);
  read_ranks(node, "pp", plan.pipeline);
  if (const auto chunks = node.optional("vpp"); chunks && is_number(chunks->as_string())) {
    plan.chunks = static_cast<int>(chunks->as_integer(1, kMostRanks));
  }
  read_schedule(node, plan);
  read_ranks(node, "dp", plan.data);
  read_ranks(node, "ep", plan.expert);
  read_ranks(node, "etp", plan.expert_tensor);
  read_sharding(node, plan);
  read_size(node, "micro_batch", plan.micro_batch);
  read_size(node, "global_batch", plan.global_batch);
  read_size(node, "grad_accum", plan.micro_batches);
  read_size(node, "microbatches", plan.micro_batches);
  read_recompute(node, plan);
  if (const auto stages = node.optional("layers_per_stage")) {
    plan.stage_layers.emplace();
    for (const ConfigNode& stage : stages->items()) {
      plan.stage_layers->push_back(static_cast<int>(stage.as_integer(1, kMostRanks)));
    }
  }
  skip_words(node, {"dp_replicas", "per_chip_batch", "model_parallel_size", "intra_node",
                    "dispatcher", "routing", "overlap"});
  return plan;
}

void read_precision(const ConfigNode& node, SoftwareFields& software) {
  struct Start {
    std::string_view text;
    Precision precision;
  };
  // The first that the text begins with, whatever follows: "fp8 (per-tensor delayed scaling)".
  static constexpr std::array kStarts{
      Start{"bf16", Precision::Bf16},    Start{"bfloat16", Precision::Bf16},
      Start{"fp16", Precision::Fp16},    Start{"mxfp8", Precision::Mxfp8},
      Start{"fp8-mx", Precision::Mxfp8}, Start{"fp8", Precision::Fp8},
      Start{"float8", Precision::Fp8},   Start{"nvfp4", Precision::Nvfp4},
  };
  const auto found = node.optional("precision");
  if (!found) {
    return;
  }
  const std::string text = lower_case(found->as_string());
  const auto* const start = std::find_if(
      kStarts.begin(), kStarts.end(), [&](const Start& one) { return text.starts_with(one.text); });
  if (start == kStarts.end()) {
    found->fail("a precision such as bf16, fp16, fp8, mxfp8, nvfp4", found->found());
  }
  software.precision = start->precision;
}

SoftwareFields read_software_fields(const ConfigNode& node) {
  SoftwareFields software;
  read_text(node, "software", software.profile);
  read_precision(node, software);
  read_flag(node, "compile", software.compiled);
  read_flag(node, "async_tp", software.overlaps_tensor);
  read_flag(node, "overlap_dp", software.overlaps_data);
  read_flag(node, "pp_comm_async", software.overlaps_pipeline);
  read_flag(node, "overlap_ep", software.overlaps_experts);
  return software;
}

// Each calls `visit` with the name of a field and the field of both, for every field.
template <typename Visit>
void visit_fields(ModelFields& one, const ModelFields& other, Visit visit) {
  visit("model.name", one.name, other.name);
  visit("model.file", one.file, other.file);
  visit("model.form", one.form, other.form);
  visit("model.layers", one.layers, other.layers);
  visit("model.hidden", one.hidden, other.hidden);
  visit("model.heads", one.heads, other.heads);
  visit("model.kv_heads", one.kv_heads, other.kv_heads);
  visit("model.head_dim", one.head_size, other.head_size);
  visit("model.ffn_hidden", one.feed_forward, other.feed_forward);
  visit("model.ffn_ratio", one.feed_forward_ratio, other.feed_forward_ratio);
  visit("model.vocab", one.vocabulary, other.vocabulary);
  visit("model.seq", one.sequence, other.sequence);
  visit("model.params", one.parameters, other.parameters);
  visit("model.moe.experts", one.experts, other.experts);
  visit("model.moe.topk", one.active_experts, other.active_experts);
  visit("model.moe.expert_ffn", one.expert_size, other.expert_size);
  visit("model.moe.dense_layers", one.dense_layers, other.dense_layers);
  visit("model.moe.attention", one.latent_attention, other.latent_attention);
}

template <typename Visit>
void visit_fields(MachineFields& one, const MachineFields& other, Visit visit) {
  visit("cluster.gpu", one.gpu, other.gpu);
  visit("cluster.gpus", one.gpus, other.gpus);
  visit("cluster.gpus_per_node", one.gpus_per_node, other.gpus_per_node);
  visit("cluster.inter", one.network, other.network);
}

template <typename Visit>
void visit_fields(PlanFields& one, const PlanFields& other, Visit visit) {
  visit("parallel.tp", one.tensor, other.tensor);
  visit("parallel.sp", one.sequence_parallelism, other.sequence_parallelism);
  visit("parallel.cp", one.context, other.context);
  visit("parallel.pp", one.pipeline, other.pipeline);
  visit("parallel.vpp", one.chunks, other.chunks);
  visit("parallel.schedule", one.schedule, other.schedule);
  visit("parallel.dp", one.data, other.data);
  visit("parallel.ep", one.expert, other.expert);
  visit("parallel.etp", one.expert_tensor, other.expert_tensor);
  visit("parallel.zero", one.zero_stage, other.zero_stage);
  visit("parallel.fsdp", one.shard_group, other.shard_group);
  visit("parallel.sharding", one.shards_within_node, other.shards_within_node);
  visit("parallel.micro_batch", one.micro_batch, other.micro_batch);
  visit("parallel.global_batch", one.global_batch, other.global_batch);
  visit("parallel.grad_accum", one.micro_batches, other.micro_batches);
  visit("parallel.recompute", one.recompute, other.recompute);
  visit("parallel.layers_per_stage", one.stage_layers, other.stage_layers);
}

template <typename Visit>
void visit_fields(SoftwareFields& one, const SoftwareFields& other, Visit visit) {
  visit("parallel.software", one.profile, other.profile);
  visit("parallel.precision", one.precision, other.precision);
  visit("parallel.compile", one.compiled, other.compiled);
  visit("parallel.async_tp", one.overlaps_tensor, other.overlaps_tensor);
  visit("parallel.overlap_dp", one.overlaps_data, other.overlaps_data);
  visit("parallel.pp_comm_async", one.overlaps_pipeline, other.overlaps_pipeline);
  visit("parallel.overlap_ep", one.overlaps_experts, other.overlaps_experts);
}

template <typename Visit>
void visit_fields(TrainingFields& one, const TrainingFields& other, Visit visit) {
  visit_fields(one.model, other.model, visit);
  visit_fields(one.machine, other.machine, visit);
  visit_fields(one.plan, other.plan, visit);
  visit_fields(one.software, other.software, visit);
}

}  // namespace

TrainingFields read_training_fields(const ConfigNode& node) {
  TrainingFields fields;
  if (const auto model = node.optional("model")) {
    fields.model = read_model_fields(*model);
  }
  if (const auto cluster = node.optional("cluster")) {
    fields.machine = read_machine_fields(*cluster);
  }
  if (const auto parallel = node.optional("parallel")) {
    fields.plan = read_plan_fields(*parallel);
    fields.software = read_software_fields(*parallel);
  }
  return fields;
}

std::vector<std::string> fill_missing(TrainingFields& fields, const TrainingFields& assumed) {
  std::vector<std::string> names;
  visit_fields(fields, assumed, [&](std::string_view name, auto& mine, const auto& other) {
    if (!mine && other) {
      mine = other;
      names.emplace_back(name);
    }
  });
  return names;
}

std::vector<std::string> replace_with(TrainingFields& fields, const TrainingFields& corrected) {
  std::vector<std::string> names;
  visit_fields(fields, corrected, [&](std::string_view name, auto& mine, const auto& other) {
    if (other && mine != other) {
      mine = other;
      names.emplace_back(name);
    }
  });
  return names;
}

}  // namespace trainyard
