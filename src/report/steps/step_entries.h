// SPDX-License-Identifier: Apache-2.0
// Entries that the results of steps have in common, whoever made the workload: the same keys, the
// same words.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/fit/time_band.h"
#include "parallelism/graph/graph_jitter.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/run/step_run.h"
#include "report/formats/document.h"

namespace trainyard {

// The machine and software of a run. Texts that are empty are in no format.
struct StepSetup {
  std::string cluster;
  std::string workload;
  int gpus = 0;
  std::string kind = {};  // "recommender", "convolutional"
  std::string model = {};
  std::string software = {};
  std::string precision = {};
  std::string runtime = {};
  std::string fidelity = {};  // Empty: NCCL's event model alone.
  bool shares_network = false;
  std::optional<SlowRank> slow_rank = {};
  ComputeJitter jitter = {};

  [[nodiscard]] const char* traffic() const { return shares_network ? "shared" : "alone"; }
};
// Adds the first lines of the heading, and the keys: CSV has cluster, workload and GPUs alone, JSON
// has all.
void add_setup(const StepSetup& setup, Document& document);

// The time of a step; CSV and JSON have the ends of its interval too, empty where it has none.
void add_step_time(SimTime time, const std::optional<TimeInterval>& interval, TimeUnit unit,
                   Document& document);

// The slow rank and the jitter, in JSON; nothing where there is none.
void add_noise(const StepSetup& setup, Document& document);

// "tokens": how many a second, and how many of them for each GPU.
void add_rate(const std::string& what, double rate, int gpus, Document& document);

// A GPU's operations for the model, by a convention of counting them.
struct ModelFlops {
  double of_gpu = 0.0;  // FLOP/s.
  double mfu = 0.0;     // The share of the peak.
  double peak = 0.0;    // FLOP/s.
  std::string_view convention;
};
void add_flops(const ModelFlops& flops, Document& document);

// The keys that say what `mfu` is.
void add_convention(const ModelFlops& flops, Document& document);

// The memory of a GPU at its peak; `remark` follows it in the text.
void add_memory(const MemoryUse& memory, Bytes size, bool fits, const std::string& remark,
                Document& document);
// The classes of the peak, in JSON.
void add_memory_classes(const MemoryUse& memory, Document& document);

// The parts of a step by the names that its kind of workload gives them. A part without a name has
// no time.
[[nodiscard]] std::vector<NamedTime> named_parts(
    const StepParts& parts, const std::function<std::string_view(StepPart)>& name_of);

// Entries of a workload that has no closed forms. The method and what it takes, in JSON.
void add_graph_method(const StepSetup& setup, Document& document);
// The rate of "samples" or the like, the FLOP/s and the memory.
void add_lowered_figures(const std::string& what, double rate, const ModelFlops& flops,
                         const LoweredRun& run, Document& document);
void add_lowered_parts(const StepTime& step,
                       const std::function<std::string_view(StepPart)>& name_of,
                       Document& document);

// Adds what gradient compression saves and costs, in JSON alone.
void add_compression(const std::optional<CompressionFigures>& figures, Document& document);

}  // namespace trainyard
