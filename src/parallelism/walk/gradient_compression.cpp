// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/gradient_compression.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "parallelism/model/rank_groups.h"
#include "parallelism/walk/step_traffic.h"
#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kCastBytes = 2.0;
// Kernels for a column when a thin matrix is made orthogonal: norm, division, and four for the
// columns behind it (_orthogonalize_gram_schmidt of powerSGD_hook.py). With more than two columns
// PyTorch calls a library (torch.linalg.qr); as many are an estimate.
constexpr std::int64_t kOrthogonalKernels = 6;
// Times that a value is read or written to find the largest ones: made absolute (2), four passes
// over 8 bits each, and one that collects them (aten/src/ATen/native/cuda/TensorTopK.cu, mbtopk).
constexpr double kSelectPasses = 7.0;

// Gradients of one group of ranks.
struct Compressed {
  std::int64_t elements = 0;
  const ThinMatrices& thin;
  int ranks = 1;

  [[nodiscard]] bool is_summed() const { return elements > 0 && ranks > 1; }
};

std::array<Compressed, 2> parts_of(const RankParameters& parameters, const ParallelPlan& plan) {
  return {Compressed{.elements = parameters.dense,
                     .thin = parameters.dense_thin,
                     .ranks = group_size(plan, RankGroupKind::Gradient)},
          Compressed{.elements = parameters.expert,
                     .thin = parameters.expert_thin,
                     .ranks = group_size(plan, RankGroupKind::ExpertGradient)}};
}

CompressionTimes cast_times(double elements, double bytes, const OperatorTimes& operators) {
  return {.before = operators.memory(elements * (bytes + 3.0 * kCastBytes)),
          .behind = operators.memory(elements * (kCastBytes + bytes))};
}

// The error of the last step is added (3), a copy kept (2), what stays whole is gathered (2), its
// sum divided and copied back (4), and the new error taken (3); each of the three products passes
// the matrices once. The products have the mean shape.
CompressionTimes power_times(const Compressed& part, int rank, double bytes,
                             const OperatorTimes& operators) {
  const ThinMatrices& thin = part.thin;
  const auto all = static_cast<double>(part.elements);
  const auto whole = static_cast<double>(thin.whole);
  CompressionTimes times{.before = operators.memory(bytes * (5.0 * all + 2.0 * (all - whole))),
                         .behind = operators.memory(bytes * (3.0 * all + 4.0 * (all - whole)))};
  if (thin.count == 0) {
    return times;
  }
  const std::int64_t columns =
      std::max<std::int64_t>(1, thin.whole / std::max<std::int64_t>(1, thin.left / rank));
  const std::int64_t rows = std::max<std::int64_t>(1, thin.whole / (thin.count * columns));
  const SimTime pass = operators.memory(bytes * whole);
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return std::max(pass, operators.product({.m = m, .n = n, .k = k, .count = thin.count}));
  };
  const SimTime start = operators.product({});  // One that computes nothing takes its start.
  const SimTime orthogonal = start * (thin.count * kOrthogonalKernels * rank);
  const SimTime starts = start * (thin.count - 1);  // Each product is a kernel of its own.
  times.before += orthogonal + product(rows, rank, columns) + starts;
  times.behind +=
      orthogonal + product(columns, rank, rows) + product(rows, columns, rank) + starts * 2;
  return times;
}

// The error is added (3), the largest are found, and what is left is kept (2); behind, the sum is
// cleared (1), to which each rank's values are added, each with its place, and divided (2).
CompressionTimes top_times(const Compressed& part, double ratio, double bytes,
                           const OperatorTimes& operators) {
  const auto all = static_cast<double>(part.elements);
  const auto gathered = static_cast<double>(kept_elements(part.elements, ratio) * part.ranks);
  return {.before = operators.memory(all * bytes * (5.0 + kSelectPasses)),
          .behind = operators.memory(all * bytes * 3.0 + gathered * (kPlaceBytes + 3.0 * bytes))};
}

}  // namespace

CompressionTimes compression_times(const RankParameters& parameters, const ParallelPlan& plan,
                                   const SoftwareProfile& software,
                                   const OperatorTimes& operators) {
  const auto compression = compression_of(plan, software);
  CompressionTimes sum;
  if (!compression) {
    return sum;
  }
  const double bytes = gradient_bytes(plan, software);
  const auto times_of = [&](const Compressed& part) -> CompressionTimes {
    switch (compression->method) {
      case CompressionMethod::Fp16:
      case CompressionMethod::Bf16:
        return cast_times(static_cast<double>(part.elements), bytes, operators);
      case CompressionMethod::PowerSgd:
        return power_times(part, compression->rank, bytes, operators);
      case CompressionMethod::TopK:
        return top_times(part, compression->ratio, bytes, operators);
    }
    CHECK(false, "unknown method of compression");
  };
  for (const Compressed& part : parts_of(parameters, plan)) {
    if (part.is_summed()) {
      const CompressionTimes times = times_of(part);
      sum.before += times.before;
      sum.behind += times.behind;
    }
  }
  return sum;
}

Bytes compression_buffers(const RankParameters& parameters, const ParallelPlan& plan,
                          std::int64_t gradient_bytes) {
  Bytes sum;
  if (!plan.compression) {
    return sum;
  }
  const bool is_power = plan.compression->method == CompressionMethod::PowerSgd;
  if (!is_power && plan.compression->method != CompressionMethod::TopK) {
    return sum;
  }
  for (const Compressed& part : parts_of(parameters, plan)) {
    if (part.is_summed()) {
      sum += Bytes(part.elements) * gradient_bytes;
      sum += is_power ? Bytes(part.thin.left + part.thin.right) * gradient_bytes
                      : Bytes(kept_elements(part.elements, plan.compression->ratio)) *
                            (part.ranks * (gradient_bytes + kPlaceBytes));
    }
  }
  return sum;
}

std::string describe(const GradientCompression& compression) {
  switch (compression.method) {
    case CompressionMethod::Fp16:
    case CompressionMethod::Bf16:
      return std::string(to_string(compression.method));
    case CompressionMethod::PowerSgd:
      return fmt::format("PowerSGD of rank {}", compression.rank);
    case CompressionMethod::TopK:
      return fmt::format("the largest {:g} %", 100.0 * compression.ratio);
  }
  CHECK(false, "unknown method of compression");
}

}  // namespace trainyard
