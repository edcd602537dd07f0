// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/shared_times.h"

#include <utility>

namespace trainyard {

std::unique_ptr<GroupTimes> SharedTimes::take(std::vector<std::unique_ptr<GroupTimes>>& from) {
  {
    const std::lock_guard lock(mutex_);
    if (!from.empty()) {
      std::unique_ptr<GroupTimes> own = std::move(from.back());
      from.pop_back();
      return own;
    }
  }
  return make_();
}

template <typename Key, typename Ask>
SimTime SharedTimes::remembered(std::map<Key, SimTime>& known, const Key& key, const Ask& ask) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known.find(key);
    if (found != known.end()) {
      return found->second;
    }
  }
  std::unique_ptr<GroupTimes> own = take(idle_);
  const SimTime time = ask(*own);  // If it throws, `own` is gone: another one is made when needed.
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(own));
  known.emplace(key, time);
  return time;
}

SimTime SharedTimes::collective(Operation operation, const std::vector<int>& ranks, Bytes size) {
  return remembered(collectives_, std::make_tuple(operation, ranks, size),
                    [&](GroupTimes& times) { return times.collective(operation, ranks, size); });
}

SimTime SharedTimes::transfer(int from, int to, Bytes size) {
  return remembered(transfers_, std::make_tuple(from, to, size),
                    [&](GroupTimes& times) { return times.transfer(from, to, size); });
}

void SharedTimes::lend(const std::function<void(GroupTimes&)>& ask) {
  std::unique_ptr<GroupTimes> own = take(returned_);
  ask(*own);
  const std::lock_guard lock(mutex_);
  returned_.push_back(std::move(own));
}

}  // namespace trainyard
