// SPDX-License-Identifier: Apache-2.0
#include "calibration/doctor/doctor_limits.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainyard {
namespace {

constexpr double kSlower = 1.1;

void slow(SimTime& time, double factor) {
  time = SimTime(std::llround(static_cast<double>(time.picoseconds()) * factor));
}

void slow(nccl::ProtocolTimes& times, double factor) {
  slow(times.ll, factor);
  slow(times.ll128, factor);
  slow(times.simple, factor);
}

void slow(Bandwidth& rate, double factor) {
  rate = rate.scaled(1.0 / factor);
}

void slow_launch(nccl::LaunchProfile& launch, double factor) {
  for (SimTime* const time : {&launch.process_per_gpu, &launch.shared_process, &launch.per_gpu,
                              &launch.per_channel, &launch.per_send, &launch.together}) {
    slow(*time, factor);
  }
}

void slow_latency(nccl::Profile& profile, double factor) {
  for (nccl::ProtocolTimes* const times :
       {&profile.ring_base, &profile.tree_base, &profile.tree_network_extra, &profile.pcie,
        &profile.host}) {
    slow(*times, factor);
  }
  for (SimTime* const time : {&profile.per_channel, &profile.pat_base, &profile.nvls_tree_sync,
                              &profile.collnet_extra, &profile.nvswitch, &profile.staged_ll_pass}) {
    slow(*time, factor);
  }
  for (auto& [name, gpu] : profile.gpus) {
    slow(gpu.simple_cost, factor);
    slow(gpu.ll128_cost, factor);
    slow(gpu.ll_cost, factor);
    slow(gpu.ll_busy, factor);
    slow(gpu.link_latency, factor);
    if (gpu.nvls) {
      slow(gpu.nvls->head_cost, factor);
      slow(gpu.nvls->symmetric_base, factor);
    }
  }
  for (auto& [name, network] : profile.networks) {
    slow(network.latency, factor);
    slow(network.host_cost, factor);
    slow(network.long_cost, factor);
    if (network.staged_latency) {
      slow(*network.staged_latency, factor);
    }
  }
}

}  // namespace

std::string_view to_string(TimeLimit limit) {
  static constexpr std::array<std::string_view, kTimeLimits.size()> kNames{
      "launch", "latency", "thread blocks", "network", "pcie", "links"};
  return kNames.at(static_cast<std::size_t>(limit));
}

nccl::Profile slowed(const nccl::Profile& profile, TimeLimit limit, double factor) {
  nccl::Profile slower = profile;
  switch (limit) {
    case TimeLimit::Launch:
      slow_launch(slower.launch, factor);
      break;
    case TimeLimit::Latency:
      slow_latency(slower, factor);
      break;
    case TimeLimit::Blocks:
      for (auto& [name, gpu] : slower.gpus) {
        slow(gpu.simple_rate, factor);
        slow(gpu.ll128_rate, factor);
        slow(gpu.ll_pass, factor);
      }
      break;
    case TimeLimit::Network:
      for (auto& [name, network] : slower.networks) {
        network.rate /= factor;
        slow(network.connection_rate, factor);
        slow(network.staged_rate, factor);
      }
      break;
    case TimeLimit::Pcie:
      for (double* const share : {&slower.pcie_rate, &slower.staging_rate}) {
        *share /= factor;
      }
      break;
    case TimeLimit::Links:
      break;
  }
  return slower;
}

std::vector<LimitShare> largest_limits(NcclSession& session, const nccl::Profile& profile) {
  session.use(profile);
  std::vector<double> plain;
  for (std::size_t row = 0; row < session.rows(); ++row) {
    plain.push_back(session.time(row).microseconds());
  }
  std::vector<double> left(plain.size(), 1.0);
  std::vector<LimitShare> max(plain.size());
  for (const TimeLimit limit : kTimeLimits) {
    session.use(slowed(profile, limit, kSlower));
    for (std::size_t row = 0; row < plain.size(); ++row) {
      const double share =
          limit == TimeLimit::Links
              ? std::max(0.0, left[row])
              : std::clamp(
                    std::log(session.time(row).microseconds() / plain[row]) / std::log(kSlower),
                    0.0, 1.0);
      left[row] -= share;
      if (share > max[row].share) {
        max[row] = {.limit = limit, .share = share};
      }
    }
  }
  session.use(profile);
  return max;
}

}  // namespace trainyard
