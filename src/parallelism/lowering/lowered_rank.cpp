// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/lowered_rank.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "parallelism/walk/group_names.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {

// Does what expert_domains() does for the first rank of the group, for any of them.
std::vector<int> PlanCommunicators::part_of(const std::vector<int>& group, int rank,
                                            ExpertPath path) const {
  if (path == ExpertPath::Group) {
    return group;
  }
  if (expert_domains(group, domain_of_rank_).rail.size() == group.size()) {
    // Each is a domain of its own.
    return path == ExpertPath::Rail ? group : std::vector<int>{rank};
  }
  const auto domain_of = [&](int of) { return domain_of_rank_[static_cast<std::size_t>(of)]; };
  std::map<int, int> members;  // Members of each domain up to here.
  std::map<int, int> places;   // The place of each rank among those of its domain.
  for (const int each : group) {
    places[each] = members[domain_of(each)]++;
  }
  std::vector<int> part;
  std::copy_if(group.begin(), group.end(), std::back_inserter(part), [&](int each) {
    return path == ExpertPath::Domain ? domain_of(each) == domain_of(rank)
                                      : places[each] == places[rank];
  });
  return part;
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
    const CommunicatorId id =
        graph_.add_communicator(communicator_name(kind, ranks.front()), ranks, std::move(timed_as));
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

StreamId LoweredRank::stream(const std::string& name, StreamOrder order) {
  auto found = streams_.find(name);
  if (found == streams_.end()) {
    found = streams_.emplace(name, graph_.add_stream(rank_, name, order)).first;
  }
  return found->second;
}

void LoweredRank::link(const std::vector<OperationId>& before, OperationId id) {
  for (const OperationId each : before) {
    if (graph_.operation(each).stream != graph_.operation(id).stream) {
      graph_.add_dependency(each, id);
    }
  }
}

void LoweredRank::compute(std::string_view name, StepPart part, SimTime time) {
  follow(graph_.add_compute(stream("compute"), name, part, time));
}

OperationId LoweredRank::add_call(const UnitCall& call, std::string_view name) {
  const RankGroupKind group = call.call.group;
  const std::string_view on = call.path == ExpertPath::Rail     ? "expert rail"
                              : group == RankGroupKind::Replica ? "replicas"
                                                                : purpose_of(group);
  return graph_.add_collective(stream(std::string(on)), name, call.part,
                               {.communicator = communicators_.of(group, rank_, call.path),
                                .operation = call.call.operation,
                                .size = Bytes(call.call.elements) * call.call.element_bytes,
                                .times = call.call.times,
                                .slowdown_ppm = call.slowdown_ppm});
}

void LoweredRank::calls(const std::vector<UnitCall>& calls, std::string_view name) {
  for (const UnitCall& each : calls) {
    follow(add_call(each, name));
  }
}

void LoweredRank::barrier(std::string_view name) {
  follow(graph_.add_collective(
      stream("data"), name, StepPart::Data,
      {.communicator = communicators_.all(), .operation = Operation::Barrier}));
}

OperationId LoweredRank::host(const std::string& on, std::string_view name, StepPart part,
                              SimTime time) {
  const OperationId id = host_beside(on, name, part, time, front_);
  front_.assign(1, id);
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
  const PassUnit& work = unit.work;
  if (work.sync > SimTime()) {
    host("host", unit.name, StepPart::Host, work.sync);
  }
  const std::vector<OperationId> begin = front_;
  for (std::size_t phase = 0; phase < work.phases.size(); ++phase) {
    const std::vector<OperationId> before = std::move(front_);
    front_.clear();
    if (const auto mix = unit.mixes[phase]) {
      front_.push_back(graph_.add_compute(stream("compute"), unit.name, *mix));
      link(before, front_.back());
    }
    add_calls(work.phases[phase].calls, unit.name, before);
  }
  add_calls(work.beside, unit.name, begin);
  if (work.host > SimTime()) {
    front_.push_back(host_beside("host", unit.name, StepPart::Host, work.host, begin));
  }
}

void LoweredRank::add_calls(const std::vector<UnitCall>& calls, std::string_view name,
                            const std::vector<OperationId>& before) {
  for (const UnitCall& each : calls) {
    const OperationId id =
        add_call(each, fmt::format("{} {}", to_string(each.call.operation), name));
    link(before, id);
    front_.push_back(id);
  }
}

StreamId LoweredRank::stream_of_message(std::string_view name, const GraphMessage& message,
                                        std::string_view direction, bool is_beside) {
  return is_beside ? stream(fmt::format("{} {} {}", direction, name, message.peer))
                   : stream("compute");
}

void LoweredRank::send(std::string_view name, const GraphMessage& message, bool is_beside) {
  const OperationId id = graph_.add_send(stream_of_message(name, message, "to", is_beside), name,
                                         StepPart::Pipeline, message);
  link(front_, id);
  if (!is_beside) {
    front_.assign(1, id);
  }
}

void LoweredRank::receive(std::string_view name, const GraphMessage& message, bool is_beside) {
  const OperationId id = graph_.add_receive(stream_of_message(name, message, "from", is_beside),
                                            name, StepPart::Pipeline, message);
  if (is_beside) {
    front_.push_back(id);
  } else {
    follow(id);
  }
}

}  // namespace trainyard
