// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/compression_figures.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/walk/gradient_compression.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {
namespace {

Bytes sent_bytes(const RankParameters& parameters, const ParallelPlan& plan,
                 const SoftwareProfile& software) {
  double sum = 0.0;
  for (const GroupCall& call : data_calls(parameters, plan, software).reduce) {
    sum += sent_elements(call, group_size(plan, call.group)) * call.element_bytes;
  }
  return Bytes(std::llround(sum));
}

}  // namespace

std::string CompressionFigures::note() const {
  return fmt::format(
      "gradients as {}: a rank sends {:.3f} instead of {:.3f} GiB for their sums, kernels of the "
      "compression take {:.2f} ms of its step and {:.2f} GiB of its memory; that training may "
      "converge otherwise is not modelled",
      describe(compression), gibibytes(sent), gibibytes(uncompressed), 1e3 * kernels.seconds(),
      gibibytes(buffers));
}

std::optional<CompressionFigures> compression_figures(const RankParameters& parameters,
                                                      const ParallelPlan& plan,
                                                      const SoftwareProfile& software,
                                                      const ComputeRates& rates) {
  const auto compression = compression_of(plan, software);
  ParallelPlan plain = plan;
  plain.compression.reset();
  const Bytes uncompressed = sent_bytes(parameters, plain, software);
  if (!compression || uncompressed == Bytes()) {
    return std::nullopt;
  }
  const CompressionTimes times =
      compression_times(parameters, plan, software, OperatorTimes(rates));
  return CompressionFigures{
      .compression = *compression,
      .sent = sent_bytes(parameters, plan, software),
      .uncompressed = uncompressed,
      .kernels = times.before + times.behind,
      .buffers = compression_buffers(parameters, plan, gradient_bytes(plan, software))};
}

}  // namespace trainyard
