// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates, kept up to date as flows come and go.
//
// Flows of the same path form a class: one variable with a multiplicity. Progressive filling raises
// all flows together; the link with the least share (capacity left / flows that still rise) stops
// its flows, what they take is gone from the other links they cross, and shares there can only
// rise. The share at which a link stops its flows is its level; a link that never does has none.
// The rate of a class is the least level on its path.
//
// Rates are integers in units of 2^-16 bit/s, shares rounded down; links of equal share stop their
// flows together. With C the capacity of a link, r and m the rate and the flows of each class on
// it, its level is thus
//     F(r) = the least s with  sum over r < s of m r  +  sum over r >= s of m (s + 1)  >  C,
// the first share that not all of those still rising can exceed. F looks only at the rates below
// it, so the system  rate = least level on the path, level = F(rates)  has one solution: by
// induction over s, whatever is at or below s is determined by what is below s. That is why the
// result depends on the flows that are there and on nothing else: not on the order of links or
// classes, not on how the flows came and went, not on the machine. Sums and differences are exact.
// What rounding leaves unused on a link is less than its number of flows times 2^-16 bit/s; at
// 1,000 flows on 400 Gb/s it delays a transfer of one second by 0.04 ps.
//
// solve() uses whichever is cheapest of
// - the least capacity, for a class that is alone on all its links;
// - filling from scratch, of all that the change is connected with, when many classes changed
//   (max_min.cpp);
// - a sweep over what the change alters and nothing else (max_min_sweep.cpp).
// All three leave every link with its level and with what F needs next: the capacity less the rates
// below the level, and the number of the other flows.
//
// Bertsekas, Gallager, "Data Networks", 2nd ed., section 6.5.2 (max-min fairness, progressive
// filling).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "network/flow/level_queue.h"
#include "sim/units.h"

namespace trainyard {

// A rate in units of 2^-16 bit/s.
using FlowRate = std::uint64_t;
inline constexpr int kFlowRateFractionBits = 16;

class MaxMinSolver {
 public:
  using ClassIndex = std::uint32_t;
  using LinkIndex = std::uint32_t;

  explicit MaxMinSolver(std::span<const Bandwidth> capacities);

  // One more link, behind those that there are.
  LinkIndex add_link(Bandwidth capacity);
  // A class of flows over these links, each once and at least one; it has no flows yet.
  ClassIndex add_class(std::span<const LinkIndex> path);
  void reserve(std::size_t classes, std::size_t links_of_all);

  // Gives a link another capacity. Rates are stale until solve().
  void set_capacity(LinkIndex index, FlowRate capacity);
  // Sets the number of flows. Rates are stale until solve().
  void set_multiplicity(ClassIndex index, std::uint32_t flows);

  // Makes all rates max-min fair. Returns the classes that have flows and another rate or another
  // number of flows than before, each once, in any order; the span holds until the next call.
  std::span<const ClassIndex> solve();

  // Returns the rate of each flow of the class; zero without flows.
  [[nodiscard]] FlowRate rate(ClassIndex index) const { return classes_[index].rate; }
  // Returns the number of flows of all classes on a link, as of the last solve.
  [[nodiscard]] std::uint32_t flows(LinkIndex index) const { return links_[index].flows; }
  [[nodiscard]] FlowRate capacity(LinkIndex index) const { return links_[index].capacity; }
  [[nodiscard]] std::span<const LinkIndex> path(ClassIndex index) const {
    return std::span(paths_).subspan(classes_[index].path_first, classes_[index].path_length);
  }
  // Returns the number of classes that solves gave a rate, for good or in passing, other than those
  // alone on their links: what keeping to the changed part saves.
  [[nodiscard]] std::uint64_t classes_visited() const { return classes_visited_; }

 private:
  // The level of a link that limits no class, the rate of a class that no link limits (yet), the
  // key of a link that is not in the queue.
  static constexpr FlowRate kUnlimited = std::numeric_limits<FlowRate>::max();

  // Below zero, and beyond 64 bits, while a sweep believes that classes take too much.
  using Residual = __int128;

