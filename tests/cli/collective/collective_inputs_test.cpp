// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/collective_inputs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/servers.h"

namespace trainyard {
namespace {

using namespace literals;

CollectiveRequest on(const std::string& cluster) {
  CollectiveRequest request;
  request.inputs.cluster = cluster;
  request.algorithms = algorithms_for(request.operation);
  request.auto_algorithms = true;
  return request;
}

CollectiveInputs inputs_for(const CollectiveRequest& request) {
  spdlog::logger log("test");
  return load_collective_inputs(request, log);
}

MeasuredTable table_of(std::vector<Bytes> sizes) {
  MeasuredTable table;
  table.ranks = 8;
  for (const Bytes size : sizes) {
    MeasuredRow row;
    row.size = size;
    row.time = 10_us;
    table.rows.push_back(row);
  }
  return table;
}

std::vector<Bytes> sizes_of(const CollectiveRequest& request, int ranks,
                            const std::optional<MeasuredTable>& measured = std::nullopt) {
  std::vector<std::string> notes;
  return message_sizes(request, ranks, measured, notes);
}

bool has_note(const CollectiveInputs& inputs, const std::string& note) {
  return std::ranges::find(inputs.notes, note) != inputs.notes.end();
}

std::string measured(const std::string& name) {
  return source_dir().string() + "/validation/nccl/" + name + ".yaml";
}

// Eight bytes twice, with the given lines before.
std::string log_text(const std::string& head) {
  return head +
         "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
         "           8             2     float     sum      -1    26.10    0.00    0.00      0\n"
         "     1048576        262144     float     sum      -1    60.00   17.48   30.58      0\n"
         "           8             2     float     sum      -1    28.00    0.00    0.00      0\n"
         "# Avg bus bandwidth    : 10\n";
}

CollectiveInputs inputs_of(const std::string& cluster, int nodes) {
  CollectiveRequest request;
  request.inputs.cluster = cluster;
  request.inputs.overrides.nodes = nodes;
  request.algorithms = {&kRing};
  spdlog::logger log("test");
  return load_collective_inputs(request, log);
}

}  // namespace

TEST_CASE("ranks are the first GPUs of the cluster, which stays whole") {
  CollectiveRequest request = on("dgx-h100");
  const std::size_t nodes = inputs_for(request).cluster.topology.node_count();
  struct Case {
    int ranks;
    int nodes;
    int gpus_per_node;
  };
  for (const Case& expected :
       {Case{1, 1, 1}, Case{3, 1, 3}, Case{8, 1, 8}, Case{16, 2, 8}, Case{32, 4, 8}}) {
    INFO(expected.ranks << " ranks");
    request.ranks = expected.ranks;
    const CollectiveInputs inputs = inputs_for(request);
    REQUIRE(inputs.cluster.nodes == expected.nodes);
    REQUIRE(inputs.cluster.gpus_per_node == expected.gpus_per_node);
    REQUIRE(inputs.cluster.gpus.size() == static_cast<std::size_t>(expected.ranks));
    REQUIRE(inputs.ranks() == expected.ranks);
    REQUIRE(inputs.cluster.topology.node_count() == nodes);
    REQUIRE(has_note(inputs, "the first " + std::to_string(expected.ranks) +
                                 " of the 32 GPUs of the cluster take part") ==
            (expected.ranks < 32));
  }
}

TEST_CASE("auto leaves out what the cluster cannot run, and a name is refused") {
  const auto names = [](const std::string& cluster, int nodes) {
    CollectiveRequest request = on(cluster);
    request.inputs.overrides.nodes = nodes;
    std::string text;
    for (const Algorithm algorithm : inputs_for(request).algorithms) {
      text += (text.empty() ? "" : " ") + std::string(to_string(algorithm));
    }
    return text;
  };
  REQUIRE(names("dgx-h100", 1) ==
          "ring tree halving-doubling halving-doubling-far nvls recursive-doubling");
  REQUIRE(names("dgx-h100", 2) ==
          "ring tree halving-doubling halving-doubling-far sharp recursive-doubling hierarchical "
          "multi-ring nvls-tree");
  REQUIRE(names("hgx-h100-clos", 2) ==
          "ring tree halving-doubling halving-doubling-far recursive-doubling hierarchical "
          "multi-ring nvls-tree");
  REQUIRE(names("dgx-a100", 1) ==
          "ring tree halving-doubling halving-doubling-far recursive-doubling");
  CollectiveRequest named = on("dgx-a100");
  named.inputs.overrides.nodes = 1;
  named.algorithms = {&kRing, &kNvls};
  named.auto_algorithms = false;
  REQUIRE_THROWS_WITH(inputs_for(named),
                      "--algo: expected an algorithm that the cluster can run, found \"nvls\": "
                      "the switch NVSwitch2 cannot add up in the network");
}

// Hosts of two NICs in a ring of cables, without a switch.
std::string cabled_ring(const ScratchFolder& folder, int hosts) {
  std::string text =
      "name: cabled\nsource: test\nnodes: " + std::to_string(hosts) +
      "\nserver: {template: pcie, gpu: L40S, gpus: 1, nic: ConnectX-7-200G, nics: 2, "
      "cpu: EPYC-Rome}\nfabric: {template: graph, cable: 3 m, links: [";
  for (int host = 0; host < hosts; ++host) {
    text += (host == 0 ? "" : ", ") + std::string("{from: server") + std::to_string(host) +
            "/nic0, to: server" + std::to_string((host + 1) % hosts) + "/nic1}";
  }
  return folder.write("cabled.yaml", text + "]}\n");
}

TEST_CASE("auto leaves out algorithms whose partners have no path, and a name is refused") {
  const ScratchFolder folder;
  CollectiveRequest request = on(cabled_ring(folder, 4));
  const CollectiveInputs inputs = inputs_for(request);
  REQUIRE(inputs.algorithms.front() == &kRing);
  REQUIRE(std::ranges::find(inputs.algorithms, &kTree) == inputs.algorithms.end());
  REQUIRE(has_note(inputs, "tree left out: no path leads from server2/gpu0 to server0/gpu0"));
  request.auto_algorithms = false;
  request.algorithms = {&kTree};
  REQUIRE_THROWS_WITH(inputs_for(request),
                      "--algo: expected an algorithm that the cluster can run, found \"tree\": no "
                      "path leads from server2/gpu0 to server0/gpu0");
  // Three hosts in a ring are cabled two by two.
  const ScratchFolder other;
  const CollectiveInputs three = inputs_for(on(cabled_ring(other, 3)));
  REQUIRE(std::ranges::find(three.algorithms, &kTree) != three.algorithms.end());
}

TEST_CASE("ranks count within the GPUs that are used of each node") {
  CollectiveRequest request = on("dgx-h100");
  request.inputs.overrides.gpus_per_node = 2;
  request.ranks = 4;
  const CollectiveInputs inputs = inputs_for(request);
  REQUIRE(inputs.cluster.nodes == 2);
  REQUIRE(inputs.cluster.gpus_per_node == 2);
  request.ranks = 10;
  REQUIRE_THROWS_WITH(
      inputs_for(request),
      "--ranks: expected at most 8 (4 nodes of 2 GPUs; --nodes gives more), found \"10\"");
}

TEST_CASE("ranks are counted node by node, and the last node may take part with some GPUs") {
  const auto kept = [](int ranks) {
    Cluster cluster = cluster_of({{.gpus = 4}, {.gpus = 6}, {.gpus = 2}});
    keep_first_ranks(cluster, ranks);
    REQUIRE(cluster.gpus.size() == static_cast<std::size_t>(ranks));
    REQUIRE(cluster.nodes == static_cast<int>(cluster.server_gpus.size()));
    REQUIRE(cluster.gpus_per_node == std::ranges::max(cluster.server_gpus));
    return cluster.server_gpus;
  };
  REQUIRE(kept(3) == std::vector<int>{3});
  REQUIRE(kept(4) == std::vector<int>{4});
  REQUIRE(kept(7) == std::vector<int>{4, 3});
  REQUIRE(kept(10) == std::vector<int>{4, 6});
  REQUIRE(kept(11) == std::vector<int>{4, 6, 1});
  REQUIRE(kept(12) == std::vector<int>{4, 6, 2});
  REQUIRE_THROWS_WITH(kept(13), "--ranks: expected at most 12 (the GPUs of 3 nodes), found \"13\"");
}

TEST_CASE("ranks of a list take part, on the servers that have them") {
  CollectiveRequest request = on("dgx-h100");
  request.inputs.overrides.nodes = 4;
  request.rank_list = {1, 9, 10, 31};
  const CollectiveInputs inputs = inputs_for(request);
  REQUIRE(inputs.cluster.server_gpus == std::vector<int>{1, 2, 1});
  REQUIRE(inputs.cluster.topology.node(inputs.cluster.gpus[0]).name == "server0/gpu1");
  REQUIRE(inputs.cluster.topology.node(inputs.cluster.gpus[3]).name == "server3/gpu7");
  REQUIRE(
      has_note(inputs, "4 of the 32 GPUs of the cluster take part, gpus 1,9-10,31, on 3 servers"));
  request.rank_list = {0, 32};
  REQUIRE_THROWS_WITH(inputs_for(request), "--ranks: expected ranks from 0 to 31, found \"32\"");
}

TEST_CASE("the root is one of the ranks") {
  CollectiveRequest request = on("dgx-h100");
  request.operation = Operation::Broadcast;
  request.ranks = 8;
  request.root = 8;
  REQUIRE_THROWS_WITH(inputs_for(request), "--root: expected a rank from 0 to 7, found \"8\"");
}

TEST_CASE("what was changed, and a seed that changes nothing, is noted") {
  CollectiveRequest request = on("dgx-h100");
  request.inputs.overrides.settings = {"fabric.oversubscription=2"};
  request.seed = 7;
  const CollectiveInputs inputs = inputs_for(request);
  REQUIRE(has_note(inputs, "changed in the cluster: fabric.oversubscription=2"));
  REQUIRE(has_note(inputs, "--seed did not influence the result: the cluster routes statically"));
  request = on("hgx-h100-clos");
  request.seed = 7;
  const CollectiveInputs hashed = inputs_for(request);
  REQUIRE(hashed.notes.empty());
  REQUIRE(hashed.cluster.routing.seed == 7);
  request.ranks = 8;
  REQUIRE(has_note(inputs_for(request),
                   "--seed did not influence the result: one node does not use the fabric"));
}

TEST_CASE("sizes are a sweep by a factor, up to the greatest that it meets") {
  CollectiveRequest request;
  REQUIRE(sizes_of(request, 8).size() == 28);
  REQUIRE(sizes_of(request, 8).front() == 8_B);
  REQUIRE(sizes_of(request, 8).back() == 1_GiB);
  request.min_size = 1_KiB;
  request.greatest_size = 70_KiB;
  request.factor = 8;
  REQUIRE(sizes_of(request, 8) == std::vector<Bytes>{1_KiB, 8_KiB, 64_KiB});
  request.greatest_size = 512_B;
  REQUIRE_THROWS_WITH(sizes_of(request, 8),
                      "--maxbytes: expected at least the least size, 1KiB, found \"512B\"");
  request.greatest_size.reset();
  request.min_size = 4_GiB;
  REQUIRE(sizes_of(request, 8) == std::vector<Bytes>{4_GiB});
}

TEST_CASE("sizes that are dealt to the ranks are rounded, and those too small left out") {
  CollectiveRequest request;
  request.operation = Operation::AllToAll;
  request.greatest_size = 1000_B;
  std::vector<std::string> notes;
  REQUIRE(message_sizes(request, 24, std::nullopt, notes) == std::vector<Bytes>{384_B});
  REQUIRE(notes ==
          std::vector<std::string>{"6 sizes left out: less than 16 bytes for each of 24 ranks"});
  request.greatest_size = 64_B;
  REQUIRE_THROWS_WITH(sizes_of(request, 24),
                      "--maxbytes: expected at least 384 bytes, 16 for each rank, found \"64B\"");
}

TEST_CASE("sizes of less than an element are left out, as they send nothing") {
  CollectiveRequest request;
  request.min_size = 1_B;
  request.greatest_size = 8_B;
  std::vector<std::string> notes;
  REQUIRE(message_sizes(request, 24, std::nullopt, notes) == std::vector<Bytes>{4_B, 8_B});
  REQUIRE(notes == std::vector<std::string>{"2 sizes left out: less than 4 bytes, an element"});
  request.greatest_size = 3_B;
  REQUIRE_THROWS_WITH(sizes_of(request, 24),
                      "--maxbytes: expected at least 4 bytes, an element, found \"2B\"");
}

TEST_CASE("a measured table gives the sizes, each once, ascending, unrounded") {
  CollectiveRequest request;
  request.operation = Operation::AllGather;
  const MeasuredTable table = table_of({1000_B, 8_B, 1000_B, 64_B, 8_B});
  REQUIRE(sizes_of(request, 8, table) == std::vector<Bytes>{8_B, 64_B, 1000_B});
}

TEST_CASE("bounds or a factor beside a measured table give a sweep") {
  CollectiveRequest request;
  const MeasuredTable table = table_of({8_B, 64_B, 1_KiB});
  request.factor = 2;
  REQUIRE(sizes_of(request, 8, table).size() == 8);  // 8 to 1024.
  request.min_size = 256_B;
  REQUIRE(sizes_of(request, 8, table) == std::vector<Bytes>{256_B, 512_B, 1_KiB});
  request.greatest_size = 4_KiB;
  request.factor = 4;
  REQUIRE(sizes_of(request, 8, table) == std::vector<Bytes>{256_B, 1_KiB, 4_KiB});
}

TEST_CASE("a table of another operation or another number of ranks is refused") {
  CollectiveRequest request = on("dgx-h100");
  request.against = measured("h100-1x8-nvswitch-allgather");
  REQUIRE_THROWS_WITH(inputs_for(request), "--against: expected a table of all_reduce, found " +
                                               *request.against + " of all_gather");
  request.against = measured("h100-1x8-nvswitch-allreduce");
  REQUIRE_THROWS_WITH(inputs_for(request),
                      "--against: expected a table of 32 ranks, found " + *request.against +
                          " of 8; choose --nodes or --ranks to match, or compare bus bandwidth "
                          "with --against-other-ranks");
  request.ranks = 8;
  REQUIRE(inputs_for(request).measured);
  request.ranks = 1;
  REQUIRE_THROWS_WITH(inputs_for(request),
                      "--against: expected at least two ranks to compare, found " +
                          *request.against + " of 8 and 1 simulated");
}

TEST_CASE("a table of another number of ranks is rescaled to the same bus bandwidth") {
  CollectiveRequest request = on("dgx-h100");
  request.against = measured("h100-1x8-nvswitch-allreduce");
  request.against_other_ranks = true;
  const MeasuredTable table = load_measurement(*request.against);
  const CollectiveInputs inputs = inputs_for(request);
  // 2 (n - 1) / n for 32 ranks over that for 8.
  const double factor = (31.0 / 32.0) / (7.0 / 8.0);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    REQUIRE(inputs.measured->rows[row].time / table.rows[row].time == Approx(factor));
    REQUIRE(inputs.measured->rows[row].busbw_gbps == table.rows[row].busbw_gbps);
  }
}

