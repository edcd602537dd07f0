// SPDX-License-Identifier: Apache-2.0
// A host surrounds a run inside another program: it hears what the run says, and may end it.
// Loops at every depth ask for it, so it is the one thing that belongs to a thread instead of being
// handed down. Whoever starts threads for a run gives them its host. The program itself has none.
#pragma once

#include <atomic>
#include <exception>
#include <string_view>

namespace trainyard {

class ControlCallback;

// All functions may be called by several threads at once.
class RunHost {
 public:
  RunHost() = default;
  RunHost(const RunHost&) = delete;
  RunHost& operator=(const RunHost&) = delete;

  // A line of the log, without its end: "warning: ...".
  virtual void log(std::string_view line) = 0;
  // How far the run is: "points: 3 of 12, about 40 s left".
  virtual void show_progress(std::string_view line) = 0;
  [[nodiscard]] virtual bool wants_progress() const = 0;
  [[nodiscard]] virtual bool wants_end() const = 0;
  // The congestion control of the host, or nothing. A run that has one goes on one thread.
  [[nodiscard]] virtual ControlCallback* control() { return nullptr; }
  [[nodiscard]] virtual bool wants_one_thread() const { return false; }

  // Displays of progress may stand in each other; the outermost one is shown. True for one at once.
  [[nodiscard]] bool take_display() {
    return wants_progress() && !is_display_taken_.exchange(true);
  }
  void give_display_back() { is_display_taken_ = false; }

 protected:
  ~RunHost() = default;

 private:
  std::atomic<bool> is_display_taken_{false};
};

// A host wanted the end of its run. This is no mistake of anyone.
class RunCancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

// The host of this thread, or nothing.
[[nodiscard]] RunHost* run_host();

// Gives this thread a host, or none, for as long as this lives.
class HostScope {
 public:
  explicit HostScope(RunHost* host);
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;

 private:
  RunHost* outer_;
};

// Throws RunCancelled where the host of this thread wants the end. Loops that can be long call it
// every few milliseconds, between events, where everything can be taken down.
void end_if_cancelled();

}  // namespace trainyard
