// SPDX-License-Identifier: Apache-2.0
#include "collectives/hccl/hccl_choice.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>
#include <utility>

#include "collectives/algorithms/algorithms.h"
#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

// Names of operations in HCCL_ALGO; nothing for those that cannot be named.
std::string_view hccl_name(Operation operation) {
  switch (operation) {
    case Operation::AllReduce:
      return "allreduce";
    case Operation::AllGather:
      return "allgather";
    case Operation::ReduceScatter:
      return "reducescatter";
    case Operation::AllToAll:
    case Operation::AllToAllV:
      return "alltoall";
    case Operation::Broadcast:
      return "broadcast";
    case Operation::Reduce:
      return "reduce";
    case Operation::Scatter:
      return "scatter";
    case Operation::Barrier:
    case Operation::Gather:
    case Operation::SendReceive:
      return "";
  }
  return "";
}

constexpr std::array kNamedOperations{"allgather", "reducescatter", "allreduce", "broadcast",
                                      "reduce",    "scatter",       "alltoall"};
constexpr std::array kNamedBetween{HcclBetween::Ring,     HcclBetween::HalvingDoubling,
                                   HcclBetween::Nhr,      HcclBetween::Nb,
                                   HcclBetween::Pipeline, HcclBetween::Pairwise};

[[noreturn]] void fail_variable(std::string_view name, const std::string& expected,
                                std::string_view found) {
  throw ConfigError(
      fmt::format("--env {}: expected {}, found {}", name, expected, in_quotes(found)));
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

// "level0:NA;level1:ring"; nothing where level1 is not named.
std::optional<HcclBetween> read_levels(std::string_view levels) {
  std::optional<HcclBetween> between;
  for (const std::string_view level : parts_of(levels, ';')) {
    constexpr std::string_view kPrefix = "level1:";
    if (level == "level0:NA" || level.empty()) {
      continue;
    }
    const std::string_view name = level.substr(std::min(level.size(), kPrefix.size()));
    const auto* const found = std::ranges::find_if(
        kNamedBetween, [&](HcclBetween each) { return to_string(each) == name; });
    if (!level.starts_with(kPrefix) || found == kNamedBetween.end()) {
      fail_variable("HCCL_ALGO",
                    "level0:NA;level1: with ring, H-D_R, NHR, NB, pipeline or pairwise", level);
    }
    between = *found;
  }
  return between;
}

void read_algo(std::string_view value, HcclEnvironment& environment) {
  for (const std::string_view part : parts_of(value, '/')) {
    const std::size_t equals = part.find('=');
    const std::string name(equals == std::string_view::npos ? "" : part.substr(0, equals));
    if (!name.empty() && std::ranges::find(kNamedOperations, name) == kNamedOperations.end()) {
      fail_variable("HCCL_ALGO", fmt::format("one of {}", fmt::join(kNamedOperations, ", ")), name);
    }
    if (const auto between = read_levels(name.empty() ? part : part.substr(equals + 1))) {
      environment.between.emplace_back(name, *between);
    }
  }
}

// Atlas A2 and Atlas alike, but that the latter has no pipeline.
bool has(HcclProduct product, Operation operation, HcclBetween between) {
  const bool exchanges = operation == Operation::AllToAll;
  switch (between) {
    case HcclBetween::Ring:
    case HcclBetween::HalvingDoubling:
    case HcclBetween::Nhr:
    case HcclBetween::Nb:
      return !exchanges;
    case HcclBetween::Pipeline:
      return product == HcclProduct::AtlasA2;
    case HcclBetween::Pairwise:
      return exchanges;
    case HcclBetween::NhrTree:
    case HcclBetween::None:
      return false;
  }
  return false;
}

std::optional<HcclBetween> forced(const HcclMachine& machine, const HcclEnvironment& environment,
                                  Operation operation) {
  std::optional<HcclBetween> found;
  for (const auto& [name, between] : environment.between) {
    if ((name.empty() || name == hccl_name(operation)) &&
        has(machine.product, operation, between)) {
      found = between;
    }
  }
  return found;
}

// Tasks of a pipeline, of which a graph of tasks holds 65,535.
bool pipeline_fits(const HcclShape& shape, Operation operation) {
  constexpr std::uint64_t kMaxTasks = 65'535;
  const std::uint64_t tasks = std::uint64_t{shape.servers} * (5U * (shape.per_server - 1) + 8) + 5;
  return tasks * (operation == Operation::AllReduce ? 2 : 1) <= kMaxTasks;
}

HcclBetween default_between(const HcclMachine& machine, Operation operation, Bytes share) {
  const std::uint32_t servers = machine.shape.servers;
  if (machine.product == HcclProduct::Atlas) {
    return servers >= 8 || std::has_single_bit(servers) ? HcclBetween::HalvingDoubling
                                                        : HcclBetween::Ring;
  }
  const Bytes least = operation == Operation::AllReduce ? mib(1) : kib(32);
  if (machine.shape.per_server > 1 && share >= least && pipeline_fits(machine.shape, operation)) {
    return HcclBetween::Pipeline;
  }
  return servers - 1 <= doubling_rounds(servers) ? HcclBetween::Ring : HcclBetween::Nhr;
}

// Fills in loops, and what is copied: all_reduce on several servers its data into the buffer and
// back, the others and the pipeline what is a rank's own; blocks of all_gather and reduce_scatter
// pass through the buffer whole without it.
void plan_loops(const HcclMachine& machine, const HcclEnvironment& environment, Operation operation,
                Bytes size, HcclPlan& plan) {
  const std::int64_t ranks = machine.shape.ranks();
  const bool is_direct = machine.shape.servers == 1 || plan.way.between == HcclBetween::Pipeline;
  const bool scatters = operation == Operation::ReduceScatter;
  constexpr std::int64_t kPipelineDepth = 3;
  const Bytes share(size.count() / ranks);
  plan.copied = is_direct ? share * 2 : operation == Operation::AllReduce ? size * 2 : size + share;
  if (operation == Operation::AllToAll || operation == Operation::SendReceive) {
    plan.copied = {};
    plan.loop = size;
    return;
  }
  plan.loop = is_direct ? environment.buffer * ranks : environment.buffer;
  if (scatters && plan.way.between == HcclBetween::Pipeline) {
    plan.loop = Bytes(plan.loop.count() / kPipelineDepth);
  }
  plan.loops = static_cast<int>(
      std::max<std::int64_t>(1, (size.count() + plan.loop.count() - 1) / plan.loop.count()));
  plan.loop = std::min(plan.loop, size);
}

// The numbers of ranks in each group of NPUs of a server that are all joined to each other.
std::vector<std::uint32_t> meshes_of(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  std::map<NodeId, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < cluster.gpus.size(); ++rank) {
    rank_of.emplace(cluster.gpus[rank], rank);
  }
  std::vector<std::uint32_t> sizes;
  std::vector<bool> seen(cluster.gpus.size(), false);
  for (std::size_t rank = 0; rank < cluster.gpus.size(); ++rank) {
    if (seen[rank]) {
      continue;
    }
    std::vector<std::size_t> members{rank};
    std::size_t joints = 0;
    seen[rank] = true;
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (const LinkId link : topology.links_from(cluster.gpus[members[i]])) {
        const auto other = rank_of.find(topology.link(link).target);
        if (topology.link(link).spec.kind != LinkKind::Hccs || other == rank_of.end()) {
          continue;
        }
        ++joints;
        if (!seen[other->second]) {
          seen[other->second] = true;
          members.push_back(other->second);
        }
      }
    }
    if (joints != members.size() * (members.size() - 1) ||
        std::ranges::max(members) != rank + members.size() - 1) {
      throw ConfigError(fmt::format(
          "--runtime hccl: expected NPUs of a server joined each to each other, found rank {} with "
          "{} of {} links",
          rank, joints, members.size() * (members.size() - 1)));
    }
    sizes.push_back(static_cast<std::uint32_t>(members.size()));
  }
  return sizes;
}

}  // namespace

