// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_fields.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;
constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::array<std::string_view, 3> kForms{"gpt", "bloom", "llama"};

void skip_words(const ConfigNode& node, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto found = node.optional(key)) {
      found->skip();
    }
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char letter) { return letter >= '0' && letter <= '9'; });
}

// How the values of keys are read. Nothing: the value is no number, such as "all" or "about 8".
struct Read {
  static std::optional<std::int64_t> zero_stage(const ConfigNode& node) {
    return node.as_integer(0, 3);
  }
  static std::optional<std::int64_t> size(const ConfigNode& node) {
    return node.as_integer(1, kMaxSize);
  }

  static std::optional<std::int64_t> ranks(const ConfigNode& node) {
    return node.as_integer(1, kMaxRanks);
  }

  template <std::int64_t max>
  static std::optional<std::int64_t> number_if_it_is_one(const ConfigNode& node) {
    return is_number(node.as_string()) ? std::optional(node.as_integer(1, max)) : std::nullopt;
  }

  static std::optional<std::string> text(const ConfigNode& node) { return node.as_string(); }

  static std::optional<bool> flag(const ConfigNode& node) { return node.as_bool(); }

  // Sources write "1f1b", "1F1B (interleaved where vpp is given)", "ZB-2p": names of the table and
  // others.
  static std::optional<const PipelineSchedule*> schedule(const ConfigNode& node) {
    struct OtherName {
      std::string_view text;
      std::string_view name;
    };
    static constexpr std::array kOtherNames{
        OtherName{"1f1b-i", "interleaved"},
        OtherName{"zb-1p", "zb-h1"},  // "ZB-1p" of arXiv 2401.10241: H1's memory.
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
      node.fail(fmt::format("one of {}, 1f1b-i, zb-1p, zb-2p", fmt::join(names, ", ")),
                node.found());
    }
    return pipeline_schedules()[static_cast<std::size_t>(at - names.begin())];
  }

  static std::optional<Precision> precision(const ConfigNode& node) {
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
    const std::string text = lower_case(node.as_string());
    const auto* const start = std::find_if(kStarts.begin(), kStarts.end(), [&](const Start& one) {
      return text.starts_with(one.text);
    });
    if (start == kStarts.end()) {
      node.fail("a precision such as bf16, fp16, fp8, mxfp8, nvfp4", node.found());
    }
    return start->precision;
  }

  static std::optional<ModelForm> form(const ConfigNode& node) {
    return static_cast<ModelForm>(node.as_choice(kForms));
  }

  static std::optional<bool> is_latent(const ConfigNode& node) {
    static constexpr std::array<std::string_view, 2> kKinds{"MHA", "MLA"};
    return node.as_choice(kKinds) == 1;
  }

  static std::optional<bool> is_within_node(const ConfigNode& node) {
    static constexpr std::array<std::string_view, 4> kKinds{"FULL_SHARD", "FSDP", "HSDP",
                                                            "SHARD_GRAD_OP"};
    return node.as_choice(kKinds) == 2;
  }

  static std::optional<std::vector<int>> stage_layers(const ConfigNode& node) {
    std::vector<int> layers;
    for (const ConfigNode& stage : node.items()) {
      layers.push_back(static_cast<int>(stage.as_integer(1, kMaxRanks)));
    }
    return layers;
  }
};

// A row of a part calls `visit` with a key, the member and the reader of its value; nullptr where
// the key decides more than one member and is read below.
template <typename Visit>
void visit_model(Visit visit) {
  visit("name", &ModelFields::name, Read::text);
  visit("file", &ModelFields::file, Read::text);
  visit("form", &ModelFields::form, Read::form);
  visit("layers", &ModelFields::layers, Read::size);
  visit("hidden", &ModelFields::hidden, Read::size);
  visit("heads", &ModelFields::heads, Read::size);
  visit("kv_heads", &ModelFields::kv_heads, Read::size);
  visit("head_dim", &ModelFields::head_size, Read::size);
  visit("ffn_hidden", &ModelFields::feed_forward, Read::size);
  visit("ffn_ratio", &ModelFields::feed_forward_ratio, Read::size);
  visit("vocab", &ModelFields::vocabulary, Read::size);
  visit("seq", &ModelFields::sequence, Read::size);
  visit("params", &ModelFields::parameters,
        Read::number_if_it_is_one<std::numeric_limits<std::int64_t>::max()>);
}

template <typename Visit>
void visit_experts(Visit visit) {
  visit("experts", &ModelFields::experts, Read::size);
  visit("topk", &ModelFields::active_experts, Read::size);
  visit("expert_ffn", &ModelFields::expert_size, Read::size);
  visit("dense_layers", &ModelFields::dense_layers, Read::size);
  visit("attention", &ModelFields::latent_attention, Read::is_latent);
}

