// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/compression_figures.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/rank_parameters.h"
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

std::optional<CompressionFigures> compression_figures(const StepJob& job, int place) {
  const auto compression = compression_of(job.plan, job.software);
  if (!compression) {
    return std::nullopt;
  }
  const RankParameters parameters =
      place_parameters(job.model, pipeline_stages(job.plan, job.model), job.plan, place);
  ParallelPlan plain = job.plan;
  plain.compression.reset();
  const CompressionTimes times =
      compression_times(parameters, job.plan, job.software, OperatorTimes(job.rates));
  return CompressionFigures{
      .compression = *compression,
      .sent = sent_bytes(parameters, job.plan, job.software),
      .uncompressed = sent_bytes(parameters, plain, job.software),
      .kernels = times.before + times.behind,
      .buffers = compression_buffers(parameters, job.plan, gradient_bytes(job.plan, job.software))};
}

}  // namespace trainyard
