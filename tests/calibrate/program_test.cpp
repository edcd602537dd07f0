// SPDX-License-Identifier: Apache-2.0
// The whole harness over the fake machine, as its users run it.
#include "support/catch.h"

#include "calibrate/program.h"

#include <algorithm>

#include "calibrate/catalogue.h"
#include "calibrate/fake_backend.h"
#include "calibrate/result_set.h"
#include "calibrate/session.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard::calibrate {
namespace {

// A command line in a folder of its own, in which `calibrate` is the fake program.
class HarnessRun {
 public:
  ProgramResult operator()(const std::string& command) const {
    return run_shell("calibrate() { trainyard \"$@\"; }\n" + command, scratch_.path());
  }
  [[nodiscard]] ResultSet set(const std::string& name = "a.json") const {
    return read_result_set(scratch_.path() / name);
  }
  [[nodiscard]] const std::filesystem::path& folder() const { return scratch_.path(); }

 private:
  ScratchFolder scratch_;
};

const Result& result(const ResultSet& set, const std::string& id) {
  for (const Result& each : set.results) {
    if (each.id == id) {
      return each;
    }
  }
  FAIL(id);
  return set.results.front();
}

TEST_CASE("the harness measures what the machine has and says why it leaves out the rest") {
  const HarnessRun run;
  const ProgramResult ended = run("calibrate -o a.json --only 'gpu.*,peer.latency'");
  REQUIRE(ended.status == 0);
  REQUIRE(ended.output.empty());
  REQUIRE(ended.error.find("[1/16, ") == 0);
  REQUIRE(ended.error.find("peer.latency ... not measured: needs 2 GPUs, found 1\n") !=
          std::string::npos);
  const ResultSet set = run.set();
  REQUIRE(set.complete);
  REQUIRE(set.backend == "fake");
  REQUIRE(result(set, "peer.latency").status == Status::NotMeasured);
  const Result& memory = result(set, "gpu.memory");
  REQUIRE(memory.samples.size() == 3);
  const Summary& summary = memory.samples[0].summary;
  REQUIRE(summary.count == 30);
  REQUIRE(summary.max <= fake_rate("gpu.memory"));
  REQUIRE(summary.min >= fake_rate("gpu.memory") / 1.06);
  REQUIRE(run("calibrate --check a.json").output ==
          "a.json: complete, 15 measured, 1 not measured, 0 failed, 0 timed out\n");
}

TEST_CASE("equal seeds give equal measurement sets of the fake machine") {
  const HarnessRun run;
  REQUIRE(run("calibrate -o a.json --only gpu.launch; calibrate -o b.json --only gpu.launch\n"
              "TRAINYARD_FAKE_SEED=2 calibrate -o c.json --only gpu.launch")
              .status == 0);
  const auto median = [&run](const std::string& name) {
    return run.set(name).results[0].samples[0].summary.median;
  };
  REQUIRE(median("a.json") == median("b.json"));
  REQUIRE(median("a.json") != median("c.json"));
}

TEST_CASE("a measurement that hangs is killed, written down, and the next one is taken") {
  const HarnessRun run;
  const ProgramResult ended =
      run("TRAINYARD_FAKE_HANG=gpu.launch calibrate -o a.json --timeout 2"
          " --only gpu.launch,gpu.graph || exit 40");
  REQUIRE(ended.status == 40);
  const ResultSet set = run.set();
  REQUIRE(set.complete);
  const Result& hung = result(set, "gpu.launch");
  REQUIRE(hung.status == Status::TimedOut);
  REQUIRE(hung.reason == "no end within 2 s; killed");
  REQUIRE(hung.samples.size() == 1);  // What came before.
  REQUIRE(result(set, "gpu.graph").status == Status::Measured);
  REQUIRE(run("calibrate --check a.json || exit 41").status == 41);
}

TEST_CASE("a measurement that fails in any way costs no other") {
  const HarnessRun run;
  const ProgramResult ended =
      run("export TRAINYARD_FAKE_FAIL=gpu.memory TRAINYARD_FAKE_CRASH=gpu.launch"
          " TRAINYARD_FAKE_NONSENSE=gpu.graph TRAINYARD_FAKE_EMPTY=gpu.host-link"
          " TRAINYARD_FAKE_SKIP=gpu.host-flag\n"
          "ulimit -c 0; calibrate -o a.json --only 'gpu.*' || exit $((40 + $?))");
  REQUIRE(ended.status == 41);
  const ResultSet set = run.set();
  REQUIRE(result(set, "gpu.memory").reason == "the device said no");
  REQUIRE(result(set, "gpu.launch").reason.find("ended by signal 6") == 0);
  REQUIRE(result(set, "gpu.graph").reason.find("its output cannot be read: ") == 0);
  REQUIRE(result(set, "gpu.host-link").reason == "it found nothing");
  REQUIRE(result(set, "gpu.host-flag").status == Status::NotMeasured);
  REQUIRE(result(set, "gpu.host-flag").reason == "this device has no such part");
  REQUIRE(result(set, "gpu.elementwise").status == Status::Measured);
}

TEST_CASE("a run that is killed goes on where it was") {
  const HarnessRun run;
  // The third measurement hangs, and the whole run dies in it.
  const ProgramResult killed = run("TRAINYARD_FAKE_HANG=gpu.graph '" + program_path() +
                                   "' -o a.json --only 'gpu.*' 2>log &\n"
                                   "run=$!\n"
                                   "until grep -q 'gpu.graph' log; do sleep 0.02; done\n"
                                   "kill -9 $run; wait $run 2>/dev/null || echo ended with $?");
  REQUIRE(killed.output == "ended with 137\n");
  const ResultSet before = run.set();
  REQUIRE_FALSE(before.complete);
  REQUIRE(before.results.size() == 2);
  const ProgramResult gone_on = run("calibrate -o a.json --only 'gpu.*' --resume");
  REQUIRE(gone_on.status == 0);
  REQUIRE(gone_on.error.find("gpu.memory") == std::string::npos);
  REQUIRE(gone_on.error.find("[3/15, ") == 0);
  const ResultSet after = run.set();
  REQUIRE(after.complete);
  REQUIRE(after.started == before.started);
  REQUIRE(after.results.size() == 15);
  REQUIRE(after.results[1].seconds == before.results[1].seconds);
}

TEST_CASE("a mode of NCCL that hangs costs the watchdog's patience once") {
  const HarnessRun run;
  const std::string command = "calibrate -o a.json --timeout 2 --only 'nccl.hosts.*'";
  REQUIRE(run("TRAINYARD_FAKE_HANG=nccl.hosts.default " + command + " || exit 40").status == 40);
  const ResultSet hung = run.set();
  REQUIRE(result(hung, "nccl.hosts.default").status == Status::TimedOut);
  REQUIRE(result(hung, "nccl.hosts.Ring.LL.c1").status == Status::NotMeasured);
  REQUIRE(result(hung, "nccl.hosts.Ring.LL.c1").reason == "nccl.hosts.default timed out");
  REQUIRE(run(command + " --resume").status == 0);
  const ResultSet whole = run.set();
  REQUIRE(std::all_of(whole.results.begin(), whole.results.end(),
                      [](const Result& each) { return each.status == Status::Measured; }));
}

TEST_CASE("going on tries again what failed") {
  const HarnessRun run;
  REQUIRE(run("TRAINYARD_FAKE_FAIL=gpu.launch calibrate -o a.json --only gpu.launch,gpu.graph ||"
              " calibrate -o a.json --only gpu.launch,gpu.graph --resume")
              .status == 0);
  REQUIRE(run.set().results.size() == 2);
  REQUIRE(result(run.set(), "gpu.launch").status == Status::Measured);
}

TEST_CASE("a run neither overwrites another one nor continues with one of another machine") {
  const HarnessRun run;
  REQUIRE(run("calibrate -o a.json --only gpu.launch").status == 0);
  const auto refusal = [&run](const std::string& command) {
    const ProgramResult ended = run(command + " || exit $((40 + $?))");
    REQUIRE(ended.status == 42);
    return ended.error;
  };
  REQUIRE(refusal("calibrate -o a.json --only gpu.launch") ==
          "trainyard-calibrate: --output: a.json exists: --resume continues with it\n");
  REQUIRE(refusal("TRAINYARD_FAKE_NAME=b calibrate -o a.json --only gpu.launch --resume") ==
          "trainyard-calibrate: --resume: a.json: expected the GPUs \"GPU-fake-b-0\", found "
          "\"GPU-fake-a-0\"\n");
  REQUIRE(refusal("calibrate -o a.json --resume") ==
          "trainyard-calibrate: --resume: a.json: expected --only \"\", found \"gpu.launch\"\n");
  REQUIRE(refusal("calibrate -o b.json --resume") ==
          "trainyard-calibrate: b.json: expected a measurement set, found no file that can be "
          "read\n");
  REQUIRE(refusal("calibrate -o none/a.json") ==
          "trainyard-calibrate: none/a.json: cannot be written: No such file or directory\n");
  REQUIRE(refusal("TRAINYARD_FAKE_GPUS=0 calibrate -o b.json") ==
          "trainyard-calibrate: no CUDA device was found\n");
  REQUIRE(refusal("calibrate --fast") ==
          "trainyard-calibrate: expected an option, found \"--fast\"; see trainyard-calibrate "
          "--help\n");
}

TEST_CASE("a dry run shows plan and time and measures nothing") {
  const HarnessRun run;
  const ProgramResult one = run("calibrate --dry-run --only gpu.memory,peer.latency");
  REQUIRE(one.status == 0);
  REQUIRE(one.output.find("gpu.memory                         15 s, killed after 75 s\n") !=
          std::string::npos);
  REQUIRE(one.output.find("not measured: needs 2 GPUs, found 1\n") != std::string::npos);
  REQUIRE(one.output.find("about 15 s in all\n") != std::string::npos);
  REQUIRE(std::filesystem::is_empty(run.folder()));
  const ProgramResult eight = run("TRAINYARD_FAKE_GPUS=8 calibrate --dry-run --only peer.latency");
  REQUIRE(eight.output.find("not measured") == std::string::npos);
  REQUIRE(run("calibrate --list").output.find("\ngpu.launch ") != std::string::npos);
  REQUIRE(run("calibrate --help").output.find("--resume") != std::string::npos);
}

TEST_CASE("ranks of a launcher measure together and rank 0 writes") {
  const HarnessRun run;
  const ProgramResult ended = run(
      "for rank in 0 1 2; do\n"
      "  calibrate -o a.json --only '*.default,*.c1' --rank $rank --ranks 3 --rendezvous meet &\n"
      "  jobs=\"$jobs $!\"\n"
      "done\n"
      "for job in $jobs; do wait $job; done\n");
  REQUIRE(ended.status == 0);
  const ResultSet set = run.set();
  REQUIRE(set.complete);
  REQUIRE(set.ranks == 3);
  REQUIRE(set.results.size() == 7);
  REQUIRE(std::all_of(set.results.begin(), set.results.end(), [](const Result& each) {
    return each.status == Status::Measured && each.id.starts_with("network.");
  }));
  REQUIRE(run("calibrate -o b.json --ranks 3 --rendezvous meet || exit 40").error ==
          "trainyard-calibrate: --rendezvous: expected a new or empty folder, found \"meet\"\n");
}

TEST_CASE("the time left follows how long the measurements took") {
  std::vector<Measurement> plan(3);
  for (Measurement& each : plan) {
    each.seconds = 60;
  }
  Progress progress(plan);
  REQUIRE(progress.seconds_left() == 180.0);
  progress.finish(plan[0], 180.0);  // Three times as long as expected.
  REQUIRE(progress.seconds_left() == 240.0);
  progress.finish(plan[1], 0.0);  // Passed over.
  REQUIRE(progress.seconds_left() == 120.0);
  REQUIRE(duration_text(59.4) == "59 s");
  REQUIRE(duration_text(200.0) == "3 min 20 s");
}

}  // namespace
}  // namespace trainyard::calibrate
