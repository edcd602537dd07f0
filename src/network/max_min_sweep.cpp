// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "network/max_min.h"
#include "sim/check.h"

namespace trainyard {

void MaxMinSolver::sweep() {
  for (const ClassIndex index : joined_) {
    Class& item = classes_[index];
    note(index, kUnlimited);
    item.rate = least_level(item);
  }
  now_ = 0;
  reassess_touched();
  while (!heap_.empty()) {
    now_ = heap_.front().key;
    while (!heap_.empty() && heap_.front().key == now_) {
      std::pop_heap(heap_.begin(), heap_.end(), LaterKey());
      const HeapEntry entry = heap_.back();
      heap_.pop_back();
      if (links_[entry.link].key == entry.key) {
        process(entry.link);
      }
    }
    reassess_touched();
  }
}

void MaxMinSolver::reassess_touched() {
  for (const LinkIndex index : touched_) {
    links_[index].touched = false;
    reassess(index);
  }
  touched_.clear();
}

void MaxMinSolver::reassess(LinkIndex index) {
  Link& link = links_[index];
  const FlowRate level = saturation_level(link);
  if (level == link.level) {
    link.key = kUnlimited;
  } else {
    enqueue(index, std::min(level, link.level), true);
  }
}

void MaxMinSolver::enqueue(LinkIndex index, FlowRate key, bool exact) {
  Link& link = links_[index];
  link.exact = exact;
  if (link.key != key) {
    link.key = key;
    heap_.push_back({.key = key, .link = index});
    std::push_heap(heap_.begin(), heap_.end(), LaterKey());
  }
}

void MaxMinSolver::process(LinkIndex index) {
  Link& link = links_[index];
  link.key = kUnlimited;
  if (!link.exact) {
    reassess(index);
    if (link.key != now_) {
      return;
    }
    link.key = kUnlimited;
  }
  if (link.level == now_) {
    release(index);
  } else {
    saturate(index);
  }
}

void MaxMinSolver::saturate(LinkIndex index) {
  Link& link = links_[index];
  link.level = now_;
  for (const Member member : link.members) {
    if (classes_[member.index].rate > now_) {
      move_class(member.index, now_);
    }
  }
}

void MaxMinSolver::release(LinkIndex index) {
  Link& link = links_[index];
  link.level = kUnlimited;
  touch(index);
  for (const Member member : link.members) {
    const Class& item = classes_[member.index];
    if (item.rate == now_) {
      const FlowRate rate = least_level(item);
      if (rate != now_) {
        move_class(member.index, rate);
      }
    }
  }
}

void MaxMinSolver::move_class(ClassIndex index, FlowRate rate) {
  Class& item = classes_[index];
  note(index, item.rate);
  const bool rises = rate > item.rate;
  item.rate = rate;
  for (const LinkIndex other : path(index)) {
    Link& link = links_[other];
    if (link.level <= now_) {
      continue;
    }
    if (rises) {
      touch(other);
    } else if (link.key != kUnlimited) {
      link.exact = false;
    } else if (link.level != kUnlimited) {
      enqueue(other, link.level, false);
    }
  }
}

FlowRate MaxMinSolver::least_level(const Class& item) const {
  FlowRate level = kUnlimited;
  for (std::uint32_t hop = 0; hop < item.path_length; ++hop) {
    level = std::min(level, links_[paths_[item.path_first + hop]].level);
  }
  return level;
}

FlowRate MaxMinSolver::saturation_level(const Link& link) const {
  FlowRate level = std::max(now_, link.capacity / link.flows);
  while (level <= link.level) {
    FlowRate taken = 0;
    std::uint32_t rising = link.flows;
    for (const Member member : link.members) {
      const Class& item = classes_[member.index];
      if (item.rate < level) {
        taken += item.flows * item.rate;
        rising -= item.flows;
      }
    }
    if (rising == 0) {
      return kUnlimited;
    }
    const FlowRate next = (link.capacity - taken) / rising;
    if (next == level) {
      break;
    }
    level = next;
  }
  return level;
}

}  // namespace trainyard
