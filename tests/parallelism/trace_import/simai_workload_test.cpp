// SPDX-License-Identifier: Apache-2.0
// Times of small workloads are computed by hand for a network on which a message takes 1 us and
// 1 ns for each byte: a sum of 2000 bytes over a ring of two takes two rounds of 2 us.
#include "support/catch.h"

#include "parallelism/trace_import/simai_workload.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support/effort.h"
#include "support/golden_errors.h"
#include "support/imported_workloads.h"

namespace trainyard {
namespace {

using namespace literals;

const std::string kPolicy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: ";

ImportedWorkload simai(const std::string& text, int gpus, Folding folding = Folding::Unfolded) {
  return imported_workload(ImportedFormat::SimAi, imported_files({text}), gpus, folding);
}

std::string simai_error(const std::string& text) {
  return imported_error(ImportedFormat::SimAi, imported_files({text}));
}

SimTime time_of(const ImportedWorkload& workload, bool shares_network = true) {
  return run_round(workload, {}, shares_network).result.finish;
}

// Folded and unfolded, alone and shared.
void require_time(const std::string& text, int gpus, SimTime time) {
  REQUIRE(time_of(simai(text, gpus)) == time);
  REQUIRE(time_of(simai(text, gpus), false) == time);
  REQUIRE(time_of(simai(text, gpus, Folding::Folded), false) == time);
}

std::set<std::vector<int>> groups_of(const ImportedWorkload& workload, const std::string& kind) {
  std::set<std::vector<int>> groups;
  for (const GraphCommunicator& communicator : workload.graph.communicators()) {
    if (communicator.name.substr(0, communicator.name.rfind(' ')) == kind) {
      groups.insert(communicator.ranks);
    }
  }
  return groups;
}

}  // namespace

TEST_CASE("collectives of activations hold computation up", "[simai]") {
  const std::string text =
      kPolicy + "2 all_gpus: 2\n1\nmlp -1 1000 ALLREDUCE 2000 500 NONE 0 700 NONE 0 100\n";
  require_time(text, 2, 6'200_ns);
  const GraphedRun run = run_round(simai(text, 2));
  REQUIRE(run.ranks[0][StepPart::Linear] == 2'200_ns);
  REQUIRE(run.ranks[0][StepPart::Tensor] == 4_us);
}

TEST_CASE("gradients of weights are added up overlapped with computation, in their order",
          "[simai]") {
  // Forward 2 us; the second layer's gradients are there after 3.2 us and added up at 7.2 us, those
  // of the first one, there after 4.4 us, at 11.2 us; the update takes 0.1 us.
  const std::string layer = " -1 1000 NONE 0 500 NONE 0 700 ALLREDUCE 2000 100\n";
  const std::string text = kPolicy + "1\n2\na" + layer + "b" + layer;
  require_time(text, 2, 11'300_ns);
  const StepParts parts = run_round(simai(text, 2)).ranks[0];
  REQUIRE(parts[StepPart::Linear] == 4'400_ns);
  REQUIRE(parts[StepPart::Data] + parts[StepPart::Optimizer] == 6'900_ns);
}

TEST_CASE("layers up to the one that asks for it are computed again from a checkpoint", "[simai]") {
  const std::string layer = " -1 1000 NONE 0 500 NONE 0 0 NONE 0 0\n";
  const std::string text = kPolicy + "1 checkpoints: 2 0 1 checkpoint_initiates: 1 2\n3\na" +
                           layer + "b" + layer + "c" + layer;
  // 3 us forward, layer b again, three times 0.5 us.
  require_time(text, 1, 5'500_ns);
  REQUIRE(run_round(simai(text, 1)).ranks[0][StepPart::Recompute] == 1_us);
}

TEST_CASE("what is gathered is the whole for SimAI, and what a rank puts in for ASTRA-sim",
          "[simai]") {
  const std::string layer = "1\na -1 0 ALLGATHER 3200 0 NONE 0 0 NONE 0 0\n";
  require_time(kPolicy + "2 all_gpus: 2\n" + layer, 2, 2'600_ns);
  require_time(kPolicy + "2\n" + layer, 2, 4'200_ns);
}

TEST_CASE("groups are those of SimAI", "[simai]") {
  const ImportedWorkload workload = simai(
      kPolicy +
          "2 ep: 2 all_gpus: 8\n1\na -1 1 ALLREDUCE 8 1 ALLTOALL_EP 8 1 ALLREDUCE_DP_EP 8 0\n",
      8);
  REQUIRE(groups_of(workload, "tensor") ==
          std::set<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  REQUIRE(groups_of(workload, "expert") ==
          std::set<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  REQUIRE(groups_of(workload, "data of experts") ==
          std::set<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  REQUIRE(groups_of(simai(kPolicy + "2\n1\na -1 1 NONE 0 1 NONE 0 1 ALLGATHER 8 0\n", 8), "data") ==
          std::set<std::vector<int>>{{0, 2, 4, 6}, {1, 3, 5, 7}});
}

TEST_CASE("what such a workload gets wrong is named with file, line and field", "[simai]") {
  const std::string layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n";
  const auto header = [&](const std::string& text) { return simai_error(text + "\n1\n" + layer); };
  REQUIRE(header(kPolicy + "1") == "no error");
  REQUIRE(header("MICRO") ==
          "0.file:1: expected HYBRID_TRANSFORMER or HYBRID_TRANSFORMER_FWD_IN_BCKWD, found "
          "\"MICRO\"");
  REQUIRE(header(kPolicy + "1 pp: 4") ==
          "0.file:1: pp: expected 1, as the file does not say in which order stages of a pipeline "
          "work, found 4");
  REQUIRE(header(kPolicy + "1 all_gpus: 16") ==
          "0.file:1: all_gpus: expected at most the 8 GPUs of the cluster, found 16");
  REQUIRE(header(kPolicy + "3") ==
          "0.file:1: expected model_parallel_NPU_group x ep that divides the ranks, found 3 x 1 "
          "and 8");
  REQUIRE(header(kPolicy + "1 zp: 4").find("0.file:1: expected model_parallel_NPU_group, ep") == 0);
  REQUIRE(header(kPolicy + "1 ep: 2 ep: 2") == "0.file:1: ep: expected it once, found it again");
  REQUIRE(header(kPolicy + "1 checkpoints: 2 0") ==
          "0.file:1: checkpoints: expected a number from 0 to 10000000, found the end of the "
          "line");
  REQUIRE(header(kPolicy + "1 checkpoint_initiates: 1 0") ==
          "0.file:1: checkpoint_initiates: expected layers from 0 to 0 with a checkpoint before "
          "them, found 0");
  const auto body = [&](const std::string& text) { return simai_error(kPolicy + "1\n" + text); };
  REQUIRE(body("2\n" + layer) == "0.file:3: expected 2 layers, found 1");
  REQUIRE(body("1\n" + layer + layer) ==
          "0.file:4: expected the end of the file after 1 layers, found \"a\"");
  REQUIRE(body("1\na -1 1 NONE 0 1 NONE 0 1 NONE 0\n") ==
          "0.file:3: a: expected 12 fields, found 11");
  REQUIRE(body("1\na 0 1 NONE 0 1 NONE 0 1 NONE 0 0\n") ==
          "0.file:3: a: expected -1 as what it depends on: layers run in their order, found \"0\"");
  REQUIRE(body("1\na -1 1.5 NONE 0 1 NONE 0 1 NONE 0 0\n").find("0.file:3: forward: expected a ") ==
          0);
  REQUIRE(body("1\na -1 1 ALLREDUCE_TP 8 1 NONE 0 1 NONE 0 0\n") ==
          "0.file:3: forward: expected NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, "
          "alone or with _EP or _DP_EP, found \"ALLREDUCE_TP\"");
  REQUIRE(body("1\na -1 1 NONE 0 1 NONE 8 1 NONE 0 0\n") ==
          "0.file:3: gradients of inputs: expected 0 bytes of NONE, found 8");
}

TEST_CASE("damaged workloads are read or refused in one line", "[simai]") {
  const std::string text = kPolicy +
                           "2 ep: 2 all_gpus: 4 checkpoints: 1 0 checkpoint_initiates: 1 1\n2\n" +
                           "a -1 1000 ALLREDUCE 2000 500 NONE 0 700 ALLREDUCE_DP_EP 64 100\n" +
                           "b -1 1000 ALLTOALL_EP 2000 500 NONE 0 700 NONE 0 100\n";
  const auto refused = refused_damage(
      text, " 0123456789-_\n", cases(2000),
      [](const std::string& changed, const std::string&) { return simai_error(changed); });
  REQUIRE(refused > static_cast<int>(cases(2000) / 2));
}

TEST_CASE("the shipped workload has every kind of group", "[simai]") {
  const auto path = kConfigsFolder / "workloads/imported/transformer-tp2-dp4.txt";
  REQUIRE(recognise_imported(path) == ImportedFormat::SimAi);
  const ImportedWorkload workload =
      imported_workload(ImportedFormat::SimAi, read_imported_files(path, ImportedFormat::SimAi));
  for (const std::string kind : {"tensor", "expert", "data", "data of experts"}) {
    REQUIRE(!groups_of(workload, kind).empty());
  }
  REQUIRE(workload.left_out.empty());
  const ImportedWorkload lonely =
      simai(kPolicy + "1 ga: 2\n1\na -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 0\n", 2);
  REQUIRE(lonely.left_out ==
          std::vector<std::string>{"ga and vpp: without a pipeline the layers say it all",
                                   "2 collectives of groups of one rank"});
}

}  // namespace trainyard