TEST_CASE("a small size without a digit of bandwidth is rescaled all the same") {
  const ScratchFolder folder;
  MeasuredTable table = parse_measurement(log_text(""), "log");
  table.ranks = 2;
  rescale(table, Operation::AllReduce, 4);
  REQUIRE(table.rows[0].busbw_gbps == 0.0);
  REQUIRE(table.rows[0].time == SimTime(39'150'000));
}

TEST_CASE("a log that does not say its ranks is taken to have those simulated, with a note") {
  const ScratchFolder folder;
  CollectiveRequest request = on("dgx-h100");
  request.ranks = 8;
  request.against = folder.write("run.log", log_text(""));
  const CollectiveInputs inputs = inputs_for(request);
  REQUIRE(inputs.sizes == std::vector<Bytes>{8_B, 1_MiB});
  REQUIRE(has_note(inputs, "taken to be measured with 8 ranks, as simulated"));
  REQUIRE(has_note(inputs, "measured table: the log does not say how many ranks took part"));
}

TEST_CASE("as many ranks on another number of nodes are noted") {
  CollectiveRequest request = on("h100-1gpu-400g");
  request.inputs.overrides.nodes = 8;
  request.against = measured("h100-1x8-nvswitch-allreduce");
  REQUIRE(has_note(inputs_for(request),
                   "measured on 1 node, simulated on 8 nodes: other links between the ranks"));
}

