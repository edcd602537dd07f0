// SPDX-License-Identifier: Apache-2.0
// Links in the order of their keys, for keys that are never below the last one taken: a radix heap.
//
// Bucket b holds the entries whose highest bit that differs from the present key is bit b - 1, so
// bucket 0 those with the present key and the lowest bucket in use the least key. When bucket 0 is
// empty, the lowest is spread over those below it, with its least key as the present one. Entries
// are never removed: whoever takes one knows whether it still counts, and those that do not are
// dropped when their bucket is spread. What lies far ahead and is outdated by then costs nothing
// but its push.
//
// Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", J. ACM 37(2),
// 1990.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainyard {

class LevelQueue {
 public:
  struct Entry {
    std::uint64_t key;
    std::uint32_t link;
  };

  // Forgets all entries; the present key is zero.
  void clear() {
    for (; used_ != 0; used_ &= used_ - 1) {
      bucket(used_).clear();
    }
    due_.clear();
    present_ = 0;
  }

  // `key` is not below the present one.
  void push(std::uint64_t key, std::uint32_t link) {
    if (key == present_) {
      due_.push_back({.key = key, .link = link});
      return;
    }
    const auto place = static_cast<std::size_t>(std::bit_width(key ^ present_)) - 1;
    used_ |= std::uint64_t{1} << place;
    buckets_[place].push_back({.key = key, .link = link});
  }

  // Goes on to the least key of an entry that counts; false if there is none.
  template <typename Counts>
  bool advance(Counts counts) {
    while (due_.empty() && used_ != 0) {
      std::vector<Entry>& lowest = bucket(used_);
      used_ &= used_ - 1;
      std::erase_if(lowest, [&](const Entry& entry) { return !counts(entry); });
      if (lowest.empty()) {
        continue;
      }
      present_ = std::ranges::min(lowest, {}, &Entry::key).key;
      for (const Entry& entry : lowest) {
        push(entry.key, entry.link);
      }
      lowest.clear();
    }
    return !due_.empty();
  }
  [[nodiscard]] std::uint64_t present() const { return present_; }

  // The entries at the present key, in any order.
  [[nodiscard]] bool has_due() const { return !due_.empty(); }
  Entry take_due() {
    const Entry entry = due_.back();
    due_.pop_back();
    return entry;
  }

 private:
  std::vector<Entry>& bucket(std::uint64_t used) {
    return buckets_[static_cast<std::size_t>(std::countr_zero(used))];
  }

  std::array<std::vector<Entry>, 64> buckets_;
  std::vector<Entry> due_;
  std::uint64_t used_ = 0;  // A bit for each bucket that is not empty.
  std::uint64_t present_ = 0;
};

}  // namespace trainyard
