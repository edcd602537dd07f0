// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_fields.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <tuple>
#include <type_traits>

#include "parallelism/model/adapters.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;
constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::array<std::string_view, 3> kForms{"gpt", "bloom", "llama"};

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char letter) { return letter >= '0' && letter <= '9'; });
}

constexpr Whole kSize{1, kMaxSize};
constexpr Whole kRanks{1, kMaxRanks};

// A number, or words such as "all" or "about 8", which are left out.
struct NumberOrWords {
  std::int64_t max;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    if (is_number(node.as_string())) {
      parent.read_value(Whole{1, max}, node, value);
    }
  }
  template <typename Value>
  void describe(Schema& schema, Value& /*value*/) const {
    Either{Whole{1, max}, Text{}}.describe(schema);
  }
};

struct Read {
  // Sources write "1f1b", "1F1B (interleaved where vpp is given)", "ZB-2p": names of the table and
  // others.
  static const PipelineSchedule* schedule(const ConfigNode& node) {
    struct OtherName {
      std::string_view text;
      std::string_view name;
    };
    // Steps of ZB-1p and ZB-2p are timed in the handmade orders. In that of the search those of
    // fewer micro-batches than ranks are up to 11 % too fast, as gradients of weights take longer
    // here, and the other passes less, than table 9 of arXiv 2401.10241 has them.
    static constexpr std::array kOtherNames{
        OtherName{"1f1b-i", "interleaved"},
        OtherName{"zb-1p", "zb-h1"},
        OtherName{"zb-2p", "zb-h2"},
    };
    const std::string text = lower_case(node.as_string());
    const std::string word = text.substr(0, text.find(' '));
    const auto* const other = std::find_if(kOtherNames.begin(), kOtherNames.end(),
                                           [&](const OtherName& one) { return one.text == word; });
    const std::string_view name = other == kOtherNames.end() ? word : other->name;
    const std::vector<std::string_view> names = pipeline_schedule_names();
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      node.fail(fmt::format("one of {}, 1f1b-i", fmt::join(names, ", ")), node.found());
    }
    return pipeline_schedules()[static_cast<std::size_t>(at - names.begin())];
  }

  static Precision precision(const ConfigNode& node) {
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
        Start{"tf32", Precision::Tf32},    Start{"fp32", Precision::Fp32},
    };
    const std::string text = lower_case(node.as_string());
    const auto* const start = std::find_if(kStarts.begin(), kStarts.end(), [&](const Start& one) {
      return text.starts_with(one.text);
    });
    if (start == kStarts.end()) {
      node.fail("a precision such as bf16, fp16, fp8, mxfp8, nvfp4, tf32, fp32", node.found());
    }
    return start->precision;
  }
};

AdapterTarget adapter_target(const ConfigNode& node) {
  return static_cast<AdapterTarget>(node.as_choice(kAdapterTargets));
}

constexpr std::array<std::string_view, 2> kAttention{"MHA", "MLA"};
constexpr std::array<std::string_view, 4> kShardings{"FULL_SHARD", "FSDP", "HSDP", "SHARD_GRAD_OP"};

// The ranks over which ZeRO shards: Megatron's fsdp, which is stage 3, and InternEvo's zero1_group.
struct ShardedRanks {
  static void read(const Fields& /*parent*/, const ConfigNode& group, PlanFields& plan) {
    const std::string text = group.as_string();
    if (is_number(text)) {
      const std::int64_t ranks = group.as_integer(0, kMaxRanks);
      if (ranks > 0) {
        plan.zero_stage = 3;
        plan.shard_group = static_cast<int>(ranks);
      }
    } else if (group.as_bool()) {
      plan.zero_stage = 3;
    }
  }
  static void describe(Schema& schema, PlanFields& /*plan*/) {
    Either{Whole{0, kMaxRanks}, Flag{}}.describe(schema);
  }
};

struct OptimizerRanks {
  static void read(const Fields& /*parent*/, const ConfigNode& group, PlanFields& plan) {
    if (group.as_string() != "all dp ranks") {
      plan.shard_group = static_cast<int>(group.as_integer(1, kMaxRanks));
    }
  }
  static void describe(Schema& schema, PlanFields& /*plan*/) {
    Either{kRanks, Text{}}.describe(schema);
  }
};

