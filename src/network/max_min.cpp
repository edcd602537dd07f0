// SPDX-License-Identifier: Apache-2.0
// Classes, links and changes, and filling from scratch; the sweep after small changes is in
// max_min_sweep.cpp.
#include "network/max_min.h"

#include <algorithm>

#include "sim/check.h"

namespace trainyard {

MaxMinSolver::MaxMinSolver(std::span<const Bandwidth> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    CHECK(capacities[i].bits_per_second() > 0, "a link without capacity");
    CHECK(capacities[i] <= kMaxBandwidth, "a link faster than kMaxBandwidth");
    links_[i].capacity = static_cast<FlowRate>(capacities[i].bits_per_second())
                         << kFlowRateFractionBits;
  }
}

void MaxMinSolver::reserve(std::size_t classes, std::size_t links_of_all) {
  classes_.reserve(classes);
  paths_.reserve(links_of_all);
  positions_.reserve(links_of_all);
  changed_.reserve(classes);
  rates_changed_.reserve(classes);
}

MaxMinSolver::ClassIndex MaxMinSolver::add_class(std::span<const LinkIndex> path) {
  CHECK(!path.empty(), "a class of flows without links");
  Class item;
  item.path_first = static_cast<std::uint32_t>(paths_.size());
  item.path_length = static_cast<std::uint32_t>(path.size());
  paths_.insert(paths_.end(), path.begin(), path.end());
  positions_.resize(paths_.size());
  classes_.push_back(item);
  return static_cast<ClassIndex>(classes_.size() - 1);
}

void MaxMinSolver::set_multiplicity(ClassIndex index, std::uint32_t flows) {
  Class& item = classes_[index];
  item.wanted = flows;
  if (!item.queued) {
    item.queued = true;
    changed_.push_back(index);
  }
}

std::span<const MaxMinSolver::ClassIndex> MaxMinSolver::solve() {
  rates_changed_.clear();
  apply_changes();
  if (!touched_.empty()) {
    // A class that changed costs the sweep several times what any class costs the filling.
    constexpr std::size_t kFillShare = 8;
    if (joined_.size() * kFillShare >= active_) {
      fill();
    } else {
      sweep();
    }
    report();
  }
  joined_.clear();
  return rates_changed_;
}

void MaxMinSolver::attach(ClassIndex index) {
  const Class& item = classes_[index];
  for (std::uint32_t hop = 0; hop < item.path_length; ++hop) {
    std::vector<Member>& members = links_[paths_[item.path_first + hop]].members;
    positions_[item.path_first + hop] = static_cast<std::uint32_t>(members.size());
    members.push_back({.index = index, .hop = hop});
  }
  ++active_;
}

void MaxMinSolver::detach(ClassIndex index) {
  const Class& item = classes_[index];
  for (std::uint32_t hop = 0; hop < item.path_length; ++hop) {
    std::vector<Member>& members = links_[paths_[item.path_first + hop]].members;
    const std::uint32_t position = positions_[item.path_first + hop];
    const Member last = members.back();
    members[position] = last;
    positions_[classes_[last.index].path_first + last.hop] = position;
    members.pop_back();
  }
  --active_;
}

bool MaxMinSolver::alone(const Class& item) const {
  for (std::uint32_t hop = 0; hop < item.path_length; ++hop) {
    if (links_[paths_[item.path_first + hop]].flows != item.flows) {
      return false;
    }
  }
  return true;
}

// Brings flow counts and members up to date, gives classes that are alone their rate and touches
// the links that have others.
void MaxMinSolver::apply_changes() {
  std::erase_if(changed_, [this](ClassIndex index) {
    Class& item = classes_[index];
    item.queued = false;
    return item.flows == item.wanted;
  });
  for (const ClassIndex index : changed_) {
    count_change(index);
  }
  for (const ClassIndex index : changed_) {
    begin_change(index);
  }
  changed_.clear();
}

void MaxMinSolver::count_change(ClassIndex index) {
  Class& item = classes_[index];
  for (const LinkIndex link : path(index)) {
    links_[link].flows += item.wanted - item.flows;
  }
  if (item.flows == 0) {
    attach(index);
  } else if (item.wanted == 0) {
    detach(index);
  }
  item.flows = item.wanted;
}

