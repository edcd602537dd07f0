// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/choice.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nccl/tuning/chunking.h"
#include "nccl/tuning/rccl_tuning.h"
#include "nccl/tuning/tuner_csv.h"
#include "nccl/tuning/tuning.h"
#include "nccl/types/release.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 640;  // NCCL_MAX_NTHREADS

std::string name_of(Algorithm algorithm, Protocol protocol) {
  return std::string(to_string(algorithm)) + " " + std::string(to_string(protocol));
}

// Returns whether data type and operation rule an algorithm out.
bool excluded(Function function, Algorithm algorithm, const CallOptions& options) {
  return (uses_nvls(algorithm) && !options.nvls_reducible && function != Function::AllGather) ||
         (algorithm == Algorithm::Pat && !options.pat_reducible &&
          function == Function::ReduceScatter);
}

std::vector<CostRow> cost_table(const Communicator& communicator, Function function, Bytes total,
                                const CallOptions& options) {
  std::vector<CostRow> rows;
  for (const Algorithm algorithm : kAlgorithms) {
    for (const Protocol protocol : kProtocols) {
      CostRow row{.algorithm = algorithm, .protocol = protocol};
      const std::optional<float> time = excluded(function, algorithm, options)
                                            ? std::nullopt
                                            : algorithm_time(communicator, function, algorithm,
                                                             protocol, total, options.operations);
      if (time) {
        const bool imprecise =
            options.fp8 && algorithm == Algorithm::Ring && communicator.ranks > 8;
        row.time_us = static_cast<double>(*time) * (imprecise ? 1024.0 : 1.0);
      }
      rows.push_back(row);
    }
  }
  return rows;
}

// The cheapest, of equal ones the first; null where nothing is available. `without` is left out.
const CostRow* cheapest(const std::vector<CostRow>& rows, const CostRow* without = nullptr) {
  const CostRow* best = nullptr;
  for (const CostRow& row : rows) {
    if (&row != without && row.time_us && (best == nullptr || *row.time_us < *best->time_us)) {
      best = &row;
    }
  }
  return best;
}

const CostRow& row_of(const std::vector<CostRow>& rows, Algorithm algorithm, Protocol protocol) {
  return rows[static_cast<std::size_t>(algorithm) * kProtocols.size() +
              static_cast<std::size_t>(protocol)];
}

[[noreturn]] void fail_nothing_left(const Environment& environment, Function function) {
  const std::string set = environment.selection.text();
  throw ConfigError((set.empty() ? std::string("NCCL") : set) +
                    ": no algorithm and protocol left for " + std::string(to_string(function)) +
                    (set.empty() ? " on this communicator" : ""));
}

std::string reason_of(const std::vector<CostRow>& rows, const CostRow& best,
                      const Environment& environment) {
  const CostRow* const second = cheapest(rows, &best);
  const std::string set = environment.selection.text();
  std::string reason = "the only one available";
  if (second != nullptr) {
    reason = fmt::format("least estimate, {:.1f} us; then {} with {:.1f} us", *best.time_us,
                         name_of(second->algorithm, second->protocol), *second->time_us);
  }
  return set.empty() ? reason : reason + " (" + set + ")";
}

// CollNetDirect sheds channels in stages, with fewer threads before each (topoGetAlgoInfo).
void shed_collnet_direct(std::int64_t bytes, std::int64_t heads, std::int64_t threshold,
                         std::int64_t threads, int& channels) {
  for (const int floor : {16, 8, 4, 2, 1}) {
    while (bytes < channels * threads * heads * threshold && channels > floor) {
      if (channels == floor + floor / 2) {
        threshold /= 2;
      }
      --channels;
    }
    if (bytes >= channels * threads * heads * threshold) {
      return;
    }
  }
}

void set_channels_and_threads(const Communicator& communicator, Bytes total, CallPlan& plan) {
  const auto algorithm = static_cast<std::size_t>(plan.algorithm);
  const auto protocol = static_cast<std::size_t>(plan.protocol);
  const std::int64_t bytes = total.count();
  const std::int64_t threshold = communicator.tuning.thread_thresholds[algorithm][protocol];
  std::int64_t threads = communicator.tuning.max_threads[algorithm][protocol];
  int channels = communicator.channels;
  const int fixed = release(communicator.version, communicator.min_compute_capability).threads;
  switch (plan.algorithm) {
    case Algorithm::Nvls:
      channels = communicator.nodes > 1
                     ? std::min(communicator.nvls_channels, communicator.channels)
                     : communicator.nvls_channels;
      break;
    case Algorithm::NvlsTree:
      channels = communicator.nvls_channels;
      break;
    case Algorithm::CollNetDirect:
      shed_collnet_direct(bytes, std::max(communicator.nvls_heads, 1), threshold, threads,
                          channels);
      break;
    case Algorithm::AllPairs:
      return;  // They are known.
    case Algorithm::Tree:
    case Algorithm::Ring:
    case Algorithm::CollNetChain:
    case Algorithm::Pat:
      while (bytes < channels * threads * threshold && channels >= 2) {
        --channels;
      }
      while (fixed == 0 && threads > 0 && bytes < channels * threads * threshold &&
             threads % 128 == 0) {
        threads /= 2;
      }
  }
  if (fixed > 0) {  // No thread is shed, and none added.
    plan.channels = channels;
    plan.threads = fixed;
    return;
  }
  if (plan.algorithm == Algorithm::Ring && plan.protocol == Protocol::Simple) {
    threads += kWarp;  // One warp more that posts.
  }
  if (plan.algorithm == Algorithm::Tree || plan.algorithm == Algorithm::Pat) {
    threads = kMaxThreads;
  }
  plan.channels = channels;
  plan.threads = static_cast<int>(std::max(threads, std::int64_t{3 * kWarp}));
}

