// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/call_traffic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "collectives/placement/aggregation.h"
#include "collectives/run/run.h"
#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "parallelism/traffic/gpu_domains.h"

namespace trainyard {
namespace {

// The plain algorithm that uses switches in the same way.
std::optional<Algorithm> switched_algorithm(nccl::Algorithm algorithm) {
  switch (algorithm) {
    case nccl::Algorithm::Nvls:
      return &kNvls;
    case nccl::Algorithm::NvlsTree:
      return &kNvlsTree;
    case nccl::Algorithm::CollNetDirect:
    case nccl::Algorithm::CollNetChain:
      return &kSharp;
    case nccl::Algorithm::Ring:
    case nccl::Algorithm::Tree:
    case nccl::Algorithm::Pat:
    case nccl::Algorithm::AllPairs:
      break;
  }
  return std::nullopt;
}

// Loads are in proportion to the size, but for the rounding of chunks.
Load load_of_byte(const std::vector<LinkUse>& uses, Bytes size) {
  Load load;
  for (const LinkUse& use : uses) {
    load.push_back(
        {.link = use.link,
         .weight = static_cast<double>(use.bytes.count()) / static_cast<double>(size.count())});
  }
  return load;
}

}  // namespace

Load switched_traffic(const Cluster& cluster, Routing& routing, nccl::Algorithm algorithm,
                      Operation operation, RankId root) {
  const std::optional<Algorithm> plain = switched_algorithm(algorithm);
  if (!plain || !supports(*plain, operation) || placement_error(cluster, routing, *plain)) {
    return {};
  }
  constexpr Bytes kSize = gib(1);
  std::vector<LinkUse> uses = link_use_of(cluster, routing,
                                          {.operation = operation,
                                           .algorithm = *plain,
                                           .size = kSize,
                                           .root = root,
                                           .fidelity = Fidelity::Analytical});
  if (*plain != &kSharp) {  // Channels have what goes between nodes.
    std::erase_if(uses, [&](const LinkUse& use) {
      return cluster.topology.link(use.link).spec.kind != LinkKind::NvLink;
    });
  }
  return load_of_byte(uses, kSize);
}

CallTraffic::CallTraffic(const Cluster& cluster, const CallRuntime& runtime)
    : whole_(cluster),
      part_(cluster),
      runtime_(runtime),
      domain_of_rank_(domains_of_gpus(cluster)),
      routing_(cluster.topology, cluster.routing),
      shapes_(cluster, domain_of_rank_, routing_) {}

void CallTraffic::add(std::string_view purpose, const Load& of_byte, double bytes) {
  for (const LinkWeight& one : of_byte) {
    bytes_[one.link.value()][purpose] += bytes * one.weight;
  }
}

void CallTraffic::add_calls(std::string_view purpose, std::vector<int> ranks,
                            const RepeatedCalls& calls) {
  if (ranks.size() < 2 || calls.empty()) {
    return;
  }
  std::ranges::sort(ranks);
  keep_ranks(whole_.gpus, ranks, part_);
  if (runtime_.nccl != nullptr) {
    add_nccl(purpose, ranks, calls);
  } else {
    add_plain(purpose, calls);
  }
}

void CallTraffic::add_message(std::string_view purpose, int from, int to, double bytes) {
  const auto gpu = [&](int rank) { return whole_.gpus[as_index(rank)]; };
  if (!routing_.route(gpu(from), gpu(to), 0, path_)) {
    throw_unreachable(whole_.topology, gpu(from), gpu(to));
  }
  for (const LinkId link : path_) {
    bytes_[link.value()][purpose] += bytes;
  }
}

std::vector<LinkTraffic> CallTraffic::take() const {
  std::vector<LinkTraffic> all;
  for (const auto& [link, parts] : bytes_) {
    LinkTraffic traffic{.link = LinkId(link), .parts = {}};
    for (const auto& [purpose, bytes] : parts) {
      traffic.parts.push_back(
          {.purpose = std::string(purpose), .bytes = Bytes(std::llround(bytes))});
    }
    all.push_back(std::move(traffic));
  }
  return all;
}

// All sizes of an operation at once: bytes of plain algorithms are in proportion to them.
void CallTraffic::add_plain(std::string_view purpose, const RepeatedCalls& calls) {
  std::map<Operation, double> bytes;
  for (const auto& [call, times] : calls) {
    const auto of_call = static_cast<double>(call.size.count()) * times;
    // An all_reduce goes round the ring twice, an all_gather once, as a reduce_scatter does.
    if (call.operation == Operation::AllReduce) {
      bytes[Operation::AllGather] += 2.0 * of_call;
    } else if (call.operation == Operation::ReduceScatter) {
      bytes[Operation::AllGather] += of_call;
    } else if (call.operation != Operation::Barrier) {
      bytes[call.operation] += of_call;
    }
  }
  for (const auto& [operation, of_operation] : bytes) {
    add_run(purpose, operation, of_operation);
  }
}

void CallTraffic::add_run(std::string_view purpose, Operation operation, double bytes) {
  if (bytes < 1.0) {
    return;
  }
  constexpr std::int64_t kPart = 65'536;  // Cut evenly by any number of channels that is usual.
  const Bytes size = Bytes(kPart) * static_cast<std::int64_t>(part_.gpus.size());
  const CollectiveJob job{.operation = operation,
                          .algorithm = default_algorithm(operation),
                          .size = size,
                          .fidelity = Fidelity::Analytical};
  add(purpose, load_of_byte(link_use_of(part_, routing_, job), size), bytes);
}

// Groups of equal shape have equal communicators.
const nccl::Communicator& CallTraffic::communicator_of(const std::vector<int>& ranks) {
  std::vector<int> shape = shapes_.shape(ranks);
  const auto known = communicators_.find(shape);
  if (known != communicators_.end()) {
    return known->second;
  }
  nccl::Communicator made = nccl::make_communicator(nccl::job_nodes(part_, nccl::Domains::Joined),
                                                    {.version = runtime_.version}, &searches_)
                                .communicator;
  return communicators_.emplace(std::move(shape), std::move(made)).first->second;
}

void CallTraffic::add_nccl(std::string_view purpose, const std::vector<int>& ranks,
                           const RepeatedCalls& calls) {
  const nccl::Environment environment;
  const nccl::Communicator& communicator = communicator_of(ranks);
  nccl::Timer timer(part_, communicator, *runtime_.nccl, environment, {}, {}, &routing_);
  std::map<std::pair<nccl::Algorithm, Operation>, Load> switched;
  for (const auto& [call, times] : calls) {
    const Bytes size = aligned_size(call.operation, call.size, communicator.ranks);
    if (size == Bytes(0)) {
      continue;
    }
    const std::optional<nccl::Function> function = nccl::function_of(call.operation);
    if (!function) {
      add(purpose, timer.traffic(call.operation, size), times);
      continue;
    }
    const nccl::CallPlan plan =
        nccl::plan_call(communicator, environment, *function,
                        nccl::call_bytes(*function, size, communicator.ranks));
    add(purpose, timer.traffic(plan), times);
    const auto [of_byte, is_new] = switched.try_emplace({plan.algorithm, call.operation});
    if (is_new) {
      of_byte->second =
          switched_traffic(part_, routing_, plan.algorithm, call.operation, RankId(0));
    }
    add(purpose, of_byte->second, times * static_cast<double>(size.count()));
  }
}

}  // namespace trainyard