TEST_CASE("a row has nccl-tests' bandwidths of its time, and what was measured at its size") {
  CollectiveInputs inputs = inputs_of("dgx-h100", 1);
  MeasuredRow measured;
  measured.size = Bytes(4096);
  measured.time = SimTime(3'000'000);
  inputs.measured.emplace();
  inputs.measured->rows.push_back(measured);
  const SimTime time(2'000'000);
  const CollectiveRow row = timed_row(Operation::AllReduce, Bytes(4096), time, inputs);
  REQUIRE(row.algbw_gbps == Approx(2.048));
  REQUIRE(row.busbw_gbps == Approx(2.048 * 1.75));
  REQUIRE(row.measured.has_value());
  REQUIRE(row.measured->time == measured.time);
  const CollectiveRow other = timed_row(Operation::AllReduce, Bytes(8192), SimTime(), inputs);
  REQUIRE_FALSE(other.measured.has_value());
  REQUIRE(other.busbw_gbps == 0.0);
}

TEST_CASE("estimates are counted, or listed with their sources") {
  Cluster cluster = inputs_of("dgx-h100", 1).cluster;
  std::vector<std::string> notes;
  cluster.estimates = {};
  add_part_notes(cluster, {}, notes);
  REQUIRE(notes.empty());
  cluster.estimates = {"A: x = 1: a guess", "B: y = 2: another: one"};
  add_part_notes(cluster, {}, notes);
  REQUIRE(notes ==
          std::vector<std::string>{"2 estimates of the cluster's parts, --estimates lists them"});
  notes.clear();
  add_part_notes(cluster, {.cluster = "", .lists_estimates = true}, notes);
  REQUIRE(notes == std::vector<std::string>{"estimate: A: x = 1: a guess",
                                            "estimate: B: y = 2: another: one"});
}

TEST_CASE("a report begins with what was asked for and what it runs on") {
  CollectiveRequest request;
  request.operation = Operation::Broadcast;
  request.root = 3;
  const CollectiveReport report = empty_report(request, inputs_of("dgx-h100", 2));
  REQUIRE(report.operation == Operation::Broadcast);
  REQUIRE(report.root == 3);
  REQUIRE(report.ranks == 16);
  REQUIRE(report.node_gpus == std::vector<int>{8, 8});
  REQUIRE_FALSE(report.measured_name.has_value());
}

}  // namespace trainyard
