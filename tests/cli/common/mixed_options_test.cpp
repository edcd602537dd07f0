// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/mixed_options.h"

#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::vector<std::string> kMixedRun{
    "list", "--cluster", source_dir().string() + "/configs/clusters/fat-tree-k8-100g.yaml",
    "--effects", "off"};

// What it prints, or the line by which it refuses.
std::string run(const Command& command, const std::vector<std::string>& arguments) {
  std::ostringstream out;
  int status = 1;
  try {
    status = run_command(command, arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  REQUIRE(status == 0);
  return out.str();
}

std::vector<std::string> with_words(std::vector<std::string> first,
                                    const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string run_mixed(const std::vector<std::string>& options) {
  return run(traffic_command(),
             with_words(with_words(kMixedRun, {"--fidelity", "mixed"}), options));
}

const std::string kDgx = source_dir().string() + "/configs/clusters/dgx-h100.yaml";

// A ring of four servers with a GPU each, or NCCL's.
std::string run_ring(const std::vector<std::string>& options) {
  return run(
      collective_command(),
      with_words({"all_reduce", "--cluster", kDgx, "--nodes", "4", "--gpus-per-node", "1", "-b",
                  "1M", "-e", "1M", "--algo", "ring", "--channels", "1", "--effects", "off"},
                 options));
}

// 16 GPUs, tensor 8, data 2.
std::string run_step(const std::vector<std::string>& options) {
  return run(step_command(),
             with_words({"--cluster", kDgx, "--nodes", "2", "--workload", "bert-large", "--set",
                         "plan.tensor=8", "--set", "batch.micro=1", "--set", "batch.global=2",
                         "--method", "graph", "--runtime", "plain", "--effects", "off"},
                        options));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The group `shared` has two flows of 1,000,000 bytes, `late` one of 100,000.
TEST_CASE("groups, devices, links and crowds say what runs as packets") {
  REQUIRE(has(run_mixed({"--packets", "group=shared"}),
              "mixed: 2 messages of 2000000 bytes ran as packets, 1 of 100000 bytes as flows"));
  REQUIRE(has(run_mixed({"--packets", "group=late"}),
              "mixed: 1 messages of 100000 bytes ran as packets, 2 of 2000000 bytes as flows"));
  REQUIRE(has(run_mixed({"--packets", "group=late", "--packets", "group=shared"}),
              "mixed: 3 messages of 2100000 bytes ran as packets, 0 of 0 bytes as flows"));
  REQUIRE(has(run_mixed({"--packets", "device=server[0-1]/nic0"}),
              "mixed: 2 messages of 2000000 bytes ran as packets"));
  REQUIRE(has(run_mixed({"--packets", "link=server3/*,leaf*"}),
              "mixed: 1 messages of 100000 bytes ran as packets"));
  REQUIRE(has(run_mixed({"--packets", "crowd=2"}),
              "mixed: 3 messages of 2100000 bytes ran as packets"));
  REQUIRE(has(run_mixed({"--packets", "crowd=4"}),
              "mixed: 0 messages of 0 bytes ran as packets, 3 of 2100000 bytes as flows"));
}

TEST_CASE("what --packets cannot mean is refused in one line") {
  REQUIRE(run_mixed({}) == "--fidelity mixed: expected --packets WHICH beside it, found none");
  REQUIRE(run_mixed({"--packets", "group=none"}) ==
          "--packets: expected group=NAME of a group of the file, found \"group=none\"");
  REQUIRE(run_mixed({"--packets", "all"}) ==
          "--packets: expected link=A,B, device=NAME, crowd=N or group=NAME of a group of the "
          "file, found \"all\"");
  REQUIRE(run_mixed({"--packets", "link=leaf0"}) ==
          "--packets: expected link=A,B with nodes or patterns such as leaf*,spine0, found "
          "\"link=leaf0\"");
  REQUIRE(run_mixed({"--packets", "link=leaf0,leaf1"}) ==
          "--packets: expected two nodes with a link between them, found \"link=leaf0,leaf1\"");
  REQUIRE(run_mixed({"--packets", "device=nobody"}) ==
          "--packets: expected names or patterns of nodes that the cluster has, found "
          "\"device=nobody\"");
  REQUIRE(run_mixed({"--packets", "device=server[0/nic0"}) ==
          "--packets: expected a range of numbers such as [0-7] between brackets, found "
          "\"device=server[0/nic0\"");
  REQUIRE(run_mixed({"--packets", "crowd=1"}) ==
          "--packets: expected crowd=N with a number from 2, found \"crowd=1\"");
}

TEST_CASE("jobs run as packets beside others by their number, their text or their links") {
  const auto run_jobs = [](const std::string& which) {
    const std::vector<std::string> arguments{
        "--cluster", kDgx,           "--nodes",    "2",    "--job",     "bert-large@0",
        "--job",     "bert-large@1", "--steps",    "1",    "--effects", "off",
        "--packets", which,          "--fidelity", "mixed"};
    return run(jobs_command(), arguments);
  };
  REQUIRE(run_jobs("job=1") == run_jobs("job=bert-large@1"));
  REQUIRE(has(run_jobs("link=server*/*,leaf*"), "mixed: 0 messages of 0 bytes ran as packets"));
}

// 6 messages of 256 KiB leave each GPU.
TEST_CASE(
    "a collective runs as packets from and to a GPU of the plain runtime, an adapter of NCCL's") {
  const std::vector<std::string> mixed{"--fidelity", "mixed", "--packets"};
  const std::string plain =
      run_ring(with_words(mixed, {"device=server1/gpu0", "--runtime", "plain"}));
  REQUIRE(has(plain, "runtime plain, fidelity mixed"));
  REQUIRE(has(plain,
              "ring at 1MiB: mixed: 12 messages of 3145728 bytes ran as packets, 12 of "
              "3145728 bytes as flows"));
  const std::string all =
      run_ring(with_words(mixed, {"link=server*/*,leaf*", "--runtime", "plain"}));
  REQUIRE(has(all, "24 messages of 6291456 bytes ran as packets, 0 of 0 bytes as flows"));
  REQUIRE(has(run_ring(with_words(mixed, {"device=server1/nic*"})), "fidelity mixed"));
  REQUIRE(has(run_ring(with_words(mixed, {"device=server1/nic*"})), "mixed: "));
  REQUIRE(run_ring(with_words(mixed, {"calls=data"})) ==
          "--packets: expected link=A,B, device=NAME or crowd=N, found \"calls=data\"");
  REQUIRE(run_ring({"--fidelity", "mixed"}) ==
          "--fidelity mixed: expected --packets WHICH beside it, found none");
}

TEST_CASE("a step runs as packets by kinds of calls, where all traffic is on one network") {
  const std::vector<std::string> mixed{"--traffic", "shared", "--fidelity", "mixed", "--packets"};
  REQUIRE(has(run_step(with_words(mixed, {"calls=data"})), "mixed: "));
  REQUIRE(!has(run_step(with_words(mixed, {"calls=data"})), "mixed: 0 messages"));
  REQUIRE(has(run_step(with_words(mixed, {"calls=pipeline"})), "mixed: 0 messages of 0 bytes"));
  REQUIRE(has(run_step(with_words(mixed, {"calls=data", "--packets", "calls=tensor"})),
              "0 of 0 bytes as flows"));
  REQUIRE(run_step(with_words(mixed, {"calls=all"})) ==
          "--packets: expected calls=KIND with tensor, context, pipeline, data or expert, found "
          "\"calls=all\"");
  REQUIRE(run_step({"--fidelity", "mixed", "--packets", "calls=data"}) ==
          "--fidelity mixed: expected --method graph --runtime plain --traffic shared beside it, "
          "found traffic alone");
}

TEST_CASE("times of messages are noted where that is asked for") {
  const std::vector<std::string> plain{"--runtime", "plain"};
  for (const std::string fidelity : {"flow", "packet"}) {
    const std::string timed =
        run_ring(with_words(plain, {"--fidelity", fidelity, "--message-times"}));
    REQUIRE(has(timed, "ring at 1MiB: messages: 24, of which half took at most "));
    REQUIRE(!has(run_ring(with_words(plain, {"--fidelity", fidelity})), "messages: "));
  }
  REQUIRE(has(run_step({"--traffic", "shared", "--message-times"}), "messages: "));
}

TEST_CASE("notes say how many flows packets met, and that flows were not stopped") {
  MixedStats mixed;
  mixed.max_flows_met = 4;
  PacketStats packets;
  REQUIRE(!has(describe(mixed, packets), "met"));
  REQUIRE(!has(describe(mixed, packets), "stopped"));
  mixed.max_flows_met = 5;
  packets.pauses = 1;
  REQUIRE(has(describe(mixed, packets), "packets met up to 5 flows on a link"));
  REQUIRE(has(describe(mixed, packets), "; flows went on over ports that pauses stopped"));
}

}  // namespace
}  // namespace trainyard