void MaxMinSolver::begin_change(ClassIndex index) {
  Class& item = classes_[index];
  if (item.flows > 0 && alone(item)) {
    give_all(index);
    return;
  }
  item.rate = 0;
  for (const LinkIndex link : path(index)) {
    if (links_[link].flows > 0) {
      touch(link);
    } else {
      links_[link].level = kUnlimited;
    }
  }
  if (item.flows > 0) {
    joined_.push_back(index);
  }
}

// The class is alone on its links: the slowest of them limits it.
void MaxMinSolver::give_all(ClassIndex index) {
  Class& item = classes_[index];
  FlowRate rate = kUnlimited;
  for (const LinkIndex link : path(index)) {
    rate = std::min(rate, links_[link].capacity);
  }
  rate /= item.flows;
  for (const LinkIndex link : path(index)) {
    links_[link].level = links_[link].capacity / item.flows == rate ? rate : kUnlimited;
  }
  item.rate = rate;
  rates_changed_.push_back(index);
}

void MaxMinSolver::touch(LinkIndex index) {
  Link& link = links_[index];
  if (!link.touched) {
    link.touched = true;
    touched_.push_back(index);
  }
}

void MaxMinSolver::note(ClassIndex index, FlowRate rate_before) {
  Class& item = classes_[index];
  if (!item.noted) {
    item.noted = true;
    notes_.push_back({.index = index, .rate_before = rate_before});
  }
}

void MaxMinSolver::report() {
  for (const Note& note : notes_) {
    Class& item = classes_[note.index];
    item.noted = false;
    if (item.rate != note.rate_before) {
      rates_changed_.push_back(note.index);
    }
  }
  classes_visited_ += notes_.size();
  notes_.clear();
}

// Everything that touched links lead to, as if nothing in it had a rate yet.
void MaxMinSolver::collect_region() {
  region_.swap(touched_);
  for (std::size_t next = 0; next < region_.size(); ++next) {
    Link& link = links_[region_[next]];
    link.level = kUnlimited;
    link.residual = link.capacity;
    link.unfixed = link.flows;
    heap_.push_back({.key = link.capacity / link.flows, .link = region_[next]});
    for (const Member member : link.members) {
      Class& item = classes_[member.index];
      if (!item.unfixed) {
        item.unfixed = true;
        note(member.index, item.rate);
        for (const LinkIndex other : path(member.index)) {
          if (!links_[other].touched) {
            links_[other].touched = true;
            region_.push_back(other);
          }
        }
      }
    }
  }
  for (const LinkIndex index : region_) {
    links_[index].touched = false;
  }
  region_.clear();
}

void MaxMinSolver::fill() {
  collect_region();
  std::make_heap(heap_.begin(), heap_.end(), LaterKey());
  while (!heap_.empty()) {
    const FlowRate share = heap_.front().key;
    take_tied(share);
    for (const LinkIndex index : tied_) {
      fix_flows_of(index, share);
    }
  }
}

// Moves the links whose share is this one, the least, from the heap to tied_.
void MaxMinSolver::take_tied(FlowRate share) {
  tied_.clear();
  while (!heap_.empty() && heap_.front().key == share) {
    std::pop_heap(heap_.begin(), heap_.end(), LaterKey());
    const Link& link = links_[heap_.back().link];
    const FlowRate present = link.unfixed > 0 ? link.residual / link.unfixed : kUnlimited;
    if (present > share && present != kUnlimited) {
      heap_.back().key = present;
      std::push_heap(heap_.begin(), heap_.end(), LaterKey());
      continue;
    }
    if (present == share) {
      tied_.push_back(heap_.back().link);
    }
    heap_.pop_back();
  }
}

void MaxMinSolver::fix_flows_of(LinkIndex index, FlowRate share) {
  links_[index].level = share;
  for (const Member member : links_[index].members) {
    Class& item = classes_[member.index];
    if (!item.unfixed) {
      continue;
    }
    item.unfixed = false;
    item.rate = share;
    for (const LinkIndex other : path(member.index)) {
      links_[other].residual -= item.flows * share;
      links_[other].unfixed -= item.flows;
    }
  }
}

}  // namespace trainyard
