// SPDX-License-Identifier: Apache-2.0
// The sweep: new levels and rates after a small change, in rising order, where they change.
//
// It starts from the levels and rates before the change. Throughout, the rate of a class is the
// least level on its path: what the links believe at the time. A link is consistent if its level is
// F(rates) (max_min.h); only the links of classes that came, went or changed can be inconsistent at
// first. When all are consistent, the rates are those of filling from scratch, because the system
// has one solution; nothing remains to be proved about how the sweep came there, only that it ends.
//
// The sweep takes the inconsistent link with the least key, min(level, F), and
// - saturates it if F is the lesser: its level becomes F, and members that believed in more stop;
// - releases it if the level is the lesser: it has no level until it is saturated again, and
//   members that it limited rise to the least level on the rest of their paths.
// A class whose rate moves between a and b alters F only where F is above min(a, b), and both kinds
// of step move rates at or above the key: keys taken never fall, whatever is below them is final,
// and a link is released and saturated at most once each. This is how shortest paths are repaired
// after a change of the graph; there, too, a value depends on lesser ones only.
//
// F costs a pass over the members, or a few. Most passes are avoided, because links keep the
// capacity less the rates below their level, `residual`, and the number of other flows, `unfixed`.
// Counting rates below the level in full and one unit more,
//     residual - (all flows) >= unfixed (s + 1)   implies that F is above s.
// This bound proves at once that an ample link is consistent, or that a level is too low; elsewhere
// it is the key for now, and F is found when, and if, the sweep gets there. If a member takes less
// than believed, F can only have risen, and the key that the link has remains a bound.
//
// Ramalingam, Reps, "An incremental algorithm for a generalization of the shortest-path problem",
// J. Algorithms 21(2), 1996.
#include <algorithm>

#include "network/flow/max_min.h"
#include "sim/check.h"

