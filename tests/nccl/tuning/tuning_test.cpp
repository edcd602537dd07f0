// SPDX-License-Identifier: Apache-2.0
// The golden tables are what NCCL 2.30.7's own host code computes for the machines of
// support/nccl_machines.h, latency in microseconds and algorithm bandwidth in GB/s with one digit
// behind the point, as NCCL prints them.
#include "support/catch.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "nccl/tuning/tuning.h"
#include "support/nccl_machines.h"

namespace trainyard::nccl {
namespace {

std::string printed(const TuningCell& cell) {
  if (cell.bandwidth == 0.0) {
    return "-";
  }
  std::array<char, 64> text = {};
  std::snprintf(text.data(), text.size(), "%.1f/%.1f", cell.latency, cell.bandwidth);
  return text.data();
}

// LL, LL128, Simple.
std::string row(const TuningTable& table, Function function, Algorithm algorithm) {
  std::string text;
  for (const Protocol protocol : kProtocols) {
    text += (text.empty() ? "" : " ") + printed(table.cell(function, algorithm, protocol));
  }
  return text;
}

std::string all_reduce_tuning(const TunedMachine& machine, Algorithm algorithm) {
  return row(make_tuning_table(machine.input, {}), Function::AllReduce, algorithm);
}

std::string all_gather_tuning(const TunedMachine& machine, Algorithm algorithm = Algorithm::Ring) {
  const TuningTable table = make_tuning_table(machine.input, {});
  const std::string text = row(table, Function::AllGather, algorithm);
  REQUIRE(row(table, Function::ReduceScatter, algorithm) == text);
  return text;
}

struct Golden {
  const char* name;
  TunedMachine machine;
  const char* tree;
  const char* ring;
  const char* nvls;  // "-" where there is none.
  const char* nvls_tree;
  const char* gather;  // Ring of AllGather and ReduceScatter; null where not known.
};

std::vector<Golden> goldens() {
  return {
      {"H100", h100_node(), "15.2/43.6 31.5/128.8 64.4/165.6", "15.0/80.6 40.6/189.3 56.0/205.7",
       "25.0/272.0", "-", "10.8/161.1 27.3/378.5 32.2/411.4"},
      {"H100 x2", h100_400g(2), "25.2/16.6 48.5/124.8 92.4/140.8",
       "40.0/20.8 75.2/156.6 131.6/204.8", "-", "66.8/246.2", "23.3/41.6 44.6/313.2 70.0/409.6"},
      {"H100 x4", h100_400g(4), "35.2/8.7 65.5/98.6 120.4/122.4",
       "78.8/10.5 144.4/151.5 282.8/198.2", "-", "108.6/187.9", "42.7/21.1 79.2/303.1 145.6/396.4"},
      {"H100 x128", h100_400g(128), "85.2/8.7 150.5/98.6 260.4/122.4",
       "2484.4/10.2 4434.8/146.9 9657.2/192.2", "-", "317.6/182.2",
       "1245.5/20.4 2224.4/293.9 4832.8/384.4"},
      {"H100 8x200G x2", h100_200g(2), "25.2/16.6 48.5/124.8 92.4/140.8",
       "40.0/20.8 75.2/94.2 131.6/102.4", "-", "66.8/152.3", "23.3/41.6 44.6/188.4 70.0/204.8"},
      {"H100 4 NICs x2", h100_4nics(2), "25.2/16.6 48.5/124.8 92.4/140.8",
       "40.0/20.8 75.2/94.2 131.6/102.4", "-", "66.8/123.1", "23.3/41.6 44.6/188.4 70.0/204.8"},
      {"H100 16x200G x2", h100_16nics(2), "25.2/16.6 48.5/140.8 92.4/150.1",
       "40.0/20.8 75.2/188.4 131.6/204.8", "-", "66.8/152.3", "23.3/41.6 44.6/376.8 70.0/409.6"},
      {"4 H100", h100_4gpus(), "10.4/43.6 21.5/128.8 32.4/165.6", "10.2/94.0 25.4/220.8 28.8/240.0",
       "25.0/160.0", "-", nullptr},
      {"B200", b200_node(), "15.2/87.2 31.5/257.6 64.4/331.2", "15.0/161.1 40.6/365.7 56.0/411.4",
       "25.0/411.4", "-", "10.8/322.3 27.3/731.4 32.2/822.9"},
      {"B200 400G x2", b200_400g(2), "25.2/16.6 48.5/107.7 92.4/145.5",
       "40.0/20.8 75.2/170.7 131.6/204.8", "-", "66.8/265.2", "23.3/41.6 44.6/341.3 70.0/409.6"},
      {"B200 800G x2", b200_800g(2), "25.2/16.6 48.5/215.4 92.4/291.0",
       "40.0/20.8 75.2/341.3 131.6/409.6", "-", "66.8/409.6", "23.3/41.6 44.6/682.7 70.0/819.2"},
      {"A100", a100_node(), "15.2/29.1 31.5/85.9 64.4/110.4", "15.0/50.1 40.6/126.2 56.0/137.1",
       "-", "-", "10.8/100.2 27.3/252.3 32.2/274.3"},
      {"A100 200G x2", a100_200g(2), "25.2/11.2 - 92.4/88.3", "68.0/12.0 - 204.4/102.4", "-", "-",
       "37.3/24.0 - 106.4/204.8"},
      {"A100 100G x2", a100_100g(2), "25.2/19.5 - 92.4/88.3", "40.0/20.8 - 131.6/51.2", "-", "-",
       "23.3/41.6 - 70.0/102.4"},
      {"H100 bridge", h100_bridge(), "8.0/61.1 16.5/180.6 16.4/232.2",
       "7.8/141.0 17.8/331.2 15.2/360.0", "-", "-", nullptr},
      {"PCIe", pcie_4gpus(), "12.8/2.4 - 32.4/9.2", "12.6/6.7 - 42.6/13.3", "-", "-",
       "9.6/13.3 - 25.5/26.7"},
      {"1 H100 x2", h100_1gpu(2), "16.8/9.3 31.0/31.2 36.4/35.2", "16.6/24.0 31.0/44.2 36.4/48.0",
       "-", "-", "11.6/48.0 22.5/88.3 22.4/96.0"},
      {"shared H100", h100_shared(), "8.8/23.2 17.8/68.7 16.4/88.3",
       "8.6/141.0 19.0/1174.4 19.8/1920.0", "-", "-", "7.6/282.0 16.5/2348.8 14.1/3840.0"},
  };
}

TEST_CASE("every cell of the tuning table is NCCL's", "[nccl][tuning]") {
  for (const Golden& golden : goldens()) {
    INFO(golden.name);
    REQUIRE(all_reduce_tuning(golden.machine, Algorithm::Tree) == golden.tree);
    REQUIRE(all_reduce_tuning(golden.machine, Algorithm::Ring) == golden.ring);
    REQUIRE(all_reduce_tuning(golden.machine, Algorithm::Nvls) ==
            "- - " + std::string(golden.nvls));
    REQUIRE(all_reduce_tuning(golden.machine, Algorithm::NvlsTree) ==
            "- - " + std::string(golden.nvls_tree));
    if (golden.gather != nullptr) {
      REQUIRE(all_gather_tuning(golden.machine) == golden.gather);
    }
  }
}

TEST_CASE("sockets between nodes with one GPU", "[nccl][tuning]") {
  const std::array rings{"16.6/0.6 - 36.4/1.2", "36.6/0.4 - 92.4/0.8", "76.6/0.3 - 204.4/0.7"};
  const std::array trees{"36.4/0.9", "64.4/0.5", "92.4/0.5"};
  const std::array gathers{"22.4/2.4", "50.4/1.6", "106.4/1.4"};
  for (std::size_t i = 0; i < 3; ++i) {
    const TunedMachine machine = socket_1gpu(2 << i);
    const TuningTable table = make_tuning_table(machine.input, {});
    REQUIRE(all_reduce_tuning(machine, Algorithm::Ring) == rings.at(i));
    REQUIRE(printed(table.cell(Function::AllReduce, Algorithm::Tree, Protocol::Simple)) ==
            trees.at(i));
    REQUIRE(printed(table.cell(Function::AllGather, Algorithm::Ring, Protocol::Simple)) ==
            gathers.at(i));
  }
}

// From a public log of NCCL 2.29.7: two hosts of one RTX 5090 on sockets of 20 Gb/s.
TEST_CASE("what is switched off keeps its latency", "[nccl][tuning]") {
  Communicator input = socket_1gpu(2).input;
  input.min_compute_capability = 120;
  input.max_compute_capability = 120;
  input.aligned.ring.channel_count = 2;
  input.aligned.tree.channel_count = 2;
  const TuningTable table = make_tuning_table(input, {});
  const auto cells = [&](Function function, Algorithm algorithm) {
    std::string text;
    for (const Protocol protocol : kProtocols) {
      const TuningCell& cell = table.cell(function, algorithm, protocol);
      text += fmt::format("{:.1f}/{:.1f} ", cell.latency, cell.bandwidth);
    }
    return text;
  };
  REQUIRE(cells(Function::Reduce, Algorithm::Ring) == "9.3/1.2 18.0/0.0 22.4/2.4 ");
  REQUIRE(cells(Function::AllGather, Algorithm::Ring) == "11.6/2.4 22.5/0.0 22.4/4.8 ");
  REQUIRE(cells(Function::AllGather, Algorithm::CollNetDirect) == "5.0/0.0 8.5/0.0 14.0/0.0 ");
  REQUIRE(cells(Function::AllGather, Algorithm::CollNetChain) == "0.0/0.0 0.0/0.0 0.0/0.0 ");
  REQUIRE(cells(Function::AllGather, Algorithm::Pat) == "0.0/0.0 0.0/0.0 17.6/3.6 ");
  REQUIRE(cells(Function::AllReduce, Algorithm::Tree) == "16.8/0.5 31.0/0.0 36.4/1.9 ");
  REQUIRE(cells(Function::AllReduce, Algorithm::Ring) == "16.6/1.2 31.0/0.0 36.4/2.4 ");
  REQUIRE(cells(Function::AllReduce, Algorithm::CollNetChain) == "5.0/0.0 8.5/0.0 14.0/0.0 ");
  REQUIRE(cells(Function::AllReduce, Algorithm::NvlsTree) == "0.0/0.0 0.0/0.0 0.0/0.0 ");
}

TEST_CASE("NVLS gathers within a node, PAT between nodes with one GPU", "[nccl][tuning]") {
  REQUIRE(all_gather_tuning(h100_node(), Algorithm::Nvls) == "- - 25.0/208.2");
  REQUIRE(all_gather_tuning(h100_400g(2), Algorithm::Nvls) == "- - -");
  REQUIRE(all_gather_tuning(h100_400g(2), Algorithm::Pat) == "- - -");
  REQUIRE(all_gather_tuning(h100_1gpu(2), Algorithm::Pat) == "- - 17.6/72.0");
  TunedMachine oldest = h100_1gpu(2);
  oldest.input.version = Version::V2_27;
  REQUIRE(all_gather_tuning(oldest, Algorithm::Pat) == "- - 17.6/72.0");
}

TEST_CASE("Broadcast and Reduce are rings, slower where channels differ", "[nccl][tuning]") {
  for (const Function function : {Function::Broadcast, Function::Reduce}) {
    const TuningTable node = make_tuning_table(h100_node().input, {});
    REQUIRE(row(node, function, Algorithm::Ring) == "7.2/141.0 15.9/331.2 11.8/360.0");
    const TuningTable nodes = make_tuning_table(h100_400g(2).input, {});
    REQUIRE(row(nodes, function, Algorithm::Ring) == "49.8/39.0 78.0/293.6 232.4/384.0");
    for (const Algorithm algorithm : kAlgorithms) {
      if (algorithm != Algorithm::Ring) {
        REQUIRE(row(node, function, algorithm) == "- - -");
      }
    }
  }
}

TEST_CASE("releases differ where their constants do", "[nccl][tuning]") {
  TunedMachine machine = b200_400g(2);
  machine.input.version = Version::V2_28;
  REQUIRE(all_reduce_tuning(machine, Algorithm::Ring) == "40.0/20.8 75.2/147.6 131.6/204.8");
  machine.input.version = Version::V2_27;
  REQUIRE(all_reduce_tuning(machine, Algorithm::Ring) == "40.0/20.8 75.2/188.4 131.6/204.8");
  REQUIRE(all_reduce_tuning(machine, Algorithm::Tree) == "25.2/16.6 48.5/249.6 92.4/281.5");
  REQUIRE(all_reduce_tuning(machine, Algorithm::NvlsTree) == "- - 53.0/320.0");
  TunedMachine hopper = h100_400g(2);
  hopper.input.version = Version::V2_27;
  REQUIRE(all_reduce_tuning(hopper, Algorithm::NvlsTree) == "- - 53.0/266.7");
  REQUIRE(all_reduce_tuning(hopper, Algorithm::Ring) ==
          all_reduce_tuning(h100_400g(2), Algorithm::Ring));
}

TEST_CASE("LL128 needs near paths and equal GPUs unless it is forced", "[nccl][tuning]") {
  TunedMachine machine = a100_node();
  machine.input.max_compute_capability = 90;
  REQUIRE(all_reduce_tuning(machine, Algorithm::Ring) == "15.0/50.1 - 56.0/137.1");
  Environment environment;
  environment.selection.set_protocols("LL128");
  REQUIRE(row(make_tuning_table(machine.input, environment), Function::AllReduce,
              Algorithm::Ring) == "- 40.6/126.2 -");
  Environment far;
  far.ll128_c2c = false;
  REQUIRE(row(make_tuning_table(b200_400g(2).input, far), Function::AllReduce, Algorithm::Ring) ==
          "40.0/20.8 - 131.6/204.8");
}

TEST_CASE("CollNet is there when network, variable and number of nodes allow it",
          "[nccl][tuning]") {
  TunedMachine machine = h100_400g(2);
  machine.input.aligned.collnet_chain =
      found_graph(GraphPattern::Tree, 8, 48, 48, PathType::Nvl, PathType::Pix);
  machine.input.aligned.collnet_direct =
      found_graph(GraphPattern::CollNetDirect, 8, 40, 48, PathType::Nvl, PathType::Pix);
  Environment environment;
  REQUIRE(all_reduce_tuning(machine, Algorithm::CollNetChain) == "- - -");
  environment.collnet_enable = true;
  const TuningTable table = make_tuning_table(machine.input, environment);
  // 2 * 7 * 2.8 + 30; half of 8 * 48.
  REQUIRE(row(table, Function::AllReduce, Algorithm::CollNetChain) == "- - 69.2/192.0");
  // 2 * (3.7 + 7 * 0.4) + 31; half of 8 * 40 * 0.85.
  REQUIRE(row(table, Function::AllReduce, Algorithm::CollNetDirect) == "- - 44.0/136.0");
  REQUIRE(row(table, Function::AllReduce, Algorithm::Nvls) == "- - 43.0/204.8");
  REQUIRE(row(table, Function::AllGather, Algorithm::CollNetDirect) == "- - -");
  environment.collnet_node_threshold = 3;
  REQUIRE(row(make_tuning_table(machine.input, environment), Function::AllReduce,
              Algorithm::CollNetChain) == "- - -");
}

TEST_CASE("each function has its algorithms and no others", "[nccl][tuning]") {
  for (const Golden& golden : goldens()) {
    INFO(golden.name);
    const TuningTable table = make_tuning_table(golden.machine.input, {});
    for (const Function function : {Function::AllGather, Function::ReduceScatter}) {
      for (const Algorithm algorithm :
           {Algorithm::Tree, Algorithm::CollNetChain, Algorithm::NvlsTree}) {
        REQUIRE(row(table, function, algorithm) == "- - -");
      }
    }
    REQUIRE(row(table, Function::AllReduce, Algorithm::Pat) == "- - -");
  }
}

TEST_CASE("variables switch NVLS and PAT and set the overhead of messages",
          "[nccl][tuning][environment]") {
  Environment environment;
  environment.nvls_enable = 0;
  environment.pat_enable = 1;
  environment.net_overhead = 5000;
  const TuningTable node = make_tuning_table(h100_node().input, environment);
  REQUIRE(row(node, Function::AllReduce, Algorithm::Nvls) == "- - -");
  const TuningTable nodes = make_tuning_table(h100_400g(2).input, environment);
  REQUIRE(row(nodes, Function::AllReduce, Algorithm::NvlsTree) == "- - -");
  // 8 + 14 / 3.5 + 2.8 * 16; 0.75 * 8 * 48.
  REQUIRE(row(nodes, Function::AllGather, Algorithm::Pat) == "- - 56.8/288.0");
  // 6.6 + 28 * 5 + 2 * 2.7; 8.4 + 28 * 15 + 2 * 14.
  REQUIRE(row(nodes, Function::AllReduce, Algorithm::Ring) == "152.0/20.8 162.0/156.6 456.4/204.8");
}

TEST_CASE("POWER CPUs make trees over PCIe as slow as rings", "[nccl][tuning]") {
  TunedMachine machine = pcie_4gpus();
  machine.input.cpu = CpuKind::Power;
  REQUIRE(all_reduce_tuning(machine, Algorithm::Tree) == "12.8/2.4 - 42.6/9.2");
}

TEST_CASE("latency of the NIC counts for each hop, and twice for Simple", "[nccl][tuning]") {
  TunedMachine machine = h100_400g(2);
  machine.input.aligned.ring.latency_inter = 10.0;
  REQUIRE(all_reduce_tuning(machine, Algorithm::Ring) == "60.0/20.8 95.2/156.6 171.6/204.8");
}

TEST_CASE("threads and thresholds follow the graph and the variables", "[nccl][tuning]") {
  TuningTable table = make_tuning_table(h100_node().input, {});
  REQUIRE(table.max_threads[0] == std::array{512, 640, 512});
  REQUIRE(table.max_threads[1] == std::array{512, 640, 512});
  REQUIRE(table.max_threads[4][2] == 640);
  REQUIRE(table.max_threads[6][2] == 0);
  REQUIRE(table.thread_thresholds[1][0] == 64);
  REQUIRE(table.thread_thresholds[0][0] == 8);
  REQUIRE(table.thread_thresholds[3][2] == 512);
  table = make_tuning_table(socket_1gpu(2).input, {});
  REQUIRE(table.max_threads[1] == std::array{512, 640, 256});
  REQUIRE(table.max_threads[0][2] == 512);
  Environment environment;
  environment.threads = 128;
  environment.thread_thresholds = {1, 2, 3, 4};
  table = make_tuning_table(h100_node().input, environment);
  REQUIRE(table.max_threads[1] == std::array{128, 640, 128});
  REQUIRE(table.thread_thresholds[0] == std::array<std::int64_t, 3>{1, 2, 3});
  REQUIRE(table.thread_thresholds[1] == std::array<std::int64_t, 3>{4, 8, 64});
}

TEST_CASE("a call's time is latency plus bytes over bandwidth, corrected by size",
          "[nccl][tuning]") {
  const Communicator communicator = communicator_of(h100_node());
  const auto time = [&](Algorithm algorithm, Protocol protocol, Bytes bytes, int operations) {
    return algorithm_time(communicator, Function::AllReduce, algorithm, protocol, bytes,
                          operations);
  };
  REQUIRE(*time(Algorithm::Ring, Protocol::LL, mib(1), 1) ==
          Approx(15.0 + 1048.576 / 80.571).epsilon(1e-4));
  // Rings run operations one behind the other, others pack eight of them.
  REQUIRE(*time(Algorithm::Ring, Protocol::LL, mib(1), 3) ==
          Approx(45.0 + 1048.576 / 80.571).epsilon(1e-4));
  REQUIRE(*time(Algorithm::Tree, Protocol::LL, mib(1), 3) ==
          Approx(15.2 + 1048.576 / (43.58 * 0.5)).epsilon(1e-3));
  // Below the table.
  REQUIRE(*time(Algorithm::Tree, Protocol::Simple, Bytes(63), 3) ==
          Approx(64.4 + 0.063 / 165.6).epsilon(1e-5));
  REQUIRE_FALSE(time(Algorithm::Pat, Protocol::Simple, Bytes(63), 3));
}

}  // namespace
}  // namespace trainyard::nccl
