// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/packet_parts/queue_times.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/random.h"

namespace trainyard {
namespace {

TEST_CASE("buckets follow one another without a gap, each at most a quarter long") {
  for (std::uint32_t bucket = 0; bucket + 1 < 160; ++bucket) {
    const std::int64_t end = QueueTimes::end_of(bucket);
    INFO(bucket << " " << end);
    REQUIRE(QueueTimes::bucket_of(end) == bucket);
    REQUIRE(QueueTimes::bucket_of(end + 1) == bucket + 1);
    REQUIRE(4 * (QueueTimes::end_of(bucket + 1) - end - 1) <= end + 1);
  }
  REQUIRE(QueueTimes::bucket_of(0) == 0);
  REQUIRE(QueueTimes::bucket_of((std::int64_t{1} << 40) - 1) < 160);
}

TEST_CASE("percentiles are over time, not over changes") {
  QueueTimes queue;
  REQUIRE(queue.percentile(99, 1'000) == 0);
  queue.change(100, 4'174);  // For 890 of 1,000.
  queue.change(990, 1'000'000);
  REQUIRE(queue.percentile(10, 1'000) == 0);
  const std::int64_t middle = queue.percentile(50, 1'000);
  REQUIRE(middle >= 4'174);
  REQUIRE(middle <= 4'174 * 5 / 4);
  REQUIRE(queue.percentile(99, 1'000) == middle);
  REQUIRE(queue.percentile(100, 1'000) >= 1'000'000);
  queue.change(1'000, 0);
  REQUIRE(queue.percentile(50, 10'000) == 0);
}

TEST_CASE("percentiles are those of all lengths in order, within a bucket") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "queue");
    QueueTimes queue;
    std::vector<std::pair<std::int64_t, Picoseconds>> lengths{{0, 0}};  // With their times.
    Picoseconds now = 0;
    for (int change = 0; change < 30; ++change) {
      const auto lasted = static_cast<Picoseconds>(random.below(1'000));
      const auto length = static_cast<std::int64_t>(random.below(1'000'000));
      lengths.back().second = lasted;
      now += lasted;
      queue.change(now, length);
      lengths.emplace_back(length, 0);
    }
    std::sort(lengths.begin(), lengths.end());
    for (const int percent : {1, 50, 90, 99, 100}) {
      Picoseconds time = 0;
      std::size_t index = 0;
      while ((time += lengths[index].second) * 100 < now * percent) {
        ++index;
      }
      REQUIRE(queue.percentile(percent, now) ==
              QueueTimes::end_of(QueueTimes::bucket_of(lengths[index].first)));
    }
  }
}

}  // namespace
}  // namespace trainyard