void set_parts(const Communicator& communicator, const Environment& environment, CallPlan& plan) {
  const auto chunk = [&](Bytes bytes, int channels) {
    return chunk_bytes(plan.function, plan.algorithm, plan.protocol, bytes, channels, communicator,
                       environment);
  };
  // All channels share one loop over the whole payload.
  if (uses_collnet(plan.algorithm) || plan.algorithm == Algorithm::AllPairs ||
      (plan.algorithm == Algorithm::Nvls && communicator.nodes > 1)) {
    plan.parts = {{.channels = plan.channels,
                   .bytes = plan.bytes,
                   .chunk = chunk(plan.bytes, plan.channels)}};
    return;
  }
  plan.parts =
      split_over_channels(plan.function, plan.protocol, plan.bytes, plan.channels, communicator);
  plan.channels = 0;
  for (ChannelPart& part : plan.parts) {
    part.chunk = chunk(part.bytes, 1);
    plan.channels += part.channels;
  }
}

// Returns the row of the tuner's table, if one of its rows fits and is possible.
const TunerRow* override_choice(const Communicator& communicator, const CallOptions& options,
                                Bytes total, CallPlan& plan) {
  const TunerRow* const row =
      options.tuner == nullptr
          ? nullptr
          : options.tuner->find(communicator, plan.function, total, options.operations);
  if (row == nullptr) {
    return nullptr;
  }
  const CostRow& cost = row_of(plan.costs, row->algorithm, row->protocol);
  if (!cost.time_us) {
    plan.reason += "; " + row->place + " wants " + name_of(row->algorithm, row->protocol) +
                   ", which is not available";
    return nullptr;
  }
  plan.algorithm = row->algorithm;
  plan.protocol = row->protocol;
  plan.time_us = *cost.time_us;
  plan.reason = row->place;
  return row;
}

// Puts what RCCL does in any case in place of what its table of costs says.
void override_by_rccl(const Communicator& communicator, const Environment& environment,
                      CallPlan& plan) {
  if (const std::optional<AllPairsCall> call =
          rccl_all_pairs(communicator, environment, plan.function, plan.bytes)) {
    plan.algorithm = Algorithm::AllPairs;
    plan.protocol = call->protocol;
    plan.channels = call->channels;
    plan.threads = release(communicator.version, communicator.min_compute_capability).threads;
    plan.time_us = 0.0;
    plan.reason = call->reason;
    return;
  }
  const std::optional<Protocol> protocol =
      rccl_protocol(communicator, environment, plan.function, plan.bytes);
  if (protocol && *protocol != plan.protocol) {
    plan.reason = fmt::format("{} is what RCCL takes for messages of this size; {}",
                              to_string(*protocol), plan.reason);
    plan.protocol = *protocol;
  }
}

}  // namespace

Bytes total_bytes(Function function, Bytes bytes, int ranks) {
  return gathers_or_scatters(function) ? bytes * ranks : bytes;
}

Bytes call_bytes(Function function, Bytes size, int ranks) {
  return gathers_or_scatters(function) ? Bytes(size.count() / ranks) : size;
}

CallPlan plan_call(const Communicator& communicator, const Environment& environment,
                   Function function, Bytes bytes, const CallOptions& options) {
  CHECK(bytes >= Bytes(0) && options.operations >= 1, "a call of less than nothing");
  CallPlan plan;
  plan.function = function;
  plan.bytes = bytes;
  const Bytes total = total_bytes(function, bytes, communicator.ranks);
  plan.costs = cost_table(communicator, function, total, options);
  const CostRow* const best = cheapest(plan.costs);
  if (best == nullptr) {
    fail_nothing_left(environment, function);
  }
  plan.algorithm = best->algorithm;
  plan.protocol = best->protocol;
  plan.time_us = *best->time_us;
  plan.reason = reason_of(plan.costs, *best, environment);
  if (release(communicator.version, communicator.min_compute_capability).decides_by_size) {
    override_by_rccl(communicator, environment, plan);
  }
  const TunerRow* const row = override_choice(communicator, options, total, plan);
  const ChunkShape shape = chunk_shape(function, plan.algorithm, plan.protocol);
  plan.chunk_steps = shape.steps;
  plan.slices = shape.slices;
  plan.step = step_bytes(plan.algorithm, plan.protocol, communicator, environment);
  set_channels_and_threads(communicator, total, plan);
  if (row != nullptr && row->channels) {
    plan.channels = std::min(*row->channels, uses_nvls(plan.algorithm) ? communicator.nvls_channels
                                                                       : communicator.channels);
  }
  if (bytes == Bytes(0)) {
    plan.channels = 0;
    return plan;
  }
  set_parts(communicator, environment, plan);
  return plan;
}

}  // namespace trainyard::nccl
