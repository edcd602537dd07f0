// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowered_rank.h"

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
    default:
      return "data";
  }
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

CommunicatorId PlanCommunicators::of(RankGroupKind kind, int rank) {
  const auto known = of_rank_.find({kind, rank});
  if (known != of_rank_.end()) {
    return known->second;
  }
  std::vector<int> ranks = group_of(plan_, kind, rank);
  auto found = of_ranks_.find({kind, ranks});
  if (found == of_ranks_.end()) {
    auto widest = widest_.find(kind);
    if (widest == widest_.end()) {
      widest = widest_.emplace(kind, widest_group(plan_, kind, server_of_rank_)).first;
    }
    const CommunicatorId id = graph_.add_communicator(
        fmt::format("{} {}", group_name(kind), ranks.front()), ranks, widest->second);
    found = of_ranks_.emplace(std::make_pair(kind, std::move(ranks)), id).first;
  }
  of_rank_.emplace(std::make_pair(kind, rank), found->second);
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

StreamId LoweredRank::stream_of(RankGroupKind kind) {
  return stream(std::string(stream_name(kind)));
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
  return graph_.add_collective(stream_of(call.call.group), name, call.part,
                               {.communicator = communicators_.of(call.call.group, rank_),
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

std::optional<OperationId> LoweredRank::calls_beside(const std::vector<UnitCall>& calls,
                                                     std::string_view name,
                                                     const std::vector<OperationId>& before) {
  std::optional<OperationId> last;
  for (const UnitCall& each : calls) {
    last = add_call(each, fmt::format("{} {}", to_string(each.call.operation), name));
    link(before, *last);
  }
  return last;
}

void LoweredRank::unit(const NamedUnit& unit) {
  const std::vector<OperationId> begin = front_;
  for (const NamedUnit::Phase& phase : unit.phases) {
    const std::vector<OperationId> before = std::move(front_);
    front_.clear();
    if (phase.mix) {
      front_.push_back(graph_.add_compute(stream("compute"), unit.name, *phase.mix));
      link(before, front_.back());
    }
    for (const NamedUnit::Call& each : phase.calls) {
      const OperationId id = add_call(each.call, each.name);
      link(before, id);
      if (&each == &phase.calls.back()) {
        front_.push_back(id);
      }
    }
  }
  if (unit.host > SimTime()) {
    const OperationId id = graph_.add_host(stream("host"), unit.name, StepPart::Host, unit.host);
    link(begin, id);
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
