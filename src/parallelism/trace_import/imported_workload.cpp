// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/imported_workload.h"

#include <spdlog/fmt/fmt.h>

#include "parallelism/trace_import/chakra_trace.h"
#include "parallelism/trace_import/goal_schedule.h"
#include "parallelism/trace_import/kineto_trace.h"
#include "parallelism/trace_import/simai_workload.h"
#include "sim/check.h"

namespace trainyard {

std::string_view imported_part_name(ImportedFormat format, StepPart part) {
  const bool has_layers = format == ImportedFormat::SimAi;
  const bool is_chakra = format == ImportedFormat::Chakra;
  const bool is_recorded = format == ImportedFormat::Kineto || is_chakra;
  switch (part) {
    case StepPart::Linear:
      return "compute";
    case StepPart::Bubble:
      return "wait";
    case StepPart::Host:
      return is_recorded ? "host" : "";
    case StepPart::Pipeline:
      return "message";
    case StepPart::Data:
      return has_layers ? "data" : is_recorded ? "collective" : "";
    case StepPart::Recompute:
    case StepPart::Tensor:
    case StepPart::Expert:
      return has_layers ? to_string(part) : "";
    case StepPart::MemoryBound:
      return is_chakra ? "memory" : "";
    case StepPart::Optimizer:
      return has_layers ? "update" : "";
    case StepPart::Attention:
    case StepPart::Casts:
    case StepPart::Head:
    case StepPart::Context:
    case StepPart::Offload:
    case StepPart::Jitter:
    case StepPart::Fixed:
      break;
  }
  return "";
}

ImportedWorkload read_imported(const std::vector<ImportedFile>& files, ImportedFormat format,
                               const ImportedTarget& target) {
  CHECK(!files.empty(), "a workload has a file");
  ImportedWorkload workload = [&] {
    switch (format) {
      case ImportedFormat::Goal:
        break;
      case ImportedFormat::SimAi:
        return read_simai(files.front(), target);
      case ImportedFormat::Kineto:
        return read_kineto(files, target);
      case ImportedFormat::Chakra:
        return read_chakra(files, target);
    }
    return read_goal(files.front(), target.gpus());
  }();
  check(workload.graph, files.size() == 1
                            ? files.front().name
                            : fmt::format("{} and {} more", files.front().name, files.size() - 1));
  return workload;
}

}  // namespace trainyard
