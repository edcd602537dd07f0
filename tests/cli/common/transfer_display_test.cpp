// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/transfer_display.h"

#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace trainyard {
namespace {

class LevelCounter final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::atomic<int> warnings{0};
  std::atomic<int> lines{0};

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    ++(message.level == spdlog::level::warn ? warnings : lines);
  }
  void flush_() override {}
};

}  // namespace

TEST_CASE("what is left follows from what was received, and from runs that have not begun") {
  TransferProgress progress;
  REQUIRE(!progress_text("collective", 2, progress, 5.0));
  progress.runs = 1;
  progress.all = 1'000;
  REQUIRE(!progress_text("collective", 2, progress, 5.0));
  progress.done = 500;
  REQUIRE(progress_text("collective", 2, progress, 5.0) ==
          "collective: 25.0 % of 2000 transfers, about 15 s left");
  REQUIRE(progress_text("collective", 1, progress, 5.0) ==
          "collective: 50.0 % of 1000 transfers, about 5 s left");
}

TEST_CASE("many transfers are announced, and how far they are is said") {
  const auto sink = std::make_shared<LevelCounter>();
  spdlog::logger log("test", sink);
  log.set_level(spdlog::level::info);
  TransferDisplay display("collective", 1, log);
  display.progress().runs = 1;
  display.progress().all = 1'073'610'752;
  display.progress().done = 4'096;
  while (sink->warnings == 0 || sink->lines == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  REQUIRE(sink->warnings == 1);
}

}  // namespace trainyard
