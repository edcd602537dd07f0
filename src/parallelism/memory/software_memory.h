// SPDX-License-Identifier: Apache-2.0
// The memory of a step as a software profile (configs/software) trains it, with the stages that the
// plan has.
#pragma once

#include "parallelism/memory/step_memory.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/memory_settings.h"
#include "parallelism/workload/software_profile.h"

namespace trainyard {

// A profile says kernels and formats, from which the stack follows: unfused attention is that of
// Megatron-LM until 2022, fused operators are those of Megatron-Core, all else is PyTorch.
// Megatron's gradients are as wide as the profile says, those of PyTorch as wide as its shards.
[[nodiscard]] MemorySettings memory_settings(const SoftwareProfile& software);

// Takes a plan that passed check(). Throws ConfigError with one line where the memory of a plan is
// not defined.
[[nodiscard]] StepMemory step_memory(const Model& model, const ParallelPlan& plan,
                                     const SoftwareProfile& software, const ExpertLoads& loads);

}  // namespace trainyard