struct Recomputed {
  static void read(const Fields& /*parent*/, const ConfigNode& node, PlanFields& plan) {
    const std::string text = node.as_string();
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
  static void describe(Schema& schema, PlanFields& /*plan*/) { Text::describe(schema); }
};

// A row of a part calls `visit` with a key, the member, the kind of its value and what it means;
// nullptr where the key decides more than one member and is read below.
template <typename Visit>
void visit_model(Visit visit) {
  visit("name", &ModelFields::name, Text{}, "As the source calls it.");
  visit("file", &ModelFields::file, Text{}, "A file of `configs/workloads/models`.");
  visit("form", &ModelFields::form, Choice{kForms}, "Family, without a file.");
  visit("layers", &ModelFields::layers, kSize, "Layers.");
  visit("hidden", &ModelFields::hidden, kSize, "Hidden size.");
  visit("heads", &ModelFields::heads, kSize, "Attention heads.");
  visit("kv_heads", &ModelFields::kv_heads, kSize, "Heads of keys and values: `heads`.");
  visit("head_dim", &ModelFields::head_size, kSize, "Size of a head.");
  visit("ffn_hidden", &ModelFields::feed_forward, kSize, "Size between the feed-forward's two.");
  visit("ffn_ratio", &ModelFields::feed_forward_ratio, kSize, "The same over the hidden size.");
  visit("vocab", &ModelFields::vocabulary, kSize, "Vocabulary.");
  visit("seq", &ModelFields::sequence, kSize, "Tokens of a sequence.");
  visit("lora_rank", &ModelFields::adapter_rank, kSize, "Rank of adapters beside frozen weights.");
  visit("lora_targets", &ModelFields::adapter_targets,
        List{Via{Choice{kAdapterTargets}, adapter_target}}, "Their matrices: all.");
  visit("params", &ModelFields::parameters, NumberOrWords{std::numeric_limits<std::int64_t>::max()},
        "Parameters, where the count is exact.");
}

template <typename Visit>
void visit_experts(Visit visit) {
  visit("experts", &ModelFields::experts, kSize, "Experts of a layer.");
  visit("topk", &ModelFields::active_experts, kSize, "Experts of a token.");
  visit("expert_ffn", &ModelFields::expert_size, kSize, "Size of an expert.");
  visit("dense_layers", &ModelFields::dense_layers, kSize, "The first ones, without experts.");
  visit("attention", &ModelFields::latent_attention, Choice{kAttention}, "Kind of attention.");
}

template <typename Visit>
void visit_machine(Visit visit) {
  visit("gpu", &MachineFields::gpu, Text{}, "A part of the catalogue, if it is there.");
  visit("gpus", &MachineFields::gpus, kRanks, "GPUs in all.");
  visit("gpus_per_node", &MachineFields::gpus_per_node, kRanks, "GPUs of a server.");
  visit("inter", &MachineFields::network, Text{}, "Network, in the words of the source.");
}

template <typename Visit>
void visit_plan(Visit visit) {
  visit("tp", &PlanFields::tensor, kRanks, "Tensor ranks.");
  visit("sp", &PlanFields::sequence_parallelism, Flag{}, "Sequence parallelism.");
  visit("cp", &PlanFields::context, kRanks, "Context ranks.");
  visit("pp", &PlanFields::pipeline, kRanks, "Pipeline ranks.");
  visit("vpp", &PlanFields::chunks, NumberOrWords{kMaxRanks}, "Chunks of a pipeline rank.");
  visit("schedule", &PlanFields::schedule, Via{Text{}, Read::schedule}, "Pipeline schedule.");
  visit("dp", &PlanFields::data, kRanks, "Data ranks.");
  visit("ep", &PlanFields::expert, kRanks, "Expert ranks.");
  visit("etp", &PlanFields::expert_tensor, kRanks, "Tensor ranks of experts.");
  visit("zero", &PlanFields::zero_stage, Whole{0, 3}, "Stage of ZeRO.");
  visit("fsdp", &PlanFields::shard_group, nullptr, "");
  visit("sharding", &PlanFields::shards_within_node,
        Via{Choice{kShardings},
            [](const ConfigNode& node) { return node.as_choice(kShardings) == 2; }},
        "Strategy of PyTorch's FSDP.");
  visit("micro_batch", &PlanFields::micro_batch, kSize, "Sequences of a micro-batch.");
  visit("global_batch", &PlanFields::global_batch, kSize, "Sequences of a step.");
  visit("grad_accum", &PlanFields::micro_batches, kSize, "Micro-batches of a data rank.");
  visit("microbatches", &PlanFields::micro_batches, kSize, "The same.");
  visit("recompute", &PlanFields::recompute, nullptr, "");
  visit("layers_per_stage", &PlanFields::stage_layers, List{kRanks}, "As the source counts them.");
}

template <typename Visit>
void visit_software(Visit visit) {
  visit("software", &SoftwareFields::profile, Text{}, "A file of `configs/software`.");
  visit("precision", &SoftwareFields::precision, Via{Text{}, Read::precision}, "Precision.");
  visit("compile", &SoftwareFields::compiled, Flag{}, "Whether kernels are compiled.");
  visit("async_tp", &SoftwareFields::overlaps_tensor, Flag{}, "Overlap of tensor collectives.");
  visit("overlap_dp", &SoftwareFields::overlaps_data, Flag{}, "Overlap of gradients and weights.");
  visit("pp_comm_async", &SoftwareFields::overlaps_pipeline, Flag{}, "Overlap between stages.");
  visit("overlap_ep", &SoftwareFields::overlaps_experts, Flag{}, "Overlap of experts' tokens.");
}

// Returns the visitor that has a row for each key.
template <typename Part>
auto rows_of(Fields& fields, Part& part) {
  return
      [&fields, &part](std::string_view key, auto member, const auto& kind, std::string_view text) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(kind)>, std::nullptr_t>) {
          fields.optional(key, part.*member, kind, text);
        }
      };
}

