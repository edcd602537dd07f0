// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::array kSchedules{
    &kOneForwardOneBackward,
    &kGPipe,
    &kInterleaved,
    &kZeroBubbleH1,
    &kZeroBubbleH2,
    &kZeroBubble1p,
    &kZeroBubble2p,
    &kZeroBubbleV,
    &kDualPipe,
    &kVHalf,
    &kVMin,
};

[[noreturn]] void refuse(const PipelineShape& shape, std::string_view error) {
  throw ConfigError(fmt::format("schedule {}: {}", shape.schedule->name, error));
}

}  // namespace

std::span<const PipelineSchedule* const> pipeline_schedules() {
  return kSchedules;
}

std::vector<std::string_view> pipeline_schedule_names() {
  std::vector<std::string_view> names(kSchedules.size());
  std::transform(kSchedules.begin(), kSchedules.end(), names.begin(),
                 [](const PipelineSchedule* schedule) { return schedule->name; });
  return names;
}

void check(const PipelineShape& shape) {
  CHECK(shape.ranks > 0 && shape.micro_batches > 0 && shape.chunks > 0, "shapes are positive");
  const PipelineSchedule& schedule = *shape.schedule;
  const std::string error = schedule.error == nullptr ? "" : schedule.error(shape);
  if (!error.empty()) {
    refuse(shape, error);
  }
  if (schedule.chunks && *schedule.chunks != shape.chunks) {
    refuse(shape, fmt::format("expected {} a rank, found {}",
                              *schedule.chunks == 1 ? "one chunk" : "two chunks", shape.chunks));
  }
}

}  // namespace trainyard
