// SPDX-License-Identifier: Apache-2.0
// Memory of a training step on each rank of one pipeline, by class and over time, before any time
// is simulated: the passes of the schedule are walked one by one, each layer by layer. Pipelines
// are alike, so that p ranks stand for all.
//
// Three levels, as published figures have them: what PyTorch's allocator has given out, what it has
// reserved, and what the device shows as used. docs/models/memory.md has the equations and their
// sources.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/model/expert_routing.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/model/pipeline_schedule.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/workload/memory_settings.h"
#include "parallelism/workload/software_profile.h"
#include "sim/units.h"

namespace trainyard {

enum class MemoryClass : std::uint8_t {
  Weights,
  Gradients,
  OptimizerStates,
  GatheredWeights,  // ZeRO stage 3: layers in use and the next ones; unsharded gradients (2 and 3).
  Activations,      // Kept from forward to backward.
  Loss,             // Logits and what the loss makes of them.
  Working,          // Recomputed layers, gradients within a layer, buffers of weight gradients.
  Buffers,          // Buffers of collectives and transfers, outside the communication library.
  Fragmentation,    // From here on not given out by the allocator.
  Communication,    // The communication library's own buffers.
  Context,          // The process on the device.
};

inline constexpr std::array kMemoryClasses{
    MemoryClass::Weights,         MemoryClass::Gradients,   MemoryClass::OptimizerStates,
    MemoryClass::GatheredWeights, MemoryClass::Activations, MemoryClass::Loss,
    MemoryClass::Working,         MemoryClass::Buffers,     MemoryClass::Fragmentation,
    MemoryClass::Communication,   MemoryClass::Context};

[[nodiscard]] std::string_view to_string(MemoryClass memory_class);

struct MemoryUse {
  std::array<Bytes, kMemoryClasses.size()> by_class{};

  [[nodiscard]] Bytes& operator[](MemoryClass memory_class) {
    return by_class[static_cast<std::size_t>(memory_class)];
  }
  [[nodiscard]] Bytes operator[](MemoryClass memory_class) const {
    return by_class[static_cast<std::size_t>(memory_class)];
  }
  [[nodiscard]] Bytes allocated() const;  // Up to Buffers.
  [[nodiscard]] Bytes reserved() const;   // With Fragmentation.
  [[nodiscard]] Bytes device() const;     // Everything.
};

struct MemoryMoment {
  std::size_t position = 0;  // In passes_of() of the rank; behind the last one: the optimizer.
  Pass pass = {};            // Pass, without meaning for the optimizer.
  ModelUnit unit = {};       // The part of the pass, or the optimizer.
  MemoryUse use = {};

  // "forward of micro-batch 3, chunk 0, layer 17".
  [[nodiscard]] std::string where() const;
};

// Bytes in host memory, for plans with offload.
struct HostedMemory {
  Bytes optimizer = {};    // States, and weights where those are the master copy.
  Bytes gradients = {};    // Gradients of the rank's shard.
  Bytes activations = {};  // The most at once.

  [[nodiscard]] Bytes total() const { return optimizer + gradients + activations; }
};

// Most passes of a long step are like one before them: the moments that differ are kept once.
struct RankMemory {
  int rank = 0;                       // Rank of the pipeline.
  std::vector<Pass> passes;           // All in their order, and one for the optimizer.
  std::vector<MemoryMoment> moments;  // Highest moments of passes, each with the first such pass.
  std::vector<std::uint32_t> moment_of_pass;  // Indices of them.
  std::size_t peak = 0;                       // Index of the highest, the first of equal ones.
  HostedMemory host = {};

  [[nodiscard]] const MemoryMoment& highest() const { return moments[peak]; }
  // Returns the highest moment of a pass.
  [[nodiscard]] MemoryMoment moment(std::size_t position) const;
};

struct StepMemory {
  std::vector<RankMemory> ranks;
  std::size_t worst = 0;  // Index of the rank with the highest peak, the first of equal ones.

  [[nodiscard]] const RankMemory& highest() const { return ranks[worst]; }
};

// The plan must have passed check(). For each layer with experts the rank is taken that `loads`
// fills most, as for its time: one rank for all of them, which loads that differ between layers may
// not have. Throws ConfigError with one line where the memory of a plan is not defined.
[[nodiscard]] StepMemory step_memory(const Model& model, const ParallelPlan& plan,
                                     const MemorySettings& settings, const ExpertLoads& loads = {});
// The same as the software trains it (configs/software).
[[nodiscard]] StepMemory step_memory(const Model& model, const ParallelPlan& plan,
                                     const SoftwareProfile& software, const ExpertLoads& loads);

// A profile says kernels and formats, from which the stack follows: unfused attention is that of
// Megatron-LM until 2022, fused operators are those of Megatron-Core, all else is PyTorch.
// Megatron's gradients are as wide as the profile says, those of PyTorch as wide as its shards.
[[nodiscard]] MemorySettings memory_settings(const SoftwareProfile& software);

// Returns the options of a layer of the model, counted from 0: those of the settings, with its
// load.
[[nodiscard]] ActivationOptions activation_options(const Model& model, int of_model,
                                                   const ParallelPlan& plan,
                                                   const MemorySettings& settings,
                                                   const ExpertLoads& loads);

// "fits: pipeline rank 3 needs 70.10 of 85.90 GB at ...: weights 20.00, ...": the classes from the
// largest on. Also "fits without fragmentation", but for the share that is stated for it, and "out
// of memory". `who` and `when` are put in as they are.
[[nodiscard]] std::string describe_fit(const MemoryUse& use, Bytes capacity, std::string_view who,
                                       std::string_view when);

// Returns the capacity that a device with that memory by its data sheet (hw/parts/catalogue.h)
// reports as its own. Data sheets say GB for 2^30 bytes, and half a percent is withheld: nvidia-smi
// shows 81920 MiB for an A100 of "80 GB", 81559 for an H100, 143771 for an H200 of 141 and 183359
// for a B200 of 180.
[[nodiscard]] Bytes device_capacity(Bytes data_sheet);

// The same of the rank with the highest peak; `capacity` as device_capacity() gives it.
[[nodiscard]] std::string memory_verdict(const StepMemory& memory, Bytes capacity);

}  // namespace trainyard
