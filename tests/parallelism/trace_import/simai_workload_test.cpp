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

TEST_CASE("collectives alone come one after the other", "[simai]") {
  const std::string text =
      "MICRO\n2\na -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 2000 5\n"
      "b -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 2000 5\n";
  require_time(text, 2, 8_us);
}

TEST_CASE("data ranks begin with gradients of weights, without those of the first input",
          "[simai]") {
  // Forward 2 us; the last layer's gradients are there after 2.7 us and added up at 6.7 us, those
  // of the first after 3.9 us, at 10.7 us; the update takes 0.1 us.
  const std::string layer = " -1 1000 NONE 0 500 NONE 0 700 ALLREDUCE 2000 100\n";
  require_time("DATA\n2\na" + layer + "b" + layer, 2, 10'800_ns);
}

TEST_CASE("sums of model ranks run beside the gradients of weights", "[simai]") {
  // Forward: 1 us and a sum of 4 us, twice. Backward: 0.5 us for inputs, then the sum beside 5 us
  // for weights; of the first layer without a sum.
  const std::string layer = " -1 1000 ALLREDUCE 2000 500 ALLREDUCE 2000 5000 NONE 0 0\n";
  require_time("MODEL\n2\na" + layer + "b" + layer, 2, 10_us + 11_us);
  // With 0.7 us for weights the sum shows.
  const std::string shorter = " -1 1000 ALLREDUCE 2000 500 ALLREDUCE 2000 700 NONE 0 0\n";
  require_time("MODEL\n2\na" + shorter + "b" + shorter, 2, 10_us + 4'500_ns + 1'200_ns);
  REQUIRE(simai("MODEL\n2\na" + shorter + "b" + shorter, 2).left_out ==
          std::vector<std::string>{
              "2 collectives for gradients of the first layer's inputs, which nobody needs"});
}

TEST_CASE("a recommendation model exchanges embeddings beside its bottom layers", "[simai]") {
  // Of two ranks, each sends half of 2000 bytes to the other: 2 us. The last bottom layer ends
  // after 3 us, the top layer after 4 us. Backward: weights of the top 0.7 us, its inputs 0.5 us,
  // then the exchange beside 0.7 + 0.5 + 0.7 + 0.5 + 0.7 us.
  const std::string embedding = "e -1 1000 ALLTOALL 2000 500 ALLTOALL 2000 700 NONE 0 0\n";
  const std::string layer = " -1 1000 NONE 0 500 NONE 0 700 NONE 0 0\n";
  const std::string layers = "\n4\n" + embedding + "b" + layer + "c" + layer + "t" + layer;
  require_time("HYBRID_DLRM 2" + layers, 2, 8_us + 300_ns);
  REQUIRE(time_of(simai("HYBRID_DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 2" + layers, 2)) ==
          time_of(simai("HYBRID_DLRM 2" + layers, 2)));
  // With nothing below it, the top waits for the exchange.
  const SimTime exchange =
      time_of(simai("MICRO\n1\ne -1 0 NONE 0 0 NONE 0 0 ALLTOALL 2000 0\n", 2));
  REQUIRE(time_of(simai("HYBRID_DLRM 0\n2\n" + embedding + "t" + layer, 2)) ==
          1_us + exchange + 1_us + 1'200_ns + exchange);
}

TEST_CASE("layers may have policies of their own", "[simai]") {
  // Two servers of two GPUs: the first dimension is a server.
  const std::vector<int> servers{0, 0, 1, 1};
  const std::string calls = " -1 1 ALLREDUCE 8 1 ALLREDUCE 8 1 ALLREDUCE 8 0 ";
  const auto read = [&](const std::string& text) {
    return read_imported(imported_files({text}), ImportedFormat::SimAi,
                         {.server_of_gpu = servers, .folding = Folding::Unfolded});
  };
  const std::set<std::vector<int>> near{{0, 1}, {2, 3}};
  const std::set<std::vector<int>> far{{0, 2}, {1, 3}};
  const ImportedWorkload one = read("HYBRID_CUSTOMIZED\n2\na" + calls + "HYBRID_DATA_MODEL\n" +
                                    "b -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 0 DATA\n");
  REQUIRE(groups_of(one, "tensor") == near);
  REQUIRE(groups_of(one, "data") == far);
  REQUIRE(one.graph.communicators().size() == 5);
  // The other way round, model ranks are on different servers.
  const ImportedWorkload other = read("HYBRID_MODEL_DATA\n1\na" + calls + "\n");
  for (const GraphOperation& operation : other.graph.operations()) {
    if (operation.kind == GraphOperationKind::Collective) {
      const auto& ranks = other.graph.communicators()[operation.call.communicator.value()].ranks;
      REQUIRE((operation.part == StepPart::Data ? near : far).contains(ranks));
    }
  }
}

TEST_CASE("a stage of a pipeline idles for the others, and sends activations and gradients",
          "[simai]") {
  // One layer of 6.2 us (2.2 us of computation and a sum of 4 us) on each of three stages of two
  // ranks. Four parts of it on each stage: 8 messages of 1000 bytes of 2 us each, and a bubble of
  // two quarters.
  const std::string text = kPolicy +
                           "2 all_gpus: 6 pp: 3 ga: 2 vpp: 2 pp_comm: 1000\n1\n"
                           "mlp -1 1000 ALLREDUCE 2000 500 NONE 0 700 NONE 0 100\n";
  const SimTime time = 6'200_ns + 16_us + 3'100_ns;
  require_time(text, 6, time);
  const GraphedRun run = run_round(simai(text, 6));
  REQUIRE(run.ranks[0][StepPart::Bubble] == 3'100_ns);
  REQUIRE(run.ranks[0][StepPart::Pipeline] == 16_us);
  // The bubble grows with the computation that makes it.
  const GraphRunOptions slow{.compute_ppm = std::vector<std::int64_t>(6, 3'000'000)};
  REQUIRE(run_round(simai(text, 6), slow).result.finish == 10'600_ns + 16_us + 5'300_ns);
  REQUIRE(groups_of(simai(text, 6), "pipeline") ==
          std::set<std::vector<int>>{{0, 2, 4}, {1, 3, 5}});
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
