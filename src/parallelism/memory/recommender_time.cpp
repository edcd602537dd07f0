// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/recommender_time.h"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "parallelism/operators/operator_time.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// OperatorTimes::memory_bound() counts elements of 16 bits and scales them.
constexpr double kCountedBytes = 2.0;
constexpr int kWeightBytes = 4;  // Bytes of an element of a table, and of its gradient at the end.

// Reads and writes of elementwise operators, for each element of what a layer puts out: bias and
// ReLU; and backward the gradient through the ReLU, and that of the bias. Estimates.
constexpr double kLayerForward = 2.0;
constexpr double kLayerBackward = 4.0;
// A vector that came from another rank is put in its sample's place; all vectors are put side by
// side. The same holds backward.
constexpr double kArranged = 2.0;
constexpr double kConcatenated = 2.0;
// Passes over each element of a cross layer: x0 * (y + b) + x reads three and writes one; backward
// three gradients from three inputs, and that of b.
constexpr double kCrossForward = 4.0;
constexpr double kCrossBackward = 7.0;
// Dot products of all pairs: the lower triangle of the products is read and written.
constexpr double kTriangle = 2.0;
// With one kernel, forward: vectors are read. Backward they are, and their gradients are written.
constexpr double kFusedForward = 1.0;
constexpr double kFusedBackward = 2.0;
constexpr std::int64_t kPadding = 16;

// Indices are sorted by row before gradients are summed up: pairs of a row of 64 bits and a place
// of 32, a digit of 8 bits in each pass, read and written (pytorch/FBGEMM, fbgemm_gpu,
// split_embeddings_utils.cuh: CUB's radix sort; Onesweep, arXiv 2206.01784).
constexpr double kSortedPair = 2.0 * 12.0;
constexpr int kSortedBits = 8;

// Memory is read and written in sectors (CUDA C++ Best Practices Guide, 10.2.1), of which a row, or
// what an optimizer has beside it, takes whole ones.
constexpr std::int64_t kSector = 32;

double in_sectors(std::int64_t bytes) {
  const std::int64_t sectors = (bytes + kSector - 1) / kSector;
  return static_cast<double>(sectors * kSector);
}

class RankTimes {
 public:
  RankTimes(const RecommenderJob& job, std::size_t rank)
      : job_(job),
        model_(job.workload.model),
        own_(job.sharding.dealt[rank]),
        element_(row_of(job.workload.precision).element_bytes),
        operators_(job.rates),
        samples_(job.samples()) {}

  [[nodiscard]] RecommenderTimes all() const {
    RecommenderTimes times;
    times.lookups = lookups();
    add_mlp(model_.bottom_layers(), times.bottom_forward, times.bottom_backward);
    // Nobody asks for the gradient of what comes in.
    SimTime& products = times.bottom_backward[StepPart::Linear];
    products = products - input_gradient(model_.bottom_layers().front());
    add_mlp(model_.top_layers(), times.top_forward, times.top_backward);
    add_interaction(times);
    times.updates = updates();
    times.optimizer[StepPart::Optimizer] = optimizer();
    return times;
  }

 private:
  [[nodiscard]] SimTime start() const { return job_.rates.gemm_start; }
  [[nodiscard]] SimTime elementwise(double elements) const {
    return elements > 0.0 ? operators_.memory_bound(elements * kCountedBytes) + start() : SimTime();
  }
  [[nodiscard]] double samples() const { return static_cast<double>(samples_); }
  [[nodiscard]] double whole_batch() const { return static_cast<double>(job_.workload.batch); }

  [[nodiscard]] std::int64_t padded(std::int64_t size) const {
    return job_.software.pads_inputs ? (size + kPadding - 1) / kPadding * kPadding : size;
  }
  [[nodiscard]] SimTime input_gradient(const MlpLayer& layer) const {
    return operators_.linear(
        {.m = samples_, .n = padded(layer.inputs), .k = padded(layer.outputs)});
  }
  [[nodiscard]] SimTime weight_gradient(const MlpLayer& layer) const {
    return operators_.linear_over_long_k(
        {.m = padded(layer.outputs), .n = padded(layer.inputs), .k = samples_});
  }
  void add_product(const MlpLayer& layer, StepParts& forward, StepParts& backward) const {
    forward[StepPart::Linear] +=
        operators_.linear({.m = samples_, .n = padded(layer.outputs), .k = padded(layer.inputs)});
    backward[StepPart::Linear] += input_gradient(layer) + weight_gradient(layer);
  }