void model_rows(Fields& fields, ModelFields& model) {
  const auto expert_rows = [](Fields& inner, ModelFields& experts) {
    visit_experts(rows_of(inner, experts));
    skip_keys(inner, {"shared"});  // A model file has their size.
  };
  visit_model(rows_of(fields, model));
  fields.optional("moe", model, Group{expert_rows}, "Its experts.");
  skip_keys(fields, {"mlp", "activation", "note"});
}

void machine_rows(Fields& fields, MachineFields& machine) {
  visit_machine(rows_of(fields, machine));
  skip_keys(fields, {"slice", "slices", "gpus_per_stage_replica"});
}

void parallel_rows(Fields& fields, TrainingFields& all) {
  visit_plan(rows_of(fields, all.plan));
  fields.optional("fsdp", all.plan, ShardedRanks{}, "Ranks of a shard of stage 3, or `true`.");
  fields.optional("zero1_group", all.plan, OptimizerRanks{}, "Ranks of a shard of stage 1.");
  fields.optional("recompute", all.plan, Recomputed{}, "What backward passes compute again.");
  visit_software(rows_of(fields, all.software));
  skip_keys(fields, {"dp_replicas", "per_chip_batch", "model_parallel_size", "intra_node",
                     "dispatcher", "routing", "overlap"});
}

// Calls `visit` with the name of a field and the field of both, for every field.
template <typename Visit>
void visit_fields(TrainingFields& one, const TrainingFields& other, Visit visit) {
  const auto pairs = [&visit](std::string_view prefix, auto& mine, const auto& its) {
    return [&visit, prefix, &mine, &its](std::string_view key, auto member, const auto& /*kind*/,
                                         std::string_view /*text*/) {
      visit(fmt::format("{}.{}", prefix, key), mine.*member, its.*member);
    };
  };
  visit_model(pairs("model", one.model, other.model));
  visit_experts(pairs("model.moe", one.model, other.model));
  visit_machine(pairs("cluster", one.machine, other.machine));
  visit_plan(pairs("parallel", one.plan, other.plan));
  visit_software(pairs("parallel", one.software, other.software));
}

}  // namespace

void skip_keys(Fields& fields, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    fields.optional(key, std::ignore, Unread{}, "For people.");
  }
}

void training_fields(Fields& fields, TrainingFields& all) {
  fields.optional("model", all.model, Group{model_rows}, "The model.");
  fields.optional("cluster", all.machine, Group{machine_rows}, "The machine.");
  fields.optional("parallel", all, Group{parallel_rows}, "Plan and software.");
}

std::vector<std::string> fill_missing(TrainingFields& fields, const TrainingFields& assumed) {
  std::vector<std::string> names;
  visit_fields(fields, assumed, [&](const std::string& name, auto& mine, const auto& other) {
    if (!mine && other) {
      mine = other;
      names.push_back(name);
    }
  });
  return names;
}

std::vector<std::string> replace_with(TrainingFields& fields, const TrainingFields& corrected) {
  std::vector<std::string> names;
  visit_fields(fields, corrected, [&](const std::string& name, auto& mine, const auto& other) {
    if (other && mine != other) {
      mine = other;
      names.push_back(name);
    }
  });
  return names;
}

}  // namespace trainyard
