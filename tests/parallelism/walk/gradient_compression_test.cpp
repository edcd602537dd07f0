// SPDX-License-Identifier: Apache-2.0
// Calls, kernels and memory of gradient compression against what the papers and PyTorch's hooks
// count, one matrix at a time.
#include "support/catch.h"

#include "parallelism/walk/gradient_compression.h"

#include <vector>

#include "parallelism/walk/step_traffic.h"
#include "support/built_clusters.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

constexpr int kDataRanks = 8;

struct CompressionCase {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ParallelPlan plan{.data = kDataRanks};
  SoftwareProfile software = shipped_software("pytorch-native");
  OperatorTimes operators{shipped_compute("H100-SXM", "pytorch-native")};

  explicit CompressionCase(const GradientCompression& compression) {
    plan.compression = compression;
  }
  [[nodiscard]] RankParameters all() const {
    return place_parameters(model, pipeline_stages(plan, model), plan, 0);
  }
  [[nodiscard]] std::vector<GroupCall> calls() const {
    return data_calls(all(), plan, software).reduce;
  }
  [[nodiscard]] CompressionTimes times() const {
    return compression_times(all(), plan, software, operators);
  }
};

// Elements of all calls of a kind; buckets are filled up to equal ones.
void require_elements(const GroupCall& call, std::int64_t expected) {
  REQUIRE(call.elements * call.times >= expected);
  REQUIRE((call.elements - 1) * call.times < expected);
}

}  // namespace

TEST_CASE("casts halve what data ranks sum up, and pass memory before and behind",
          "[gradient-compression]") {
  for (const CompressionMethod method : {CompressionMethod::Fp16, CompressionMethod::Bf16}) {
    CompressionCase test({.method = method});
    const std::int64_t elements = test.all().dense;
    REQUIRE(test.calls().size() == 1);
    require_elements(test.calls().front(), elements);
    REQUIRE(test.calls().front().element_bytes == 2);
    const auto counted = static_cast<double>(elements);
    REQUIRE(test.times().before == test.operators.memory(counted * (4 + 2 + 2 + 2)));
    REQUIRE(test.times().behind == test.operators.memory(counted * (2 + 4)));
    REQUIRE(compression_buffers(test.all(), test.plan, 4) == Bytes());
    // Megatron's gradients have 16 bits already.
    test.software = shipped_software("nemo");
    REQUIRE_FALSE(compression_of(test.plan, test.software));
    REQUIRE(test.calls().front().element_bytes == 2);
    REQUIRE(test.times().before == SimTime());
  }
}

TEST_CASE("PowerSGD sums two thin matrices for each matrix that they make smaller",
          "[gradient-compression]") {
  const int rank = 4;
  const CompressionCase test({.method = CompressionMethod::PowerSgd, .rank = rank});
  const std::int64_t hidden = 4096;
  const std::int64_t inner = 14336;
  const std::int64_t vocabulary = 128256;
  // Queries with keys and values, output, gate with up, down, of 32 layers; embedding and head.
  const std::vector<std::pair<std::int64_t, std::int64_t>> layer{
      {hidden + 2 * 1024, hidden}, {hidden, hidden}, {2 * inner, hidden}, {hidden, inner}};
  std::int64_t left = 2 * vocabulary * rank;
  std::int64_t right = 2 * hidden * rank;
  for (const auto& [rows, columns] : layer) {
    left += 32 * rows * rank;
    right += 32 * columns * rank;
  }
  const std::int64_t norms = (2 * 32 + 1) * hidden;
  const std::vector<GroupCall> calls = test.calls();
  REQUIRE(calls.size() == 3);
  require_elements(calls[0], norms);
  require_elements(calls[1], left);
  require_elements(calls[2], right);
  for (const GroupCall& call : calls) {
    REQUIRE(call.operation == Operation::AllReduce);
    REQUIRE(call.element_bytes == 4);
  }
  REQUIRE(compression_buffers(test.all(), test.plan, 4) ==
          Bytes((test.all().dense + left + right) * 4));
  // No faster than its passes over memory; more columns take longer.
  const auto bytes = static_cast<double>(test.all().dense) * 4.0;
  REQUIRE(test.times().before > test.operators.memory(6.0 * bytes * 0.99));
  REQUIRE(test.times().behind > test.operators.memory(5.0 * bytes * 0.99));
  const CompressionCase wide({.method = CompressionMethod::PowerSgd, .rank = 64});
  REQUIRE(wide.times().before > test.times().before);
  REQUIRE(wide.times().behind > test.times().behind);
  // 4096 x 4096 is as small as its thin matrices of 1024 columns: it stays whole.
  const CompressionCase widest({.method = CompressionMethod::PowerSgd, .rank = 1024});
  require_elements(widest.calls()[0], norms + 32 * hidden * hidden);
}

TEST_CASE("top-k gathers values with their places from every rank", "[gradient-compression]") {
  const CompressionCase test({.method = CompressionMethod::TopK, .ratio = 0.01});
  const std::int64_t kept = (test.all().dense + 99) / 100;
  REQUIRE(test.calls().size() == 1);
  const GroupCall call = test.calls().front();
  REQUIRE(call.operation == Operation::AllGather);
  require_elements(call, kept * kDataRanks);
  REQUIRE(call.element_bytes == 4 + 4);
  REQUIRE(compression_buffers(test.all(), test.plan, 4) ==
          Bytes(test.all().dense * 4 + kept * kDataRanks * 8));
  const auto bytes = static_cast<double>(test.all().dense) * 4.0;
  REQUIRE(test.times().before == test.operators.memory(12.0 * bytes));
}

TEST_CASE("experts and dense weights are compressed over ranks of their own",
          "[gradient-compression]") {
  CompressionCase test({.method = CompressionMethod::TopK, .ratio = 0.5});
  test.plan.expert = 4;
  const RankParameters parameters{.dense = 1000, .expert = 600};
  const std::vector<GroupCall> calls = data_calls(parameters, test.plan, test.software).reduce;
  REQUIRE(calls.size() == 2);
  REQUIRE(calls[0].elements == 500 * kDataRanks);
  REQUIRE(calls[1].elements == 300 * kDataRanks / 4);
  // One rank sums nothing, and compresses nothing.
  test.plan.expert = kDataRanks;
  REQUIRE(data_calls(parameters, test.plan, test.software).reduce.size() == 1);
  REQUIRE(compression_buffers({.expert = 600}, test.plan, 4) == Bytes());
  REQUIRE(compression_times({.expert = 600}, test.plan, test.software, test.operators).before ==
          SimTime());
}

TEST_CASE("compression is named in words", "[gradient-compression]") {
  REQUIRE(describe({.method = CompressionMethod::Bf16}) == "bf16");
  REQUIRE(describe({.method = CompressionMethod::PowerSgd, .rank = 2}) == "PowerSGD of rank 2");
  REQUIRE(describe({.method = CompressionMethod::TopK, .ratio = 0.001}) == "the largest 0.1 %");
}

}  // namespace trainyard
