// SPDX-License-Identifier: Apache-2.0
// Against a std::multimap: entries come in the order of their keys, those that no longer count
// never decide where the queue goes on to, and none is lost.
#include "support/catch.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "network/flow/level_queue.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// Keys near the present one, far from it, and up to the greatest there is.
std::uint64_t key_from(RandomStream& random, std::uint64_t present) {
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - present;
  return present + std::min(room, random.next() >> random.below(64));
}

TEST_CASE("a level queue gives entries in the order of their keys") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "level queue");
    LevelQueue queue;
    std::multimap<std::uint64_t, std::uint32_t> model;
    std::vector<bool> outdated;
    const auto counts = [&](const LevelQueue::Entry& entry) { return !outdated[entry.link]; };
    const auto push = [&](std::uint64_t key) {
      const auto link = static_cast<std::uint32_t>(outdated.size());
      outdated.push_back(false);
      queue.push(key, link);
      model.emplace(key, link);
    };
    for (int i = 0; i < 20; ++i) {
      push(key_from(random, 0));
    }
    while (queue.advance(counts)) {
      REQUIRE(!model.empty());
      REQUIRE(queue.present() == model.begin()->first);
      while (queue.has_due()) {
        const LevelQueue::Entry entry = queue.take_due();
        REQUIRE(entry.key == queue.present());
        const auto [first, last] = model.equal_range(entry.key);
        const auto found =
            std::find_if(first, last, [&](const auto& pair) { return pair.second == entry.link; });
        REQUIRE(outdated[entry.link] == (found == last));
        if (found != last) {
          model.erase(found);
        }
      }
      for (std::uint64_t i = random.below(3); i > 0 && outdated.size() < 500; --i) {
        push(key_from(random, queue.present()));
      }
      if (!model.empty() && model.begin()->first > queue.present() && random.below(4) == 0) {
        outdated[model.begin()->second] = true;
        model.erase(model.begin());
      }
    }
    REQUIRE(model.empty());
  }
}

TEST_CASE("a cleared level queue starts again from zero") {
  LevelQueue queue;
  const auto all = [](const LevelQueue::Entry&) { return true; };
  queue.push(1000, 1);
  queue.push(2000, 2);
  REQUIRE(queue.advance(all));
  queue.clear();
  REQUIRE(!queue.advance(all));
  queue.push(3, 3);
  queue.push(0, 4);
  REQUIRE(queue.advance(all));
  REQUIRE(queue.present() == 0);
  REQUIRE(queue.take_due().link == 4);
  REQUIRE(queue.advance(all));
  REQUIRE(queue.present() == 3);
}

}  // namespace
}  // namespace trainyard
