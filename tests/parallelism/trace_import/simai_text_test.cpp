// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/simai_text.h"

#include <string>

#include "support/imported_workloads.h"

namespace trainyard {
namespace {

const std::string kTextPolicy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: ";

std::string text_error(const std::string& text) {
  return imported_error(ImportedFormat::SimAi, imported_files({text}));
}

}  // namespace

TEST_CASE("layers are read with their times, calls and groups", "[simai]") {
  const SimAiText text = read_simai_text(
      {.name = "a.txt",
       .rank = {},
       .text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 pp: 3 pp_comm 64\n\n1\n"
               "norm\t-1 0 BROADCAST 16384 1 NONE 0 2 ALLREDUCE_DP_EP 8 100\n"});
  REQUIRE(text.header.policy->name == "HYBRID_TRANSFORMER");
  REQUIRE(text.header.value("pp", 1) == 3);
  REQUIRE(text.header.value("pp_comm", 0) == 64);
  REQUIRE(text.header.value("ep", 1) == 1);
  const SimAiLayer& layer = text.layers.at(0);
  REQUIRE(layer.name == "norm");
  REQUIRE(layer.calls[kForward].operation == Operation::Broadcast);
  REQUIRE(layer.calls[kForward].group == SimAiGroup::Tensor);
  REQUIRE(layer.calls[kForward].size == Bytes(16384));
  REQUIRE(!layer.calls[kInputs].operation);
  REQUIRE(layer.calls[kWeights].group == SimAiGroup::DataOfExperts);
  REQUIRE(layer.times[kWeights] == nanoseconds(2));
  REQUIRE(layer.update == nanoseconds(100));
}

TEST_CASE("what such a workload gets wrong is named with file, line and field", "[simai]") {
  const std::string layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n";
  const auto header = [&](const std::string& text) { return text_error(text + "\n1\n" + layer); };
  REQUIRE(header(kTextPolicy + "1") == "no error");
  REQUIRE(header("PICO").find("0.file:1: expected a policy: HYBRID_TRANSFORMER, ") == 0);
  REQUIRE(header("HYBRID_DLRM") ==
          "0.file:1: expected the number of the last bottom layer, found none");
  REQUIRE(header("HYBRID_DLRM 1") ==
          "0.file:1: DLRM_LAST_BOTTOM_LAYER: expected a layer from 0 to 0, found 1");
  REQUIRE(header("DATA 1").find("0.file:1: expected model_parallel_NPU_group, ep") == 0);
  REQUIRE(header(kTextPolicy + "1 pp_comm: 4") ==
          "0.file:1: pp_comm: expected 0 bytes without a pipeline, found 4");
  REQUIRE(header(kTextPolicy + "1 all_gpus: 16") ==
          "0.file:1: all_gpus: expected at most the 8 GPUs of the cluster, found 16");
  REQUIRE(header(kTextPolicy + "3") ==
          "0.file:1: expected model_parallel_NPU_group x ep x pp that divides the ranks, found 3 "
          "x 1 x 1 and 8");
  REQUIRE(header(kTextPolicy + "1 zp: 4").find("0.file:1: expected model_parallel_NPU_group, ep") ==
          0);
  REQUIRE(header(kTextPolicy + "1 ep: 2 ep: 2") ==
          "0.file:1: ep: expected it once, found it again");
  REQUIRE(header(kTextPolicy + "1 checkpoints: 2 0") ==
          "0.file:1: checkpoints: expected a number from 0 to 10000000, found the end of the "
          "line");
  REQUIRE(header(kTextPolicy + "1 checkpoint_initiates: 1 0") ==
          "0.file:1: checkpoint_initiates: expected layers from 0 to 0 with a checkpoint before "
          "them, found 0");
  const auto body = [&](const std::string& text) { return text_error(kTextPolicy + "1\n" + text); };
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
          "0.file:3: forward: expected NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or "
          "BROADCAST, alone or with _EP or _DP_EP, found \"ALLREDUCE_TP\"");
  REQUIRE(text_error("DATA\n1\na -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 0\n") ==
          "0.file:3: forward: expected NONE, as ASTRA-sim sends nothing there with this policy, "
          "found \"ALLREDUCE\"");
  REQUIRE(text_error("HYBRID_CUSTOMIZED\n1\n" + layer) ==
          "0.file:3: a: expected 13 fields, found 12");
  REQUIRE(body("1\na -1 1 NONE 0 1 NONE 8 1 NONE 0 0\n") ==
          "0.file:3: gradients of inputs: expected 0 bytes of NONE, found 8");
}

}  // namespace trainyard