namespace trainyard {

void MaxMinSolver::sweep() {
  for (const ClassIndex index : joined_) {
    Class& item = classes_[index];
    item.rate = min_level(item);
    for (const LinkIndex link : path(index)) {
      add(links_[link], item.flows, item.rate);
    }
  }
  now_ = 0;
  reassess_touched();
  const auto counts = [this](const LevelQueue::Entry& entry) {
    return links_[entry.link].key == entry.key;
  };
  while (waiting_ > 0 && queue_.advance(counts)) {
    now_ = queue_.present();
    while (queue_.has_due()) {
      const LevelQueue::Entry entry = queue_.take_due();
      if (counts(entry)) {
        process(entry.link);
      }
    }
    reassess_touched();
  }
  queue_.clear();
  DCHECK(waiting_ == 0, "a link is left in the queue");
}

// Runs once for each level, after all that happens there: a link may have many members that rise.
void MaxMinSolver::reassess_touched() {
  for (const LinkIndex index : touched_) {
    links_[index].touched = false;
    reassess(index);
    if (links_[index].key != kUnlimited) {
      queue_.push(links_[index].key, index);
    }
  }
  touched_.clear();
}

// Finds the key of a link, exact if the bound does not do.
void MaxMinSolver::reassess(LinkIndex index) {
  Link& link = links_[index];
  FlowRate level = bound_of_level(link);
  bool exact = level > link.level || level == kUnlimited;
  if (!exact && level <= now_) {
    level = level_of(index);
    exact = true;
  }
  const bool consistent = exact && level == link.level;
  set_key(link, consistent ? kUnlimited : std::min(level, link.level), exact);
}

void MaxMinSolver::set_key(Link& link, FlowRate key, bool exact) {
  waiting_ += key != kUnlimited ? 1 : 0;
  waiting_ -= link.key != kUnlimited ? 1 : 0;
  link.key = key;
  link.exact = exact;
}

// The sweep has reached the key of this link.
void MaxMinSolver::process(LinkIndex index) {
  Link& link = links_[index];
  if (!link.exact) {
    reassess(index);
    if (link.key != now_) {
      if (link.key != kUnlimited) {
        queue_.push(link.key, index);
      }
      return;
    }
  }
  set_key(link, kUnlimited, false);
  if (link.level == now_) {
    release(index);
  } else {
    saturate(index);
  }
}

void MaxMinSolver::saturate(LinkIndex index) {
  Link& link = links_[index];
  link.level = now_;
  link.residual = link.capacity;
  link.unfixed = 0;
  for (const Member member : members_[index]) {
    const Class& item = classes_[member.index];
    if (item.rate > now_) {
      move_class(member.index, now_);
    }
    add(link, item.flows, item.rate);
  }
}

void MaxMinSolver::release(LinkIndex index) {
  Link& link = links_[index];
  link.level = kUnlimited;
  touch(index);
  Residual residual = link.capacity;
  std::uint32_t unfixed = 0;
  for (const Member member : members_[index]) {
    const Class& item = classes_[member.index];
    if (item.rate == now_) {
      const FlowRate rate = min_level(item);
      if (rate != now_) {
        move_class(member.index, rate);
      }
    }
    if (item.rate == kUnlimited) {
      unfixed += item.flows;
    } else {
      residual -= Residual{item.rate} * item.flows;
    }
  }
  // Only now, because moving members went through this link, too.
  link.residual = residual;
  link.unfixed = unfixed;
}

// Gives a class a rate, and tells the links on its path whose level this can alter.
void MaxMinSolver::move_class(ClassIndex index, FlowRate rate) {
  note(index);
  Class& item = classes_[index];
  const FlowRate rate_before = item.rate;
  item.rate = rate;
  for (const LinkIndex other : path(index)) {
    Link& link = links_[other];
    if (link.level <= now_) {
      continue;
    }
    remove(link, item.flows, rate_before);
    add(link, item.flows, rate);
    if (rate > rate_before) {
      touch(other);
    } else {
      relax(other);
    }
  }
}

// A member takes less than the link believed.
void MaxMinSolver::relax(LinkIndex index) {
  Link& link = links_[index];
  if (link.key != kUnlimited) {
    const bool ample = link.level == kUnlimited && bound_of_level(link) == kUnlimited;
    set_key(link, ample ? kUnlimited : link.key, false);
  } else if (link.level != kUnlimited) {
    set_key(link, link.level, false);
    queue_.push(link.level, index);
  }
}

FlowRate MaxMinSolver::min_level(const Class& item) const {
  FlowRate level = kUnlimited;
  for (std::uint32_t hop = 0; hop < item.path_length; ++hop) {
    level = std::min(level, links_[paths_[item.path_first + hop]].level);
  }
  return level;
}

// The bound is not above F, and cheap.
FlowRate MaxMinSolver::bound_of_level(const Link& link) {
  const Residual spare = link.residual - link.flows;
  if (spare < 0) {
    return 0;
  }
  return link.unfixed == 0 ? kUnlimited : static_cast<FlowRate>(spare) / link.unfixed;
}

// F, or some value between the level and F if F is above the level. All below now_ is final and the
// link was not saturated by it, so that F is not below now_; nor is it below an equal share.
FlowRate MaxMinSolver::level_of(LinkIndex index) const {
  const Link& link = links_[index];
  FlowRate level = std::max(now_, link.capacity / link.flows);
  while (level <= link.level) {
    FlowRate taken = 0;
    std::uint32_t unfixed = link.flows;
    FlowRate next_rate = kUnlimited;
    for (const Member member : members_[index]) {
      const Class& item = classes_[member.index];
      const bool below = item.rate < level;
      taken += below ? item.flows * item.rate : 0;
      unfixed -= below ? item.flows : 0;
      next_rate = std::min(next_rate, below ? kUnlimited : item.rate);
    }
    if (unfixed == 0) {
      return kUnlimited;
    }
    level = (link.capacity - taken) / unfixed;
    if (level <= next_rate) {
      break;
    }
  }
  return level;
}

}  // namespace trainyard
