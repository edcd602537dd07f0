// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/lowered_rank.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>

namespace trainyard {
namespace {

std::string_view stream_name(RankGroupKind kind) {
  switch (kind) {
    case RankGroupKind::Tensor:
      return "tensor";
    case RankGroupKind::Context:
      return "context";
    case RankGroupKind::Expert:
    case RankGroupKind::ExpertTensor:
      return "expert";
    case RankGroupKind::Replica:
      return "replicas";
    case RankGroupKind::Pipeline:
    case RankGroupKind::Gradient:
    case RankGroupKind::Shard:
    case RankGroupKind::ExpertGradient:
    case RankGroupKind::Ends:
      break;
  }
  return "data";
}

std::string_view group_name(RankGroupKind kind) {
  switch (kind) {
    case RankGroupKind::Tensor:
      return "tensor";
    case RankGroupKind::Context:
      return "context";
    case RankGroupKind::Pipeline:
      return "pipeline";
    case RankGroupKind::Gradient:
      return "gradient";
    case RankGroupKind::Shard:
      return "shard";
    case RankGroupKind::Replica:
      return "replica";
    case RankGroupKind::Expert:
      return "expert";
    case RankGroupKind::ExpertTensor:
      return "expert tensor";
    case RankGroupKind::ExpertGradient:
      return "expert gradient";
    case RankGroupKind::Ends:
      return "ends";
  }
  return "";
}

}  // namespace

// Does what expert_domains() does for the first rank of the group, for any of them.
std::vector<int> PlanCommunicators::part_of(const std::vector<int>& group, int rank,
                                            ExpertPath path) const {
  if (path == ExpertPath::Group) {
    return group;
  }
  const ExpertDomains places = expert_domains(group, domain_of_rank_);
  if (places.rail.size() == group.size()) {  // Each is a domain of its own.
    return path == ExpertPath::Rail ? group : std::vector<int>{rank};
  }
  const auto domain_of = [&](int of) { return domain_of_rank_[static_cast<std::size_t>(of)]; };
  std::map<int, std::vector<int>> domains;
  std::vector<int> order;  // Order of the domains, as they come.
  for (const int each : group) {
    std::vector<int>& members = domains[domain_of(each)];
    if (members.empty()) {
      order.push_back(domain_of(each));
    }
    members.push_back(each);
  }
  const std::vector<int>& own = domains[domain_of(rank)];
  if (path == ExpertPath::Domain) {
    return own;
  }
  const auto place =
      static_cast<std::size_t>(std::find(own.begin(), own.end(), rank) - own.begin());
  std::vector<int> rail;
  for (const int domain : order) {
    rail.push_back(domains[domain][place]);
  }
  return rail;
}

CommunicatorId PlanCommunicators::of(RankGroupKind kind, int rank, ExpertPath path) {
  const auto known = of_rank_.find({kind, path, rank});
  if (known != of_rank_.end()) {
    return known->second;
  }
  std::vector<int> ranks = part_of(group_of(plan_, kind, rank), rank, path);
  auto found = of_ranks_.find({kind, path, ranks});
  if (found == of_ranks_.end()) {
    auto widest = widest_.find(kind);
    if (widest == widest_.end()) {
      widest = widest_.emplace(kind, widest_group(plan_, kind, server_of_rank_)).first;
    }
    std::vector<int> timed_as = part_of(widest->second, widest->second.front(), path);
    if (timed_as.size() != ranks.size()) {
      timed_as.clear();  // Domains of other sizes.
    }
    const CommunicatorId id = graph_.add_communicator(
        fmt::format("{} {}", group_name(kind), ranks.front()), ranks, std::move(timed_as));
    found = of_ranks_.emplace(std::make_tuple(kind, path, std::move(ranks)), id).first;
  }
  of_rank_.emplace(std::make_tuple(kind, path, rank), found->second);
  return found->second;
}

CommunicatorId PlanCommunicators::all() {
  if (!all_) {
    std::vector<int> ranks(static_cast<std::size_t>(plan_.ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
    all_ = graph_.add_communicator("all", std::move(ranks));
  }
  return *all_;
}

StreamId LoweredRank::stream(const std::string& name) {
  auto found = streams_.find(name);
  if (found == streams_.end()) {
    found = streams_.emplace(name, graph_.add_stream(rank_, name)).first;
  }
  return found->second;
}

StreamId LoweredRank::stream_of(const UnitCall& call) {
  return stream(call.path == ExpertPath::Rail ? "expert rail"
                                              : std::string(stream_name(call.call.group)));
}

void LoweredRank::link(const std::vector<OperationId>& before, OperationId id) {
  for (const OperationId each : before) {
    if (graph_.operation(each).stream != graph_.operation(id).stream) {
      graph_.add_dependency(each, id);
    }
  }
}

OperationId LoweredRank::compute(std::string_view name, StepPart part, SimTime time) {
  const OperationId id = graph_.add_compute(stream("compute"), name, part, time);
  follow(id);
  return id;
}

OperationId LoweredRank::add_call(const UnitCall& call, std::string_view name) {
  return graph_.add_collective(
      stream_of(call), name, call.part,
      {.communicator = communicators_.of(call.call.group, rank_, call.path),
       .operation = call.call.operation,
       .size = Bytes(call.call.elements) * call.call.element_bytes,
       .times = call.call.times,
       .slowdown_ppm = call.slowdown_ppm});
}

void LoweredRank::call(const UnitCall& call, std::string_view name) {
  follow(add_call(call, name));
}

void LoweredRank::barrier(std::string_view name) {
  follow(graph_.add_collective(
      stream("data"), name, StepPart::Data,
      {.communicator = communicators_.all(), .operation = Operation::Barrier}));
}

OperationId LoweredRank::host(const std::string& on, std::string_view name, StepPart part,
                              SimTime time) {
  const OperationId id = graph_.add_host(stream(on), name, part, time);
  follow(id);
  return id;
}

OperationId LoweredRank::host_beside(const std::string& on, std::string_view name, StepPart part,
                                     SimTime time, const std::vector<OperationId>& before) {
  const OperationId id = graph_.add_host(stream(on), name, part, time);
  link(before, id);
  return id;
}

std::optional<OperationId> LoweredRank::calls_beside(const std::vector<UnitCall>& calls,
                                                     std::string_view name,
                                                     const std::vector<OperationId>& before) {
  std::optional<OperationId> last;
  for (const UnitCall& each : calls) {
    const OperationId id =
        add_call(each, fmt::format("{} {}", to_string(each.call.operation), name));
    link(last ? std::vector{*last} : before, id);
    last = id;
  }
  return last;
}

void LoweredRank::unit(const NamedUnit& unit) {
  if (unit.sync > SimTime()) {
    follow(graph_.add_host(stream("host"), unit.name, StepPart::Host, unit.sync));
  }
  const std::vector<OperationId> begin = front_;
  for (const NamedUnit::Phase& phase : unit.phases) {
    const std::vector<OperationId> before = std::move(front_);
    front_.clear();
    if (phase.mix) {
      front_.push_back(graph_.add_compute(stream("compute"), unit.name, *phase.mix));
      link(before, front_.back());
    }
    add_calls(phase.calls, before);
  }
  add_calls(unit.beside, begin);
  if (unit.host > SimTime()) {
    const OperationId id = graph_.add_host(stream("host"), unit.name, StepPart::Host, unit.host);
    link(begin, id);
    front_.push_back(id);
  }
}

void LoweredRank::add_calls(const std::vector<NamedUnit::Call>& calls,
                            const std::vector<OperationId>& before) {
  for (const NamedUnit::Call& each : calls) {
    const OperationId id = add_call(each.call, each.name);
    link(before, id);
    front_.push_back(id);
  }
}

StreamId LoweredRank::stream_of_message(std::string_view name, const GraphMessage& message,
                                        std::string_view direction, bool is_beside) {
  return is_beside ? stream(fmt::format("{} {} {}", direction, name, message.peer))
                   : stream("compute");
}

OperationId LoweredRank::send(std::string_view name, const GraphMessage& message, bool is_beside) {
  const OperationId id = graph_.add_send(stream_of_message(name, message, "to", is_beside), name,
                                         StepPart::Pipeline, message);
  link(front_, id);
  if (!is_beside) {
    front_.assign(1, id);
  }
  return id;
}

OperationId LoweredRank::receive(std::string_view name, const GraphMessage& message,
                                 bool is_beside) {
  const OperationId id = graph_.add_receive(stream_of_message(name, message, "from", is_beside),
                                            name, StepPart::Pipeline, message);
  if (is_beside) {
    front_.push_back(id);
  } else {
    follow(id);
  }
  return id;
}

}  // namespace trainyard