template <typename Visit>
void visit_machine(Visit visit) {
  visit("gpu", &MachineFields::gpu, Read::text);
  visit("gpus", &MachineFields::gpus, Read::ranks);
  visit("gpus_per_node", &MachineFields::gpus_per_node, Read::ranks);
  visit("inter", &MachineFields::network, Read::text);
}

template <typename Visit>
void visit_plan(Visit visit) {
  visit("tp", &PlanFields::tensor, Read::ranks);
  visit("sp", &PlanFields::sequence_parallelism, Read::flag);
  visit("cp", &PlanFields::context, Read::ranks);
  visit("pp", &PlanFields::pipeline, Read::ranks);
  visit("vpp", &PlanFields::chunks, Read::number_if_it_is_one<kMaxRanks>);
  visit("schedule", &PlanFields::schedule, Read::schedule);
  visit("dp", &PlanFields::data, Read::ranks);
  visit("ep", &PlanFields::expert, Read::ranks);
  visit("etp", &PlanFields::expert_tensor, Read::ranks);
  visit("zero", &PlanFields::zero_stage, Read::zero_stage);
  visit("fsdp", &PlanFields::shard_group, nullptr);
  visit("sharding", &PlanFields::shards_within_node, Read::is_within_node);
  visit("micro_batch", &PlanFields::micro_batch, Read::size);
  visit("global_batch", &PlanFields::global_batch, Read::size);
  visit("grad_accum", &PlanFields::micro_batches, Read::size);
  visit("microbatches", &PlanFields::micro_batches, Read::size);
  visit("recompute", &PlanFields::recompute, nullptr);
  visit("layers_per_stage", &PlanFields::stage_layers, Read::stage_layers);
}

template <typename Visit>
void visit_software(Visit visit) {
  visit("software", &SoftwareFields::profile, Read::text);
  visit("precision", &SoftwareFields::precision, Read::precision);
  visit("compile", &SoftwareFields::compiled, Read::flag);
  visit("async_tp", &SoftwareFields::overlaps_tensor, Read::flag);
  visit("overlap_dp", &SoftwareFields::overlaps_data, Read::flag);
  visit("pp_comm_async", &SoftwareFields::overlaps_pipeline, Read::flag);
  visit("overlap_ep", &SoftwareFields::overlaps_experts, Read::flag);
}

// Returns the visitor that reads the values of the keys that `node` has.
template <typename Part>
auto reader_of(const ConfigNode& node, Part& part) {
  return [&node, &part](std::string_view key, auto member, auto read) {
    if constexpr (!std::is_same_v<decltype(read), std::nullptr_t>) {
      if (const auto found = node.optional(key)) {
        if (const auto value = read(*found)) {
          part.*member =
              static_cast<typename std::remove_reference_t<decltype(part.*member)>::value_type>(
                  *value);
        }
      }
    }
  };
}

// The ranks over which ZeRO shards: Megatron's fsdp, which is stage 3, and InternEvo's zero1_group.
void read_sharding(const ConfigNode& node, PlanFields& plan) {
  if (const auto group = node.optional("fsdp")) {
    const std::string text = group->as_string();
    if (is_number(text)) {
      const std::int64_t ranks = group->as_integer(0, kMaxRanks);
      if (ranks > 0) {
        plan.zero_stage = 3;
        plan.shard_group = static_cast<int>(ranks);
      }
    } else if (group->as_bool()) {
      plan.zero_stage = 3;
    }
  }
  if (const auto group = node.optional("zero1_group");
      group && group->as_string() != "all dp ranks") {
    plan.shard_group = static_cast<int>(group->as_integer(1, kMaxRanks));
  }
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

// Calls `visit` with the name of a field and the field of both, for every field.
template <typename Visit>
void visit_fields(TrainingFields& one, const TrainingFields& other, Visit visit) {
  const auto pairs = [&visit](std::string_view prefix, auto& mine, const auto& its) {
    return [&visit, prefix, &mine, &its](std::string_view key, auto member, auto /*read*/) {
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

TrainingFields read_training_fields(const ConfigNode& node) {
  TrainingFields fields;
  if (const auto model = node.optional("model")) {
    visit_model(reader_of(*model, fields.model));
    if (const auto experts = model->optional("moe")) {
      visit_experts(reader_of(*experts, fields.model));
      skip_words(*experts, {"shared"});  // A model file has their size.
    }
    skip_words(*model, {"mlp", "activation", "note"});
  }
  if (const auto cluster = node.optional("cluster")) {
    visit_machine(reader_of(*cluster, fields.machine));
    skip_words(*cluster, {"slice", "slices", "gpus_per_stage_replica"});
  }
  if (const auto parallel = node.optional("parallel")) {
    visit_plan(reader_of(*parallel, fields.plan));
    read_sharding(*parallel, fields.plan);
    read_recompute(*parallel, fields.plan);
    visit_software(reader_of(*parallel, fields.software));
    skip_words(*parallel, {"dp_replicas", "per_chip_batch", "model_parallel_size", "intra_node",
                           "dispatcher", "routing", "overlap"});
  }
  return fields;
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
