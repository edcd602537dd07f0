// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/serve/run_queue.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace trainyard {

using Milliseconds = std::chrono::milliseconds;

TEST_CASE("tickets run in their order, as many at once as may, and more than may wait get none",
          "[serve]") {
  RunQueue queue(2, 2);
  const std::uint64_t a = queue.join().value();
  const std::uint64_t b = queue.join().value();
  const std::uint64_t c = queue.join().value();
  const std::uint64_t d = queue.join().value();
  REQUIRE_FALSE(queue.join().has_value());
  REQUIRE(queue.wait(a, Milliseconds(0)) == 0);
  REQUIRE(queue.wait(b, Milliseconds(0)) == 0);
  REQUIRE(queue.wait(c, Milliseconds(1)) == 1);
  REQUIRE(queue.wait(d, Milliseconds(1)) == 2);
  queue.leave(b);
  REQUIRE(queue.wait(c, Milliseconds(0)) == 0);
  REQUIRE(queue.wait(d, Milliseconds(1)) == 1);
  queue.leave(b);  // Again, which is passed over.
  REQUIRE(queue.wait(d, Milliseconds(1)) == 1);
  REQUIRE(queue.join().has_value());
  queue.leave(d);  // Left before its turn.
  queue.leave(a);
  REQUIRE(queue.wait(c, Milliseconds(0)) == 0);
}

TEST_CASE("no more threads run at once than the queue allows, and all of them run", "[serve]") {
  RunQueue queue(3, 100);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> threads;
    for (int index = 0; index < 40; ++index) {
      threads.emplace_back([&] {
        const std::uint64_t ticket = queue.join().value();
        while (queue.wait(ticket, Milliseconds(50)) > 0) {
        }
        const int now = ++running;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(Milliseconds(2));
        --running;
        ++done;
        queue.leave(ticket);
      });
    }
  }
  REQUIRE(done == 40);
  REQUIRE(most <= 3);
}

}  // namespace trainyard
