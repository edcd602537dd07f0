// SPDX-License-Identifier: Apache-2.0
// Measured memory of training steps (validation/training/memory/, docs/models/memory.md): plans
// with the figure that their source printed, and the level at which it was taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/memory/step_memory.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

enum class MemoryLevel : std::uint8_t {
  Allocated,  // torch.cuda.max_memory_allocated().
  Reserved,   // torch.cuda.max_memory_reserved().
  Device,     // nvidia-smi, or what the source adds up itself.
};

struct MeasuredMemory {
  std::string id;
  Model model;
  ParallelPlan plan;
  std::string settings;  // A name that memory_settings() knows.
  Bytes measured;        // Memory of the fullest rank.
};

struct MemoryMeasurements {
  std::string source;
  MemoryLevel level = MemoryLevel::Allocated;
  double unit = 1.0;     // Bytes.
  std::string settings;  // Settings of rows that name none.
  std::map<std::string, Model> models;
  std::vector<MeasuredMemory> rows;
};

void memory_fields(Fields& fields, MemoryMeasurements& file);

// Throws ConfigError with file, line and column.
[[nodiscard]] MemoryMeasurements load_memory_measurements(const std::filesystem::path& path);

// Returns the memory of the fullest rank.
[[nodiscard]] Bytes predicted_memory(const MeasuredMemory& row, MemoryLevel level);

}  // namespace trainyard