  void add_mlp(const std::vector<MlpLayer>& layers, StepParts& forward, StepParts& backward) const {
    for (const MlpLayer& layer : layers) {
      add_product(layer, forward, backward);
      const double outputs = samples() * static_cast<double>(layer.outputs);
      forward[StepPart::MemoryBound] += elementwise(kLayerForward * outputs);
      backward[StepPart::MemoryBound] += elementwise(kLayerBackward * outputs);
    }
  }

  void add_interaction(RecommenderTimes& times) const {
    const double all = samples() * static_cast<double>(model_.vectors() * model_.width);
    const double came =
        job_.ranks() == 1 ? 0.0 : all - samples() * static_cast<double>(model_.width);
    const bool is_fused = job_.software.fuses_interaction && !model_.cross;
    const SimTime arranged =
        elementwise(kArranged * came) + (is_fused ? SimTime() : elementwise(kConcatenated * all));
    times.interaction_forward[StepPart::Head] += arranged;
    times.interaction_backward[StepPart::Head] += arranged;
    if (model_.cross) {
      add_cross(all, times);
    } else if (is_fused) {
      const double outputs = samples() * static_cast<double>(model_.interacted());
      times.interaction_forward[StepPart::Head] += elementwise(kFusedForward * all + outputs);
      times.interaction_backward[StepPart::Head] += elementwise(kFusedBackward * all + outputs);
    } else {
      add_dot(times);
    }
  }

  void add_cross(double all, RecommenderTimes& times) const {
    const std::int64_t size = model_.interacted();
    const std::int64_t rank = model_.cross->rank;
    for (std::int64_t layer = 0; layer < model_.cross->layers; ++layer) {
      add_product({.inputs = size, .outputs = rank}, times.interaction_forward,
                  times.interaction_backward);
      add_product({.inputs = rank, .outputs = size}, times.interaction_forward,
                  times.interaction_backward);
      times.interaction_forward[StepPart::Head] += elementwise(kCrossForward * all);
      times.interaction_backward[StepPart::Head] += elementwise(kCrossBackward * all);
    }
  }

  // One product of a sample's vectors with themselves, and two for its gradients.
  void add_dot(RecommenderTimes& times) const {
    const std::int64_t vectors = model_.vectors();
    const SimTime product =
        operators_.product({.m = vectors, .n = vectors, .k = model_.width, .count = samples_});
    const SimTime gradient =
        operators_.product({.m = vectors, .n = model_.width, .k = vectors, .count = samples_});
    const double outputs = samples() * static_cast<double>(model_.interacted());
    const double triangle = samples() * static_cast<double>(vectors * vectors);
    const SimTime rest = elementwise(kTriangle * (outputs + triangle));
    times.interaction_forward[StepPart::Head] += product + rest;
    times.interaction_backward[StepPart::Head] += gradient * 2 + rest;
  }

  // Elements of a vector that a rank has.
  [[nodiscard]] std::int64_t width_of(const TableShare& share) const {
    return model_.width / share.columns;
  }

  // Every index reads its row, whether others name the same or not; sums are written.
  [[nodiscard]] StepParts lookups() const {
    const TableSharding& sharding = job_.sharding;
    const auto bytes = [&](const TableShare& share, double batch, double sums) {
      return batch * static_cast<double>(share.lookups) *
                 in_sectors(width_of(share) * kWeightBytes) +
             element_ * sums * static_cast<double>(share.summed);
    };
    // A rank has its part of the rows of split tables, but sums of all samples.
    const double all = bytes(own_, whole_batch(), whole_batch()) +
                       bytes(sharding.split, samples(), whole_batch()) +
                       bytes(sharding.replicated, samples(), samples());
    StepParts parts;
    parts[StepPart::Attention] = operators_.memory(all) + start();
    return parts;
  }