bool has_hccl(std::string_view gpu) {
  return gpu.starts_with("Ascend-910A") || gpu.starts_with("Ascend-910B");
}

HcclMachine hccl_machine(const Cluster& cluster) {
  HcclMachine machine;
  const std::string& part =
      cluster.topology.parts()[cluster.topology.node(cluster.gpus.front()).part];
  if (!has_hccl(part)) {
    throw ConfigError(
        fmt::format("--runtime hccl: expected Ascend-910A or Ascend-910B, found {}", part));
  }
  machine.product = part.starts_with("Ascend-910A") ? HcclProduct::Atlas : HcclProduct::AtlasA2;
  const std::vector<std::uint32_t> meshes = meshes_of(cluster);
  machine.is_even = std::ranges::all_of(meshes, [&](auto each) { return each == meshes.front(); });
  machine.shape = machine.is_even
                      ? HcclShape{.servers = static_cast<std::uint32_t>(meshes.size()),
                                  .per_server = meshes.front()}
                      : HcclShape{.servers = static_cast<std::uint32_t>(cluster.gpus.size())};
  return machine;
}

HcclEnvironment HcclEnvironment::parse(std::span<const std::string> assignments) {
  HcclEnvironment environment;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    const std::string name = assignment.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : assignment.substr(equals + 1);
    if (equals == std::string::npos || (name != "HCCL_ALGO" && name != "HCCL_BUFFSIZE")) {
      throw ConfigError(
          fmt::format("--env: expected HCCL_ALGO or HCCL_BUFFSIZE with --runtime hccl, found {}",
                      in_quotes(assignment)));
    }
    if (name == "HCCL_ALGO") {
      read_algo(value, environment);
      continue;
    }
    constexpr std::int64_t kMaxMegabytes = 1 << 20;
    const auto megabytes = parse_number(value, std::int64_t{1}, kMaxMegabytes);
    if (!megabytes) {
      fail_variable(name, "a whole number of MB from 1 to 1048576", value);
    }
    environment.buffer = mib(*megabytes);
  }
  return environment;
}

