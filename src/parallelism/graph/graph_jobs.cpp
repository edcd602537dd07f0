// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_jobs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "parallelism/graph/graph_run.h"
#include "sim/check.h"
#include "sim/event.h"

namespace trainyard {
namespace {

class JobsRun final : private EventHandler {
 public:
  JobsRun(Simulator& simulator, std::span<const GraphJob> jobs, int steps)
      : EventHandler(simulator),
        simulator_(simulator),
        jobs_(jobs),
        steps_(static_cast<std::size_t>(steps)),
        times_(jobs.size()),
        began_(jobs.size()) {}

  std::vector<std::vector<SimTime>> run() {
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
      begin(job);
    }
    simulator_.run();
    for (const Step& step : running_) {
      if (!step.run->has_ended()) {
        check_finished(step.run->result(), jobs_[step.job].name + ": expected a step that ends");
      }
    }
    return std::move(times_);
  }

 private:
  // Kept until the end, as events of a run may be left in the queue when it is over.
  struct Step {
    std::size_t job;
    std::unique_ptr<GraphRun> run;
  };

  void begin(std::size_t job) {
    const GraphJob& each = jobs_[job];
    running_.push_back(
        {.job = job,
         .run = std::make_unique<GraphRun>(simulator_, each.graph, each.traffic, each.options)});
    began_[job] = simulator_.now();
    running_.back().run->notify(*this, job);
    running_.back().run->start();
  }

  // A step of the job is over.
  void on_event(std::uint64_t job) override {
    if (is_over_) {
      return;
    }
    times_[job].push_back(simulator_.now() - began_[job]);
    is_over_ = std::all_of(times_.begin(), times_.end(),
                           [&](const auto& times) { return times.size() >= steps_; });
    if (!is_over_) {
      begin(job);
    }
  }

  Simulator& simulator_;
  std::span<const GraphJob> jobs_;
  std::size_t steps_;
  std::vector<std::vector<SimTime>> times_;
  std::vector<SimTime> began_;
  std::vector<Step> running_;
  bool is_over_ = false;
};

}  // namespace

std::vector<std::vector<SimTime>> run_together(Simulator& simulator, std::span<const GraphJob> jobs,
                                               int steps) {
  CHECK(steps >= 1, "jobs do something");
  for (const GraphJob& job : jobs) {
    CHECK(!job.graph.operations().empty(), "a step has operations");
  }
  return JobsRun(simulator, jobs, steps).run();
}

}  // namespace trainyard
