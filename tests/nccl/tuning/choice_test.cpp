// SPDX-License-Identifier: Apache-2.0
// The switch points are what NCCL 2.30.7's own host code chooses for the machines of
// support/nccl_machines.h: the smallest power of two from which an entry is taken.
#include "support/catch.h"

#include <cstdint>
#include <string>
#include <vector>

#include "nccl/tuning/choice.h"
#include "nccl/tuning/tuner_csv.h"
#include "sim/config_error.h"
#include "sim/random.h"
#include "support/nccl_machines.h"

namespace trainyard::nccl {
namespace {

// "Ring LL, 2^21 NVLS Simple". `exponents` are of the payload of all ranks together.
std::string selection(const TunedMachine& machine, Function function, int first, int last) {
  const Communicator communicator = communicator_of(machine);
  std::string text;
  std::string before;
  for (int exponent = first; exponent <= last; ++exponent) {
    const std::int64_t total = std::int64_t{1} << exponent;
    const std::int64_t share =
        total / (total_bytes(function, Bytes(1), communicator.ranks).count());
    const CallPlan plan = plan_call(communicator, {}, function, Bytes(share));
    const std::string chosen =
        std::string(to_string(plan.algorithm)) + " " + std::string(to_string(plan.protocol));
    if (text.empty()) {
      text = chosen;
    } else if (chosen != before) {
      text += ", 2^" + std::to_string(exponent) + " " + chosen;
    }
    before = chosen;
  }
  return text;
}

struct Switches {
  const char* name;
  TunedMachine machine;
  const char* all_reduce;
  const char* all_gather;  // Null where not known.
};

std::vector<Switches> switch_points() {
  return {
      {"H100", h100_node(), "Ring LL, 2^21 NVLS Simple",
       "Ring LL, 2^23 Ring LL128, 2^25 Ring Simple"},
      {"H100 x2", h100_400g(2), "Tree LL, 2^18 Tree LL128, 2^21 NVLSTree Simple",
       "Ring LL, 2^20 Ring LL128, 2^26 Ring Simple"},
      {"H100 x4", h100_400g(4), "Tree LL, 2^18 Tree LL128, 2^23 NVLSTree Simple, 2^30 Ring Simple",
       "Ring LL, 2^20 Ring LL128, 2^27 Ring Simple"},
      {"H100 x128", h100_400g(128), "Tree LL, 2^18 Tree LL128, 2^25 NVLSTree Simple",
       "Ring LL, 2^25 Ring LL128, 2^32 Ring Simple"},
      {"H100 8x200G x2", h100_200g(2), "Tree LL, 2^18 Tree LL128, 2^23 NVLSTree Simple",
       "Ring LL, 2^21 Ring LL128, 2^26 Ring Simple"},
      {"H100 4 NICs x2", h100_4nics(2),
       "Tree LL, 2^18 Tree LL128, 2^25 NVLSTree Simple, 2^27 Tree LL128, 2^29 Tree Simple",
       "Ring LL, 2^21 Ring LL128, 2^26 Ring Simple"},
      {"H100 16x200G x2", h100_16nics(2),
       "Tree LL, 2^18 Tree LL128, 2^24 Ring LL128, 2^28 Ring Simple",
       "Ring LL, 2^20 Ring LL128, 2^27 Ring Simple"},
      {"4 H100", h100_4gpus(), "Ring LL, 2^22 Ring LL128, 2^24 Ring Simple", nullptr},
      {"B200", b200_node(), "Ring LL, 2^22 NVLS Simple",
       "Ring LL, 2^24 Ring LL128, 2^25 Ring Simple"},
      {"B200 400G x2", b200_400g(2), "Tree LL, 2^18 Tree LL128, 2^21 NVLSTree Simple",
       "Ring LL, 2^20 Ring LL128, 2^26 Ring Simple"},
      {"B200 800G x2", b200_800g(2),
       "Tree LL, 2^18 Tree LL128, 2^24 Ring LL128, 2^26 NVLSTree Simple, 2^29 Ring Simple, "
       "2^30 NVLSTree Simple",
       "Ring LL, 2^20 Ring LL128, 2^27 Ring Simple"},
      {"A100", a100_node(), "Ring LL, 2^22 Ring LL128, 2^25 Ring Simple",
       "Ring LL, 2^22 Ring LL128, 2^24 Ring Simple"},
      {"A100 200G x2", a100_200g(2), "Tree LL, 2^19 Tree Simple, 2^25 Ring Simple",
       "Ring LL, 2^21 Ring Simple"},
      {"A100 100G x2", a100_100g(2), "Tree LL, 2^18 Ring LL, 2^21 Tree Simple",
       "Ring LL, 2^22 Ring Simple"},
      {"H100 bridge", h100_bridge(), "Ring LL, 2^21 Ring Simple", nullptr},
      {"PCIe", pcie_4gpus(), "Ring LL, 2^19 Ring Simple", "Ring LL, 2^19 Ring Simple"},
      {"1 H100 x2", h100_1gpu(2), "Ring LL, 2^20 Ring LL128, 2^24 Ring Simple",
       "Ring LL, 2^20 PAT Simple, 2^21 Ring Simple"},
      {"sockets x2", socket_1gpu(2), "Ring LL, 2^16 Ring Simple",
       "Ring LL, 2^15 PAT Simple, 2^16 Ring Simple"},
      {"sockets x4", socket_1gpu(4), "Tree LL, 2^11 Ring LL, 2^17 Ring Simple",
       "Ring LL, 2^16 Ring Simple"},
      {"sockets x8", socket_1gpu(8), "Tree LL, 2^13 Ring LL, 2^18 Ring Simple",
       "Ring LL, 2^12 PAT Simple, 2^18 Ring Simple"},
      {"shared H100", h100_shared(), "Ring LL, 2^21 Ring LL128, 2^22 Ring Simple",
       "Ring LL, 2^21 Ring Simple"},
  };
}

TEST_CASE("every switch between algorithms and protocols is where NCCL has it", "[nccl][choice]") {
  for (const Switches& expected : switch_points()) {
    INFO(expected.name);
    REQUIRE(selection(expected.machine, Function::AllReduce, 10, 33) == expected.all_reduce);
    if (expected.all_gather != nullptr) {
      REQUIRE(selection(expected.machine, Function::AllGather, 10, 33) == expected.all_gather);
    }
  }
}

std::string parts_of(const CallPlan& plan) {
  std::string text;
  for (const ChannelPart& part : plan.parts) {
    text += (text.empty() ? "" : " ") + std::to_string(part.channels) + "x" +
            std::to_string(part.bytes.count());
  }
  return text;
}

CallPlan forced(const char* algorithm, const char* protocol, Bytes bytes) {
  Environment environment;
  environment.selection.set_algorithms(algorithm);
  environment.selection.set_protocols(protocol);
  return plan_call(communicator_of(h100_node(), environment), environment, Function::AllReduce,
                   bytes);
}

TEST_CASE("small calls shed channels and threads, large ones fill all", "[nccl][choice]") {
  CallPlan plan = forced("Ring", "LL", kib(1));
  REQUIRE(plan.channels == 1);
  REQUIRE(plan.threads == 96);
  REQUIRE(parts_of(plan) == "1x1024");
  plan = forced("Ring", "LL", kib(64));
  REQUIRE(plan.threads == 512);
  REQUIRE(parts_of(plan) == "1x32768 1x32768");
  plan = forced("Ring", "LL", mib(1));
  REQUIRE(plan.channels == 24);
  REQUIRE(parts_of(plan) == "1x45056 22x45056 1x12288");
  plan = forced("Ring", "LL128", mib(1));
  REQUIRE(plan.channels == 22);
  REQUIRE(plan.threads == 640);
  REQUIRE(parts_of(plan) == "1x49152 20x49152 1x16384");
  plan = forced("Ring", "Simple", mib(16));
  REQUIRE(parts_of(plan) == "1x704512 22x704512 1x573440");
  REQUIRE(plan.threads == 544);
  plan = forced("Ring", "Simple", gib(1));
  REQUIRE(plan.channels == 24);
  REQUIRE(plan.parts.front().bytes == Bytes(44'744'704));
  REQUIRE(plan.parts.front().chunk == mib(2));
  REQUIRE(plan.slices == 2);
  REQUIRE(plan.chunk_steps == 4);
  REQUIRE(plan.step == kib(512));
  REQUIRE(forced("Tree", "Simple", gib(1)).threads == 640);
  REQUIRE(forced("NVLS", "Simple", kib(1)).threads == 640);
}

TEST_CASE("the plan says why: what was second, what forced it", "[nccl][choice]") {
  const Communicator communicator = communicator_of(h100_node());
  const CallPlan plan = plan_call(communicator, {}, Function::AllReduce, mib(2));
  REQUIRE(plan.reason == "least estimate, 32.7 us; then Ring LL with 41.0 us");
  REQUIRE(plan.costs.size() == 21);
  REQUIRE(forced("Ring", "LL", mib(2)).reason ==
          "the only one available (NCCL_ALGO=Ring NCCL_PROTO=LL)");
}

TEST_CASE("variables that leave nothing are an error that names them", "[nccl][choice]") {
  REQUIRE_THROWS_WITH(forced("NVLS", "LL", kib(1)),
                      "NCCL_ALGO=NVLS NCCL_PROTO=LL: no algorithm and protocol left for AllReduce");
  REQUIRE_THROWS_AS(forced("PAT", "Simple", kib(1)), ConfigError);
  Environment environment;
  environment.selection.set_algorithms("Tree");
  const Communicator communicator = communicator_of(h100_node(), environment);
  REQUIRE(plan_call(communicator, environment, Function::AllReduce, gib(1)).algorithm ==
          Algorithm::Tree);
  REQUIRE_THROWS_AS(plan_call(communicator, environment, Function::Broadcast, gib(1)), ConfigError);
}

TEST_CASE("operation and data type rule algorithms out", "[nccl][choice]") {
  const Communicator communicator = communicator_of(h100_node());
  CallOptions options;
  options.nvls_reducible = false;
  REQUIRE(plan_call(communicator, {}, Function::AllReduce, gib(1), options).algorithm ==
          Algorithm::Ring);
  const Communicator nodes = communicator_of(h100_1gpu(2));
  REQUIRE(plan_call(nodes, {}, Function::ReduceScatter, kib(512)).algorithm == Algorithm::Pat);
  options.pat_reducible = false;
  REQUIRE(plan_call(nodes, {}, Function::ReduceScatter, kib(512), options).algorithm ==
          Algorithm::Ring);
  REQUIRE(plan_call(nodes, {}, Function::AllGather, kib(512), options).algorithm == Algorithm::Pat);
  options = {};
  options.fp8 = true;
  const Communicator many = communicator_of(h100_16nics(2));
  REQUIRE(plan_call(many, {}, Function::AllReduce, mib(64)).algorithm == Algorithm::Ring);
  REQUIRE(plan_call(many, {}, Function::AllReduce, mib(64), options).algorithm != Algorithm::Ring);
}

TEST_CASE("PAT keeps all channels however small the call", "[nccl][choice]") {
  Environment environment;
  environment.selection.set_algorithms("PAT");
  const Communicator communicator = communicator_of(h100_1gpu(16), environment);
  const CallPlan plan = plan_call(communicator, environment, Function::AllGather, kib(64));
  REQUIRE(plan.channels == 4);
  REQUIRE(plan.threads == 640);
}

TEST_CASE("NVLS between nodes shares one loop over all channels", "[nccl][choice]") {
  TunedMachine machine = h100_400g(2);
  machine.input.aligned.collnet_chain =
      found_graph(GraphPattern::Tree, 8, 48, 48, PathType::Nvl, PathType::Pix);
  Environment environment;
  environment.collnet_enable = true;
  environment.selection.set_algorithms("NVLS");
  const Communicator communicator = communicator_of(machine, environment);
  const CallPlan plan = plan_call(communicator, environment, Function::AllReduce, gib(1));
  REQUIRE(parts_of(plan) == "16x1073741824");
  REQUIRE(plan.parts.front().chunk == kib(128));
}

TEST_CASE("a row of the tuner's table wins where it fits and is possible", "[nccl][choice]") {
  const Communicator communicator = communicator_of(h100_node());
  const TunerTable tuner = TunerTable::parse(
      "allreduce,0,4096,tree,simple,2,-1,-1\nallreduce,4097,8192,pat,simple,-1,-1,-1\n", "my.csv");
  CallOptions options;
  options.tuner = &tuner;
  CallPlan plan = plan_call(communicator, {}, Function::AllReduce, kib(4), options);
  REQUIRE(plan.algorithm == Algorithm::Tree);
  REQUIRE(plan.protocol == Protocol::Simple);
  REQUIRE(plan.channels == 1);  // The bytes fill one cell.
  REQUIRE(plan.reason == "my.csv:1");
  plan = plan_call(communicator, {}, Function::AllReduce, kib(8), options);
  REQUIRE(plan.algorithm == Algorithm::Ring);
  REQUIRE(plan.reason.find("; my.csv:2 wants PAT Simple, which is not available") !=
          std::string::npos);
  REQUIRE(plan_call(communicator, {}, Function::AllReduce, kib(16), options).algorithm ==
          Algorithm::Ring);
}

TEST_CASE("a call of nothing has no channels", "[nccl][choice]") {
  const CallPlan plan = plan_call(communicator_of(h100_node()), {}, Function::AllReduce, Bytes(0));
  REQUIRE(plan.channels == 0);
  REQUIRE(plan.parts.empty());
}

TEST_CASE("parts add up and keep to the limits for any size", "[nccl][choice]") {
  const std::vector<TunedMachine> machines{h100_node(),    h100_400g(4),  b200_800g(2),
                                           a100_200g(2),   pcie_4gpus(),  h100_1gpu(8),
                                           socket_1gpu(4), h100_bridge(), h100_4gpus()};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "calls");
    const TunedMachine& machine = machines[random.below(machines.size())];
    const Communicator communicator = communicator_of(machine);
    const Function function = kFunctions[random.below(kFunctions.size())];
    const std::uint64_t scale = random.below(34);
    const Bytes bytes(1 + static_cast<std::int64_t>(random.below(std::uint64_t{1} << scale)));
    const CallPlan plan = plan_call(communicator, {}, function, bytes);
    Bytes sum;
    int channels = 0;
    for (const ChannelPart& part : plan.parts) {
      REQUIRE(part.bytes > Bytes(0));
      REQUIRE(part.chunk > Bytes(0));
      sum += part.bytes * part.channels;
      channels += part.channels;
    }
    REQUIRE(sum == bytes);
    REQUIRE(channels == plan.channels);
    REQUIRE(channels <= std::max(communicator.channels, communicator.nvls_channels));
    REQUIRE(plan.parts.size() <= 3);
    REQUIRE(plan.threads % 32 == 0);
    REQUIRE(plan.threads >= 96);
    REQUIRE(plan.threads <= 640);
    for (const CostRow& row : plan.costs) {
      REQUIRE((!row.time_us || *row.time_us >= plan.time_us));
    }
  }
}

}  // namespace
}  // namespace trainyard::nccl