  struct Class {
    FlowRate rate = 0;
    std::uint32_t path_first = 0;
    std::uint32_t path_length = 0;
    std::uint32_t flows = 0;   // As of the last solve.
    std::uint32_t wanted = 0;  // As set since.
    bool queued = false;       // In changed_.
    bool noted = false;        // In notes_.
    bool unfixed = false;      // While filling: in the region, without a rate.
  };
  struct Member {
    ClassIndex index;
    std::uint32_t hop;  // Where in the path of the class this link stands.
  };
  // One cache line.
  struct alignas(64) Link {
    FlowRate capacity = 0;
    FlowRate level = kUnlimited;
    Residual residual = 0;      // The capacity less the rates below the level.
    std::uint32_t unfixed = 0;  // Flows whose rate is not below the level.
    std::uint32_t flows = 0;    // Flows of all classes on the link.
    FlowRate key = kUnlimited;  // While sweeping: its place in the queue.
    bool exact = false;         // While sweeping: the key is more than a lower bound.
    bool touched = false;       // In touched_.
  };
  struct Note {
    ClassIndex index;
    FlowRate rate_before;
  };
  struct NewCapacity {
    LinkIndex index;
    FlowRate capacity;
  };

  bool count_change(ClassIndex index);
  void take_capacities();
  void begin_change(ClassIndex index);
  void attach(ClassIndex index);
  void detach(ClassIndex index);
  [[nodiscard]] FlowRate capacity_if_alone(const Class& item) const;
  void give_all(ClassIndex index, FlowRate capacity);
  void touch(LinkIndex index) {
    Link& link = links_[index];
    if (!link.touched) {
      link.touched = true;
      touched_.push_back(index);
    }
  }
  // Remembers, before the class gets a rate, which one it had.
  void note(ClassIndex index) {
    Class& item = classes_[index];
    if (!item.noted) {
      item.noted = true;
      notes_.push_back({.index = index, .rate_before = item.rate});
    }
  }
  void report();

  void fill();
  void collect_region();
  void take_tied();
  void fix_flows_of(LinkIndex index);

  void sweep();
  void reassess_touched();
  void reassess(LinkIndex index);
  void process(LinkIndex index);
  void saturate(LinkIndex index);
  void release(LinkIndex index);
  void move_class(ClassIndex index, FlowRate rate);
  void relax(LinkIndex index);
  void set_key(Link& link, FlowRate key, bool exact);
  [[nodiscard]] FlowRate min_level(const Class& item) const;
  [[nodiscard]] static FlowRate bound_of_level(const Link& link);
  [[nodiscard]] FlowRate level_of(LinkIndex index) const;

  // Flows of a class at this rate come to, or leave, what the link knows for F.
  static void add(Link& link, std::uint32_t flows, FlowRate rate) {
    if (rate < link.level) {
      link.residual -= Residual{rate} * flows;
    } else {
      link.unfixed += flows;
    }
  }
  static void remove(Link& link, std::uint32_t flows, FlowRate rate) {
    if (rate < link.level) {
      link.residual += Residual{rate} * flows;
    } else {
      link.unfixed -= flows;
    }
  }

  std::vector<Class> classes_;
  std::vector<Link> links_;
  std::vector<std::vector<Member>>
      members_;                           // Members of each link: classes with flows, in any order.
  std::vector<LinkIndex> paths_;          // Paths of all classes, one after the other.
  std::vector<std::uint32_t> positions_;  // Same layout: place of the class in members.
  std::size_t active_ = 0;                // Classes with flows.
  std::vector<ClassIndex> changed_;       // Multiplicity set since the last solve.
  std::vector<NewCapacity> capacities_;   // Capacities that were set since then, in order.
  std::vector<ClassIndex> joined_;        // Classes that share links, with flows.
  std::vector<LinkIndex> touched_;        // Links whose level is to be looked at.
  std::vector<Note> notes_;               // Classes that this solve gave a rate, each once.
  std::vector<ClassIndex> rates_changed_;  // The list that solve() returns.
  LevelQueue queue_;                       // Links in the order of shares or keys.
  FlowRate now_ = 0;                       // The level that filling or sweeping has reached.
  std::size_t waiting_ = 0;                // While sweeping: links with a key.
  std::vector<LinkIndex> region_;          // Scratch.
  std::vector<LinkIndex> tied_;            // Scratch.
  std::uint64_t classes_visited_ = 0;
};

}  // namespace trainyard
