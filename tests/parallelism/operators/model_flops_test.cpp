// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/model_flops.h"

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
  SoftwareProfile products;
  products.recomputes_products = true;
  REQUIRE(recomputed_flops(model, 2048, Recompute::None, {}) == 0.0);
  REQUIRE(once + recomputed_flops(model, 2048, Recompute::Full, {}) ==
          Approx(training_flops(model, 2048, FlopsConvention::HardwareFullRecompute)));
  // That convention counts attention three times again; it is done once.
  const double again = recomputed_flops(model, 2048, Recompute::Selective, {});
  REQUIRE(once + 3.0 * again ==
          Approx(training_flops(model, 2048, FlopsConvention::HardwareSelectiveRecompute)));
  REQUIRE(again + 2.0 * recomputed_flops(model, 2048, Recompute::Selective, products) ==
          Approx(recomputed_flops(model, 2048, Recompute::Full, {})));
  // Of 12 h^2 weights of a layer the last product has 4, queries, keys and values 3.
  SoftwareProfile software;
  const auto linear = [&](FullRecompute kind) {
    software.full_recompute = kind;
    return recomputed_flops(model, 2048, Recompute::Full, software) - again;
  };
  const double layer = linear(FullRecompute::Layer);
  REQUIRE(linear(FullRecompute::Needed) == Approx(layer * 8.0 / 12.0));
  REQUIRE(linear(FullRecompute::Unprojected) == Approx(layer * 5.0 / 12.0));
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

// Of a sample forward; a multiplication and an addition are one, as these papers count.
double sample_products(const std::string& name, std::int64_t sequence) {
  const auto [linear, attention, ends] = token_flops(shipped(name), sequence);
  return (linear + attention + ends) * static_cast<double>(sequence) / 2.0;
}

TEST_CASE("encoders and models of images have the published operations", "[model]") {
  // _ops of torchvision/models/vision_transformer.py, in G, to their last digit.
  REQUIRE(sample_products("vit-base-16", 197) / 1e9 == Approx(17.564).margin(0.0005));
  REQUIRE(sample_products("vit-large-16", 197) / 1e9 == Approx(61.555).margin(0.0005));
  REQUIRE(sample_products("vit-huge-14", 257) / 1e9 == Approx(167.295).margin(0.0005));
  // arXiv 2106.04560, table 2: 965.3 GFLOP, two for a multiplication and an addition, with an
  // attention pooling that is left out here.
  REQUIRE(2.0 * sample_products("vit-gigantic-14", 257) / 1e9 == Approx(965.3).epsilon(0.005));
  // arXiv 2212.09748, table 4: 118.64 G at 256, with norms and what else is no product.
  REQUIRE(sample_products("dit-xl-2", 256) / 1e9 == Approx(118.64).epsilon(0.0005));
  // arXiv 1909.10351, table 1: 22.5 GFLOP of BERT base at 128 tokens, without the heads of its
  // pre-training; two for a multiplication and an addition.
  const TokenFlops bert = token_flops(shipped("bert-base"), 128);
  REQUIRE((bert.linear + bert.attention) * 128 / 1e9 == Approx(22.5).epsilon(0.01));
}

TEST_CASE("what is done for each sample is no work of its tokens", "[model]") {
  const Model dit = shipped("dit-xl-2");
  Model plain = dit;
  plain.modulation.reset();
  const double of_sample = (token_flops(dit, 256).linear - token_flops(plain, 256).linear) * 256.0;
  REQUIRE(of_sample == Approx(2.0 * 28 * 6 * 1152 * 1152));
  const double ends = (token_flops(dit, 256).ends - token_flops(plain, 256).ends) * 256.0;
  REQUIRE(ends == Approx(2.0 * 1152 * (256 + 1152 + 2 * 1152)));
  REQUIRE(token_flops(plain, 256).ends * 256.0 ==
          Approx(2.0 * 256 * (2 * 2 * 4 + 2 * 2 * 8) * 1152));
}

TEST_CASE("a window leaves out the work of what it hides", "[model]") {
  Model model = shipped("mistral-7b");
  const auto attention_at = [&](std::int64_t sequence) {
    return token_flops(model, sequence).attention;
  };
  const double windowed = attention_at(16'384);
  REQUIRE(windowed == Approx(7.0 / 16.0 * 4.0 * attention_at(4096)));
  for (ModelLayer& layer : model.layers) {
    layer.attention.window = 0;
  }
  REQUIRE(windowed == Approx(7.0 / 16.0 * attention_at(16'384)));
}

TEST_CASE("only active experts work", "[model]") {
  const Model model = shipped("mixtral-8x7b");
  const TokenFlops flops = token_flops(model, 4096);
  const double attention = 4096.0 * (2 * 32 + 2 * 8) * 128;
  REQUIRE(flops.linear == Approx(2.0 * 32 * (attention + 2 * 3 * 4096.0 * 14336 + 4096.0 * 8)));
  REQUIRE(flops.attention == Approx(4.0 * 32 * 4096 * 4096));
  REQUIRE(flops.ends == Approx(2.0 * 4096 * 32000));
}

// NVIDIA's table of Megatron-Bridge 26.06 (validation/training/megatron_bridge_perf.yaml) has 735
// TFLOP/s at 2,643 tokens/s, NeMo's of 2024 (nemo_docs_2024.yaml) 663 at 24,824: two passes of all
// weights, without attention.
TEST_CASE("fine-tuning counts no gradients of frozen weights, as NVIDIA does", "[flops]") {
  const TokenFlops large = token_flops(shipped("llama-3-70b"), 4096);
  REQUIRE(2.0 * (large.linear + large.ends) == Approx(735e12 / 2643).epsilon(0.01));
  Model small = shipped("llama-2-7b");
  const double full = training_flops(small, 4096, FlopsConvention::Palm);
  const double again = recomputed_flops(small, 4096, Recompute::Full, {});
  small.adapters = Adapters{
      .rank = 32, .targets = {AdapterTarget::Query, AdapterTarget::Key, AdapterTarget::Value}};
  const double trained = 2.0 * 25'165'824;
  const TokenFlops flops = token_flops(small, 4096);
  REQUIRE(2.0 * (flops.linear + flops.ends) == Approx(663e12 / 24'824).epsilon(0.015));
  REQUIRE(training_flops(small, 4096, FlopsConvention::Model) ==
          Approx(2.0 * (flops.linear + flops.ends) + 3.0 * (flops.attention + trained)));
  REQUIRE(training_flops(small, 4096, FlopsConvention::Palm) ==
          Approx(full - 2.0 * 6'738'415'616 + 3.0 * trained));
  REQUIRE(recomputed_flops(small, 4096, Recompute::Full, {}) == Approx(again + trained));
}

}  // namespace trainyard
