// SPDX-License-Identifier: Apache-2.0
#include "calibration/predict/nccl_prediction.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <optional>
#include <string>

#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "nccl/tuning/tuner_csv.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/text_file.h"

namespace trainyard {
namespace {

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
    options.graph_text =
        read_whole_file(*item.graph_file, item.graph_file->string(), kMaxTextBytes);
    options.graph_name = item.graph_file->string();
  }
  return options;
}

}  // namespace

struct NcclSession::State {
  State(const ValidationCase& item, const Cluster& cluster, const nccl::Profile& profile,
        Operation operation_in, std::span<const Bytes> sizes_in)
      : options(init_options(item)),
        communicator(
            nccl::make_communicator(nccl::job_nodes(cluster, options.environment.mnnvl_enable == 0
                                                                 ? nccl::Domains::Apart
                                                                 : nccl::Domains::Joined),
                                    options)
                .communicator),
        timer(cluster, communicator, profile, options.environment,
              {.gpus_per_process = item.gpus_per_process, .cuda_graph = item.cuda_graph}),
        operation(operation_in),
        symmetric(item.symmetric),
        sizes(sizes_in.begin(), sizes_in.end()) {}

  nccl::InitOptions options;
  nccl::Communicator communicator;
  nccl::Timer timer;
  Operation operation;
  bool symmetric;
  std::vector<Bytes> sizes;
  std::vector<nccl::CallPlan> plans;  // None for symmetric memory, or sends and receives.
};

NcclSession::NcclSession(const ValidationCase& item, const Cluster& cluster,
                         const nccl::Profile& profile, Operation operation,
                         std::span<const Bytes> sizes) {
  if (item.symmetric && operation != Operation::AllReduce) {
    throw ConfigError("symmetric memory is modelled for all_reduce only");
  }
  state_ = std::make_unique<State>(item, cluster, profile, operation, sizes);
  const std::optional<nccl::Function> function = nccl::function_of(operation);
  if (item.symmetric || !function) {
    return;
  }
  std::optional<nccl::TunerTable> tuner;
  if (item.tuner_csv) {
    tuner = nccl::TunerTable::load(*item.tuner_csv);
  }
  nccl::CallOptions call;
  call.tuner = tuner ? &*tuner : nullptr;
  for (const Bytes size : sizes) {
    const Bytes bytes = nccl::call_bytes(*function, size, state_->communicator.ranks);
    state_->plans.push_back(
        nccl::plan_call(state_->communicator, state_->options.environment, *function, bytes, call));
  }
}

NcclSession::~NcclSession() = default;

void NcclSession::use(const nccl::Profile& profile) {
  state_->timer.use(profile);
}

std::size_t NcclSession::rows() const {
  return state_->sizes.size();
}

nccl::MachineKind NcclSession::machine() const {
  return state_->timer.machine();
}

const nccl::Communicator& NcclSession::communicator() const {
  return state_->communicator;
}

SimTime NcclSession::time(std::size_t row) {
  if (state_->symmetric) {
    return state_->timer.symmetric(state_->sizes.at(row)).time;
  }
  if (state_->plans.empty()) {
    return state_->timer.point_to_point(state_->operation, state_->sizes.at(row)).time;
  }
  return state_->timer.collective(state_->plans.at(row)).time;
}

std::string NcclSession::how(std::size_t row) const {
  if (state_->symmetric) {
    return "symmetric memory";
  }
  if (state_->plans.empty()) {
    return "sends and receives";
  }
  const nccl::CallPlan& plan = state_->plans.at(row);
  return fmt::format("{} {}, {} channels", to_string(plan.algorithm), to_string(plan.protocol),
                     plan.channels);
}

Predictor nccl_predictor(const nccl::Profile& profile) {
  return [&](const ValidationCase& item, const Cluster& cluster, Operation operation,
             std::span<const Bytes> sizes) {
    NcclSession session(item, cluster, profile, operation, sizes);
    const nccl::MachineKind machine = session.machine();
    std::vector<PredictedTime> times;
    for (std::size_t row = 0; row < session.rows(); ++row) {
      times.push_back({.time = session.time(row), .how = session.how(row), .machine = machine});
    }
    return times;
  };
}

}  // namespace trainyard
