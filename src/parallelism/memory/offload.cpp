// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/offload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "parallelism/memory/step_memory.h"
#include "parallelism/model/activation_memory.h"

namespace trainyard {
namespace {

// DeepSpeed, csrc/includes/cpu_adam.h: TILE.
constexpr std::int64_t kTileParameters = std::int64_t{128} * 1024 * 1024;

// Share of the memory bandwidth of the sockets: arXiv 2101.06840, table 4, has CPU-Adam take 0.22,
// 0.51, 1.03, 2.41 and 2.57 s for 1, 2, 4, 8 and 10 billion parameters, at 30 bytes each (three
// states in 32 bits read and written, the gradient in 32 bits, the weight in 16) on two Xeon with
// six channels of DDR4-2666: 0.53, 0.46, 0.46, 0.39, 0.46.
constexpr double kHostOptimizerShare = 0.46;

}  // namespace

std::int64_t owned_parameters(const RankParameters& parameters, const ParallelPlan& plan) {
  if (plan.zero_stage == 0) {
    return parameters.total();
  }
  return ceil_divide(parameters.dense, plan.shards()) +
         ceil_divide(parameters.expert, plan.expert_gradient_ranks());
}

Bytes layer_activations(const Model& model, int of_model, const ParallelPlan& plan,
                        const SoftwareProfile& software, const ExpertLoads& loads) {
  const ModelLayer& layer = model.layers[static_cast<std::size_t>(of_model)];
  const ActivationOptions options =
      activation_options(model, of_model, plan, memory_settings(software), loads);
  return saved_bytes(kept_tensors(model, layer, plan, options), plan.tokens()).forward;
}

SimTime host_work_time(std::int64_t parameters, double optimizer_bytes, Bandwidth memory) {
  constexpr double kBitsOfByte = 8.0;
  constexpr double kPicosecondsOfSecond = 1e12;
  const double bits = static_cast<double>(parameters) * optimizer_bytes * kBitsOfByte;
  const double rate = static_cast<double>(memory.bits_per_second()) * kHostOptimizerShare;
  return SimTime(std::llround(bits / rate * kPicosecondsOfSecond));
}

std::vector<HostTile> host_tiles(std::int64_t parameters, double optimizer_bytes, int weight_bytes,
                                 const HostRates& rates) {
  std::vector<HostTile> tiles;
  for (std::int64_t left = parameters; left > 0; left -= kTileParameters) {
    const std::int64_t size = std::min(left, kTileParameters);
    tiles.push_back({.update = host_work_time(size, optimizer_bytes, rates.memory),
                     .copy = rates.copy_to_gpu(Bytes(size) * weight_bytes)});
  }
  return tiles;
}

HostUpdate host_update(const std::vector<HostTile>& tiles) {
  SimTime updated;
  HostUpdate up;  // To the end of the last copy.
  for (const HostTile& tile : tiles) {
    updated += tile.update;
    if (updated >= up.total()) {
      up = {.optimizer = updated, .copies = {}};
    }
    up.copies += tile.copy;
  }
  return up;
}

}  // namespace trainyard
