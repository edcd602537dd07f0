// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model_flops.h"

#include <string>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

Model shipped(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

// Of a step on GPUs with this peak.
double utilisation(const Model& model, FlopsConvention convention, std::int64_t sequence,
                   double sequences, double seconds, double gpus, double peak) {
  return training_flops(model, sequence, convention) * sequences * static_cast<double>(sequence) /
         seconds / gpus / peak;
}

}  // namespace

TEST_CASE("plain GPTs have the operations of the published formulas", "[model]") {
  for (const std::string name : {"gpt-3-175b", "megatron-1.7b", "megatron-530b"}) {
    const Model model = shipped(name);
    const auto h = static_cast<double>(model.hidden);
    const auto layers = static_cast<double>(model.layers.size());
    const auto vocabulary = static_cast<double>(model.vocabulary);
    const double s = 2048.0;
    // arXiv 2104.04473, equation 3, of one token.
    REQUIRE(training_flops(model, 2048, FlopsConvention::HardwareFullRecompute) ==
            Approx(96 * layers * h * h * (1 + s / (6 * h) + vocabulary / (16 * layers * h))));
    // arXiv 2205.05198, appendix A.
    REQUIRE(training_flops(model, 2048, FlopsConvention::Model) ==
            Approx(72 * layers * h * h * (1 + s / (6 * h) + vocabulary / (12 * layers * h))));
    REQUIRE(training_flops(model, 2048, FlopsConvention::HardwareSelectiveRecompute) ==
            Approx(72 * layers * h * h * (1 + s / (3 * h) + vocabulary / (12 * layers * h))));
  }
}

TEST_CASE("utilisations follow from published step times", "[model]") {
  const double a100 = 312e12;
  // arXiv 2205.05198, table 5: 175B, 64 sequences in 13.75 s on 64 GPUs, 51.4 and 52.8 %.
  const Model gpt = shipped("gpt-3-175b");
  REQUIRE(utilisation(gpt, FlopsConvention::Model, 2048, 64, 13.75, 64, a100) ==
          Approx(0.514).margin(0.0005));
  REQUIRE(utilisation(gpt, FlopsConvention::HardwareSelectiveRecompute, 2048, 64, 13.75, 64,
                      a100) == Approx(0.528).margin(0.0005));
  // arXiv 2201.11990: 530B, 1,920 sequences in 60.1 s on 2,240 GPUs, 126 TFLOP/s.
  REQUIRE(utilisation(shipped("megatron-530b"), FlopsConvention::HardwareFullRecompute, 2048, 1920,
                      60.1, 2240, 1e12) == Approx(126).margin(0.5));
}

TEST_CASE("what is computed again adds up to the published conventions", "[model]") {
  const Model model = shipped("gpt-3-175b");
  const double once = training_flops(model, 2048, FlopsConvention::Model);
  REQUIRE(recomputed_flops(model, 2048, Recompute::None, false) == 0.0);
  REQUIRE(once + recomputed_flops(model, 2048, Recompute::Full, false) ==
          Approx(training_flops(model, 2048, FlopsConvention::HardwareFullRecompute)));
  // That convention counts attention three times again; it is done once.
  const double again = recomputed_flops(model, 2048, Recompute::Selective, false);
  REQUIRE(once + 3.0 * again ==
          Approx(training_flops(model, 2048, FlopsConvention::HardwareSelectiveRecompute)));
  REQUIRE(again + 2.0 * recomputed_flops(model, 2048, Recompute::Selective, true) ==
          Approx(recomputed_flops(model, 2048, Recompute::Full, false)));
}

TEST_CASE("the conventions of Megatron's tables differ by half of the attention", "[model]") {
  // NVIDIA's tables of Llama 3: 5.79e10 a token without the mask, 5.15e10 with it, at 8,192 tokens.
  const Model small = shipped("llama-3-8b");
  REQUIRE(training_flops(small, 8192, FlopsConvention::Model) == Approx(5.79e10).epsilon(0.001));
  REQUIRE(training_flops(small, 8192, FlopsConvention::ModelCausal) ==
          Approx(5.15e10).epsilon(0.001));
  REQUIRE(training_flops(shipped("llama-3-405b"), 8192, FlopsConvention::ModelCausal) ==
          Approx(2.53e12).epsilon(0.003));
  // 6 N of the parameters and 12 L h s of attention.
  REQUIRE(training_flops(small, 8192, FlopsConvention::Palm) ==
          Approx(6.0 * 8'030'261'248.0 + 12.0 * 32 * 4096 * 8192));
}

TEST_CASE("only active experts work", "[model]") {
  const Model model = shipped("mixtral-8x7b");
  const TokenFlops flops = token_flops(model, 4096);
  const double attention = 4096.0 * (2 * 32 + 2 * 8) * 128;
  REQUIRE(flops.linear == Approx(2.0 * 32 * (attention + 2 * 3 * 4096.0 * 14336 + 4096.0 * 8)));
  REQUIRE(flops.attention == Approx(4.0 * 32 * 4096 * 4096));
  REQUIRE(flops.ends == Approx(2.0 * 4096 * 32000));
}

}  // namespace trainyard