  // Returns the bytes of tables of which this rank has `share`: 1 / ranks of the rows of split
  // ones.
  [[nodiscard]] double update_bytes(const TableShare& tables, double share) const {
    if (tables.tables.empty()) {
      return 0.0;
    }
    const double indices = whole_batch() * share * static_cast<double>(tables.lookups);
    const auto bits = std::bit_width(static_cast<std::uint64_t>(tables.rows));
    const auto passes = (static_cast<int>(bits) + kSortedBits - 1) / kSortedBits;
    const std::int64_t width = width_of(tables);
    double bytes = indices * (kSortedPair * passes + in_sectors(width * element_));
    const RecommenderOptimizer optimizer = job_.workload.table_optimizer;
    const double of_row =
        2.0 * (in_sectors(width * kWeightBytes) + in_sectors(width * state_bytes(optimizer)) +
               in_sectors(row_state_bytes(optimizer)));
    for (const std::size_t index : tables.tables) {
      const EmbeddingTable& table = model_.tables[index];
      bytes += share * of_row *
               distinct_rows(table.rows, whole_batch() * static_cast<double>(table.lookups));
    }
    return bytes;
  }

  [[nodiscard]] StepParts updates() const {
    double bytes = update_bytes(own_, 1.0) + update_bytes(job_.sharding.split, 1.0 / job_.ranks());
    // Gradients of replicated tables are laid out as the tables are, and added to.
    const TableShare& replicated = job_.sharding.replicated;
    bytes +=
        kWeightBytes * static_cast<double>(replicated.parameters) +
        samples() * static_cast<double>(replicated.looked_up) * (element_ + 2.0 * kWeightBytes);
    StepParts parts;
    parts[StepPart::Casts] = operators_.memory(bytes) + start();
    return parts;
  }

  // Weights and states are read and written, gradients read; of 16 bits a copy is written.
  [[nodiscard]] SimTime optimizer() const {
    const auto bytes = [](RecommenderOptimizer optimizer, std::int64_t parameters) {
      return static_cast<double>(parameters) *
             (kWeightBytes + 2.0 * (kWeightBytes + state_bytes(optimizer)));
    };
    const double copies =
        element_ < 4 ? element_ * static_cast<double>(model_.dense_parameters()) : 0.0;
    const std::int64_t replicated = job_.sharding.replicated.parameters;
    return operators_.memory(bytes(job_.workload.dense_optimizer, model_.dense_parameters()) +
                             bytes(job_.workload.table_optimizer, replicated) + copies) +
           start();
  }

  const RecommenderJob& job_;
  const RecommenderModel& model_;
  const TableShare& own_;
  int element_;
  OperatorTimes operators_;
  std::int64_t samples_;
};

}  // namespace

ComputeRates recommender_rates(const GpuModel& gpu, const GpuRates& rates,
                               const RecommenderSoftware& software, Precision precision) {
  SoftwareProfile kernels;
  kernels.name = software.name;
  kernels.attention = "unfused";
  kernels.fusion = software.fusion;
  return compute_rates(gpu, rates, kernels, precision);
}

RecommenderTimes recommender_times(const RecommenderJob& job, std::size_t rank) {
  return RankTimes(job, rank).all();
}

RecommenderTraffic recommender_traffic(const RecommenderJob& job) {
  if (job.ranks() == 1) {
    return {};
  }
  const TableSharding& sharding = job.sharding;
  const RecommenderModel& model = job.workload.model;
  const int element = row_of(job.workload.precision).element_bytes;
  std::int64_t lookups = sharding.split.lookups;
  for (const TableShare& share : sharding.dealt) {
    lookups += share.lookups;
  }
  const std::int64_t reduced = job.software.gradient_bytes;
  constexpr std::int64_t kTableBytes = 4;
  return {.indices = Bytes(job.samples() * lookups * job.software.index_bytes),
          .vectors = Bytes(job.workload.batch * sharding.max_summed() * element),
          .split_vectors = Bytes(job.workload.batch * sharding.split.summed * element),
          .top_gradients = Bytes((model.top_parameters() + model.cross_parameters()) * reduced),
          .bottom_gradients = Bytes(model.bottom_parameters() * reduced +
                                    sharding.replicated.parameters * kTableBytes)};
}

double distinct_rows(std::int64_t rows, double lookups) {
  const auto all = static_cast<double>(rows);
  return rows == 1 ? 1.0 : -all * std::expm1(lookups * std::log1p(-1.0 / all));
}

int state_bytes(RecommenderOptimizer optimizer) {
  constexpr std::array<int, 4> kBytes{0, 4, 0, 8};  // In the order of the optimizers.
  return kBytes.at(static_cast<std::size_t>(optimizer));
}

int row_state_bytes(RecommenderOptimizer optimizer) {
  return optimizer == RecommenderOptimizer::RowwiseAdagrad ? 4 : 0;
}

}  // namespace trainyard
