// SPDX-License-Identifier: Apache-2.0
#include "calibration/nccl_prediction.h"

#include <spdlog/fmt/fmt.h>

#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "nccl/choice.h"
#include "nccl/init.h"
#include "nccl/job_nodes.h"
#include "nccl/timing.h"
#include "nccl/tuner_csv.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw ConfigError(file.string() + ": cannot be read");
  }
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

nccl::InitOptions init_options(const ValidationCase& item) {
  nccl::InitOptions options;
  std::map<std::string, std::string> variables(item.environment.begin(), item.environment.end());
  options.environment = nccl::Environment::parse(variables);
  if (item.nccl_version) {
    const auto version = nccl::parse_version(*item.nccl_version);
    CHECK(version.has_value(), "the reader of cases checks the version");
    options.version = version->known;
  }
  if (item.graph_file) {
    options.graph_text = text_of(*item.graph_file);
    options.graph_name = item.graph_file->string();
  }
  return options;
}

}  // namespace

std::vector<PredictedTime> NcclPredictor::operator()(const ValidationCase& item,
                                                     const Cluster& cluster, Operation operation,
                                                     std::span<const Bytes> sizes) const {
  if (item.symmetric && operation != Operation::AllReduce) {
    throw ConfigError("symmetric memory is modelled for all_reduce only");
  }
  const nccl::InitOptions options = init_options(item);
  const nccl::JobNodes nodes = nccl::job_nodes(
      cluster, catalogue_,
      options.environment.mnnvl_enable == 0 ? nccl::Domains::Apart : nccl::Domains::Joined);
  const nccl::Communicator communicator = nccl::make_communicator(nodes, options).communicator;
  nccl::LaunchMode mode;
  mode.gpus_per_process = item.gpus_per_process;
  mode.cuda_graph = item.cuda_graph;
  nccl::Timer timer(cluster, communicator, profile_, options.environment, mode);
  std::optional<nccl::TunerTable> tuner;
  if (item.tuner_csv) {
    tuner = nccl::TunerTable::load(*item.tuner_csv);
  }
  nccl::CallOptions call;
  call.tuner = tuner ? &*tuner : nullptr;
  const std::optional<nccl::Function> function = nccl::function_of(operation);
  std::vector<PredictedTime> times;
  for (const Bytes size : sizes) {
    if (item.symmetric) {
      times.push_back({.time = timer.symmetric(size).time, .how = "symmetric memory"});
      continue;
    }
    if (!function) {
      times.push_back(
          {.time = timer.point_to_point(operation, size).time, .how = "sends and receives"});
      continue;
    }
    const Bytes bytes = nccl::call_bytes(*function, size, communicator.ranks);
    const nccl::CallPlan plan =
        nccl::plan_call(communicator, options.environment, *function, bytes, call);
    times.push_back({.time = timer.collective(plan).time,
                     .how = fmt::format("{} {}, {} channels", to_string(plan.algorithm),
                                        to_string(plan.protocol), plan.channels)});
  }
  return times;
}

}  // namespace trainyard