HcclPlan choose_hccl(const HcclMachine& machine, const HcclEnvironment& environment,
                     Operation operation, Bytes size) {
  HcclPlan plan;
  const HcclShape& shape = machine.shape;
  const Bytes share(size.count() / shape.ranks());
  const bool is_mesh = shape.per_server > 1;
  const bool exchanges = operation == Operation::AllToAll;
  if (exchanges || operation == Operation::AllReduce || operation == Operation::AllGather ||
      operation == Operation::ReduceScatter) {
    plan.way.inside = is_mesh ? HcclInside::Mesh : HcclInside::None;
  } else if (operation != Operation::SendReceive) {
    throw ConfigError(fmt::format(
        "--runtime hccl: expected all_reduce, all_gather, reduce_scatter, alltoall or sendrecv, "
        "found {}; --runtime plain has it",
        to_string(operation)));
  }
  if (operation == Operation::SendReceive) {
    plan.reason = "a message";
  } else if (shape.servers == 1) {
    constexpr Bytes kStar = kib(256);
    const bool is_short = operation == Operation::AllReduce && size <= kStar && is_mesh &&
                          machine.product == HcclProduct::AtlasA2;
    plan.way.inside = is_short ? HcclInside::Star : plan.way.inside;
    plan.reason = is_short ? "at most 256 KiB on one server" : "one server";
  } else if (const auto asked = forced(machine, environment, operation)) {
    plan.way.between = *asked;
    plan.reason = "HCCL_ALGO";
  } else if (!machine.is_even) {
    plan.way.between = exchanges ? HcclBetween::Pairwise : HcclBetween::Ring;
    plan.reason = "servers of unequal numbers";
  } else {
    plan.way.between =
        exchanges ? HcclBetween::Pairwise : default_between(machine, operation, share);
    plan.reason = fmt::format("{} servers, {} for each rank", shape.servers, to_string(share));
  }
  if (exchanges && plan.way.between == HcclBetween::Pipeline) {
    throw ConfigError(
        "--env HCCL_ALGO: expected another algorithm for alltoall, found pipeline, "
        "which is not modelled for it");
  }
  if (exchanges && plan.reason == "HCCL_ALGO") {
    plan.way.inside = HcclInside::None;  // One level of all ranks.
  }
  constexpr Bytes kOneTree = kib(256);
  if (plan.way.between == HcclBetween::Nhr && operation == Operation::AllReduce &&
      size.count() / shape.per_server <= kOneTree.count()) {
    plan.way.between = HcclBetween::NhrTree;
  }
  plan_loops(machine, environment, operation, size, plan);
  return plan;
}

}  // namespace trainyard
