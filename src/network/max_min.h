// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates, kept up to date as flows come and go.
//
// Flows of the same path form a class: one variable with a multiplicity. A link with capacity C
// shared by classes c of multiplicity m_c is saturated at the level s with  sum of m_c min(s, r_c)
// = C; the rate of a class is the least level on its path. Progressive filling finds all levels in
// rising order: the link with the least share (capacity left / flows left) fixes its flows, their
// rate is taken off the other links they cross, and shares there can only rise. A binary heap
// orders the links; since shares only rise, an entry is looked at again when it comes up.
//
// Rates are integers in units of 2^-16 bit/s, shares rounded down. Sums and differences are then
// exact and do not depend on the order in which flows are visited: the same bits on every machine,
// no drift however many flows come and go, and equal shares are equal. What rounding leaves unused
// on a link is less than its number of flows times 2^-16 bit/s; at 1,000 flows on 400 Gb/s it
// delays a transfer of one second by 0.04 ps.
//
// After a change, only what can change is solved again:
// - Nothing below the level at which the change first matters. When a flow of rate r leaves,
// filling
//   proceeds as before below r. When flows join, filling proceeds as before below the level that
//   they would get if the others kept their rates, the least over their links of the s with sum of
//   min(s, r_c) + (joining) s = C: until then no link of theirs can be the one with the least
//   share.
// - Of the classes at or above that level only those that a changed link leads to, going from link
// to
//   link through such classes. Others share nothing with them.
// A class that is alone on all its links gets the least capacity without any of this.
//
// Bertsekas, Gallager, "Data Networks", 2nd ed., section 6.5.2 (max-min fairness, progressive
// filling).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/units.h"

namespace trainyard {

// In units of 2^-16 bit/s.
using FlowRate = std::uint64_t;
inline constexpr int kFlowRateFractionBits = 16;

class MaxMinSolver {
 public:
  using ClassIndex = std::uint32_t;
  using LinkIndex = std::uint32_t;

  explicit MaxMinSolver(std::span<const Bandwidth> capacities);

  // A class of flows over these links, each once and at least one; it has no flows yet.
  ClassIndex add_class(std::span<const LinkIndex> path);
  void reserve(std::size_t classes, std::size_t links_of_all);

  // Sets the number of flows. Rates are stale until solve().
  void set_multiplicity(ClassIndex index, std::uint32_t flows);
  [[nodiscard]] std::uint32_t multiplicity(ClassIndex index) const {
    return classes_[index].wanted;
  }
  [[nodiscard]] bool stale() const { return !changed_.empty(); }

  // Makes all rates max-min fair. Returns the classes whose rate is not what it was, which have
  // flows; the span holds until the next call.
  std::span<const ClassIndex> solve();

  // Of each flow of the class; zero without flows.
  [[nodiscard]] FlowRate rate(ClassIndex index) const { return classes_[index].rate; }
  [[nodiscard]] std::span<const LinkIndex> path(ClassIndex index) const {
    return std::span(paths_).subspan(classes_[index].path_first, classes_[index].path_length);
  }
  // How many classes solves had to visit: what the restriction to the changed part saves.
  [[nodiscard]] std::uint64_t classes_visited() const { return classes_visited_; }

 private:
  // No link limits this class; this link limits no class; this link is not in the queue.
  static constexpr FlowRate kUnlimited = std::numeric_limits<FlowRate>::max();

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
  struct Link {
    FlowRate capacity = 0;
    FlowRate level = kUnlimited;
    FlowRate key = kUnlimited;  // While sweeping: its place in the queue.
    std::uint32_t flows = 0;    // Of all classes on the link.
    bool touched = false;       // In touched_.
    bool exact = false;         // While sweeping: the key is no mere lower bound.
    std::uint32_t unfixed = 0;  // While filling: flows without a rate.
    FlowRate residual = 0;      // While filling: capacity not yet given away.
    std::vector<Member> members;
  };
  struct HeapEntry {
    FlowRate key;
    LinkIndex link;
  };
  struct LaterKey {
    bool operator()(const HeapEntry& a, const HeapEntry& b) const { return a.key > b.key; }
  };
  struct Note {
    ClassIndex index;
    FlowRate rate_before;
  };

  void apply_changes();
  void count_change(ClassIndex index);
  void begin_change(ClassIndex index);
  void attach(ClassIndex index);
  void detach(ClassIndex index);
  [[nodiscard]] bool alone(const Class& item) const;
  void give_all(ClassIndex index);
  void touch(LinkIndex index);
  void note(ClassIndex index, FlowRate rate_before);
  void report();

  void fill();
  void collect_region();
  void take_tied(FlowRate share);
  void fix_flows_of(LinkIndex index, FlowRate share);

  void sweep();
  void reassess_touched();
  void reassess(LinkIndex index);
  void process(LinkIndex index);
  void saturate(LinkIndex index);
  void release(LinkIndex index);
  void move_class(ClassIndex index, FlowRate rate);
  void enqueue(LinkIndex index, FlowRate key, bool exact);
  [[nodiscard]] FlowRate least_level(const Class& item) const;
  [[nodiscard]] FlowRate saturation_level(const Link& link) const;

  std::vector<Class> classes_;
  std::vector<Link> links_;
  std::vector<LinkIndex> paths_;           // Of all classes, one after the other.
  std::vector<std::uint32_t> positions_;   // Same layout: place of the class in members.
  std::vector<ClassIndex> changed_;        // Multiplicity set since the last solve.
  std::vector<ClassIndex> rates_changed_;  // What solve() returns.
  std::vector<ClassIndex> joined_;         // Changed, and not alone on all their links.
  std::vector<LinkIndex> touched_;         // To be looked at, see touch().
  std::vector<Note> notes_;                // Classes that a solve moved, each once.
  std::vector<LinkIndex> region_;
  std::vector<LinkIndex> tied_;
  std::vector<HeapEntry> heap_;
  FlowRate now_ = 0;  // Where the sweep is.
  std::size_t active_ = 0;  // Classes with flows.
  std::uint64_t classes_visited_ = 0;
};

}  // namespace trainyard
