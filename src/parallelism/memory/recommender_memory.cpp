// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/recommender_memory.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "nccl/types/environment.h"
#include "parallelism/workload/memory_settings.h"

namespace trainyard {
namespace {

constexpr std::int64_t kFp32Bytes = 4;
// Bytes of an index: its pair, before and behind a pass.
constexpr std::int64_t kSortBytes = 2 * 12;
constexpr std::int64_t kBatchesOfIndices = 2;  // This one and the next.

std::int64_t outputs_of(const std::vector<std::int64_t>& layers) {
  return std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
}

// Elements that a sample keeps from its way forward.
std::int64_t activations_of(const RecommenderModel& model) {
  const std::int64_t all = model.vectors() * model.width;
  const std::int64_t interaction = model.cross
                                       ? model.cross->layers * (all + model.cross->rank)
                                       : model.vectors() * model.vectors() + model.interacted();
  return model.dense_features + outputs_of(model.bottom) + all + interaction +
         outputs_of(model.top);
}

}  // namespace

MemoryUse recommender_memory(const RecommenderJob& job, std::size_t rank) {
  const RecommenderModel& model = job.workload.model;
  const TableSharding& sharding = job.sharding;
  const TableShare& own = sharding.dealt[rank];
  const std::int64_t element = row_of(job.workload.precision).element_bytes;
  const std::int64_t ranks = job.ranks();
  const auto share = [&](std::int64_t value) { return (value + ranks - 1) / ranks; };
  const std::int64_t dense = model.dense_parameters();
  const std::int64_t tables =
      own.parameters + share(sharding.split.parameters) + sharding.replicated.parameters;
  const std::int64_t rows = own.rows + share(sharding.split.rows) + sharding.replicated.rows;
  const std::int64_t lookups = own.lookups + share(sharding.split.lookups);
  const MemorySettings settings;
  MemoryUse use;
  use[MemoryClass::Weights] =
      Bytes((tables + dense) * kFp32Bytes + (element < kFp32Bytes ? dense * element : 0));
  use[MemoryClass::Gradients] =
      Bytes(dense * job.software.gradient_bytes + sharding.replicated.parameters * kFp32Bytes);
  use[MemoryClass::OptimizerStates] = Bytes(tables * state_bytes(job.workload.table_optimizer) +
                                            rows * row_state_bytes(job.workload.table_optimizer) +
                                            dense * state_bytes(job.workload.dense_optimizer));
  use[MemoryClass::Activations] = Bytes(job.samples() * activations_of(model) * element);
  // Sums of own tables for all, those of all tables for own samples, and gradients of both.
  const Bytes sums = Bytes((job.workload.batch * (own.summed + sharding.split.summed) +
                            job.samples() * (model.vectors() - 1) * model.width) *
                           element);
  use[MemoryClass::Buffers] =
      sums + Bytes(kBatchesOfIndices * job.workload.batch * lookups * job.software.index_bytes);
  use[MemoryClass::Working] = sums + Bytes(job.workload.batch * lookups * kSortBytes) +
                              Bytes(job.samples() * model.vectors() * model.width * element);
  const Bytes transient =
      use[MemoryClass::Activations] + use[MemoryClass::Buffers] + use[MemoryClass::Working];
  use[MemoryClass::Fragmentation] =
      Bytes(std::llround(settings.fragmentation * static_cast<double>(transient.count())));
  if (ranks > 1) {
    const nccl::Environment library;
    use[MemoryClass::Communication] =
        (library.simple_buffer + library.ll_buffer + library.ll128_buffer) * settings.connections;
  }
  use[MemoryClass::Context] = settings.context;
  return use;
}

std::int64_t room_for_tables(const RecommenderWorkload& workload, Bytes memory) {
  const auto of_row = static_cast<double>(row_state_bytes(workload.table_optimizer)) /
                      static_cast<double>(workload.model.width);
  const double of_element =
      static_cast<double>(kFp32Bytes + state_bytes(workload.table_optimizer)) + of_row;
  return static_cast<std::int64_t>(kTableShareOfMemory * static_cast<double>(memory.count()) /
                                   of_element);
}

}  // namespace trainyard
