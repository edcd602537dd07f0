// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/long_run_display.h"

#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace trainyard {
namespace {

class LastLine final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  [[nodiscard]] std::string text() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }
  std::atomic<int> lines{0};

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_ = std::string(message.payload.begin(), message.payload.end());
    ++lines;
  }
  void flush_() override {}

  std::string text_;
};

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

TEST_CASE("what is left of tasks follows from those that are done") {
  REQUIRE(so_far("points", 0, 12, 5.0) == "points: 0 of 12, 5 s so far");
  REQUIRE(so_far("points", 3, 12, 5.0) == "points: 3 of 12, about 15 s left");
  REQUIRE(so_far("step", 14.2) == "step: 14 s so far");
}

TEST_CASE("a run of which nothing is known is said to go on after two seconds, and not before") {
  const auto sink = std::make_shared<LastLine>();
  spdlog::logger log("test", sink);
  log.set_level(spdlog::level::info);
  { const LongRunDisplay brief("brief", &log); }
  REQUIRE(sink->lines == 0);
  const auto start = std::chrono::steady_clock::now();
  {
    const LongRunDisplay display("step", &log);
    while (sink->lines == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  REQUIRE(std::chrono::steady_clock::now() - start > std::chrono::seconds(2));
  REQUIRE(sink->text().starts_with("step: "));
  REQUIRE(sink->text().ends_with(" s so far"));
}

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
