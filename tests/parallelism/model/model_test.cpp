// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/model.h"

#include <map>
#include <string>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

const std::filesystem::path kModels = kConfigsFolder / "workloads" / "models";

Model shipped_model(const std::string& name) {
  return load_model(kModels / (name + ".yaml"));
}

Model model_of(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "m.yaml");
  Model model = read_model(document.root(), "m");
  document.finish();
  return model;
}

const std::string kHead =
    "title: T\nsource: \"none\"\nhidden: 64\nvocabulary: 100\nlayers:\n  - count: 2\n";
const std::string kAttention = "    attention: {heads: 4, kv_heads: 2, head_size: 16}\n";
const std::string kFeedForward = "    feed_forward: {size: 256, gated: true}\n";

}  // namespace

TEST_CASE("parameters of the shipped models are those of the published checkpoints", "[model]") {
  // Sums over the tensors of the checkpoints, as the model pages print them.
  const std::map<std::string, std::int64_t> published = {
      {"llama-2-7b", 6'738'415'616},
      {"llama-2-13b", 13'015'864'320},
      {"llama-2-70b", 68'976'648'192},
      {"llama-3-8b", 8'030'261'248},
      {"llama-3-70b", 70'553'706'496},
      {"llama-3-405b", 405'853'388'800},
      {"mixtral-8x7b", 46'702'792'704},
      {"mixtral-8x22b", 140'620'634'112},
      {"qwen3-8b", 8'190'735'360},
      {"qwen3-32b", 32'762'123'264},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-235b-a22b", 235'093'634'560},
      {"deepseek-v3", 671'026'419'200},
      {"bloom-176b", 176'247'271'424},
      {"deepseek-v2", 235'741'434'880},
      {"kimi-k2", 1'026'408'232'448},
      {"mpt-7b", 6'658'859'008},
      {"mpt-13b", 12'853'954'560},
      {"llama-3.2-1b", 1'235'814'400},
      {"llama-3.2-3b", 3'212'749'824},
      {"qwen2.5-0.5b", 494'032'768},
      {"qwen2.5-1.5b", 1'543'714'304},
      {"qwen2.5-3b", 3'085'938'688},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen2.5-14b", 14'770'033'664},
      {"qwen2.5-32b", 32'763'876'352},
      {"qwen2.5-72b", 72'706'203'648},
      {"qwen3-0.6b", 596'049'920},
      {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-4b", 4'022'468'096},
      {"qwen3-14b", 14'768'307'200},
      {"mistral-7b", 7'241'732'096},
      {"mistral-nemo-12b", 12'247'782'400},
      {"mistral-large-2", 122'610'069'504},
      {"gemma-2-2b", 2'614'341'888},
      {"gemma-2-9b", 9'241'705'984},
      {"gemma-2-27b", 27'227'128'320},
      {"gemma-3-1b", 999'885'952},
      {"phi-3-mini", 3'821'079'552},
      {"phi-3-medium", 13'960'238'080},
      {"phi-4", 14'659'507'200},
      {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},
      {"gpt-oss-20b", 20'914'757'184},
      {"gpt-oss-120b", 116'829'156'672},
      {"deepseek-v2-lite", 15'706'484'224},
      // Text alone: 4,300,079,472, 12,187,325,040 and 27,432,406,640 less the SigLIP encoder and
      // its projection, and 108,641,793,536 and 401,583,781,376 less those of Llama 4.
      {"gemma-3-4b", 3'880'263'168},
      {"gemma-3-12b", 11'766'034'176},
      {"gemma-3-27b", 27'009'346'304},
      {"llama-4-scout", 107'769'861'120},
      {"llama-4-maverick", 400'711'848'960},
      // BertForPreTraining of huggingface/transformers, with both heads.
      {"bert-base", 110'106'428},
      {"bert-large", 336'226'108},
      // num_params of torchvision/models/vision_transformer.py.
      {"vit-base-16", 86'567'656},
      {"vit-large-16", 304'326'632},
      {"vit-huge-14", 632'045'800},
      // What train.py of facebookresearch/DiT prints.
      {"dit-xl-2", 675'129'632},
  };
  for (const auto& [name, count] : published) {
    INFO(name);
    REQUIRE(parameters_of(shipped_model(name)).total() == count);
  }
}

TEST_CASE("active parameters are those that the models are named after", "[model]") {
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("mixtral-8x7b"))) / 1e9 ==
          Approx(12.9).margin(0.1));
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("qwen3-30b-a3b"))) / 1e9 ==
          Approx(3.3).margin(0.1));
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("qwen3-235b-a22b"))) / 1e9 ==
          Approx(22.1).margin(0.1));
  // arXiv 2405.04434: 21 B; arXiv 2507.20534: 32.6 B.
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("deepseek-v2"))) / 1e9 ==
          Approx(21.4).margin(0.1));
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("kimi-k2"))) / 1e9 ==
          Approx(32.9).margin(0.1));
  // arXiv 2508.10925, table 1: 3.61 B and 5.13 B, without the embedding.
  for (const auto& [name, active] : {std::pair("gpt-oss-20b", 3.61), {"gpt-oss-120b", 5.13}}) {
    const Model model = shipped_model(name);
    const std::int64_t embedding = model.vocabulary * model.hidden;
    REQUIRE(static_cast<double>(active_parameters_of(model) - embedding) / 1e9 ==
            Approx(active).margin(0.01));
  }
  // Both are called 17B.
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("llama-4-scout"))) / 1e9 ==
          Approx(17.2).margin(0.1));
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("llama-4-maverick"))) / 1e9 ==
          Approx(17.2).margin(0.1));
  // arXiv 2405.04434, appendix B: 2.4 B, without one of the tables of the vocabulary.
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("deepseek-v2-lite"))) / 1e9 ==
          Approx(2.66).margin(0.01));
  // arXiv 2412.19437: 37 B.
  REQUIRE(static_cast<double>(active_parameters_of(shipped_model("deepseek-v3"))) / 1e9 ==
          Approx(37.5).margin(0.1));
  REQUIRE(active_parameters_of(shipped_model("llama-3-8b")) ==
          parameters_of(shipped_model("llama-3-8b")).total());
}

TEST_CASE("models without a published sum have the rounded count of their papers", "[model]") {
  const auto billions = [](std::int64_t count) { return static_cast<double>(count) / 1e9; };
  // https://github.com/xai-org/grok-1: 314 B.
  REQUIRE(billions(parameters_of(shipped_model("grok-1")).total()) == Approx(314.0).epsilon(0.01));
  // arXiv 2402.16819, section 2.
  const ParameterCount nemotron = parameters_of(shipped_model("nemotron-4-15b"));
  REQUIRE(billions(nemotron.embedding + nemotron.head) == Approx(3.2).margin(0.06));
  REQUIRE(billions(nemotron.total() - nemotron.embedding - nemotron.head) ==
          Approx(12.5).margin(0.05));
  // https://huggingface.co/internlm/internlm-7b: 7.3 B.
  REQUIRE(billions(parameters_of(shipped_model("internlm-7b")).total()) ==
          Approx(7.3).margin(0.05));
  // arXiv 2106.04560, table 2: 1,843 M, with an attention pooling that is left out here.
  REQUIRE(billions(parameters_of(shipped_model("vit-gigantic-14")).total()) ==
          Approx(1.843).margin(0.002));
}

TEST_CASE("plain GPTs have the parameters of Megatron's formula", "[model]") {
  // 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h)), arXiv 2104.04473, equation 2; the last norm is
  // not in it.
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    const Model model = load_model(entry.path());
    INFO(model.name);
    REQUIRE(parameters_of(model).total() > 80'000'000);
    if (model.name.starts_with("megatron-") || model.name == "gpt-3-175b") {
      const auto layers = static_cast<std::int64_t>(model.layers.size());
      const std::int64_t h = model.hidden;
      REQUIRE(parameters_of(model).total() == 12 * layers * h * h + 13 * layers * h +
                                                  (model.vocabulary + model.learned_positions) * h +
                                                  2 * h);
    }
  }
}

TEST_CASE("the parts of a layer add up", "[model]") {
  const Model model = model_of(kHead + kAttention + kFeedForward);
  REQUIRE(model.layers.size() == 2);
  const ParameterCount layer = parameters_of(model, model.layers[0]);
  REQUIRE(layer.attention == 64 * (4 + 2 * 2) * 16 + 64 * 64);
  REQUIRE(layer.feed_forward == 3 * 64 * 256);
  REQUIRE(layer.norms == 2 * 64);
  REQUIRE(layer.experts + layer.routers + layer.embedding + layer.head == 0);
  REQUIRE(parameters_of(model).total() == 2 * layer.total() + 2 * 100 * 64 + 64);
}

TEST_CASE("a layer has the norms and numbers that its keys say", "[model]") {
  const std::string text =
      "title: T\nhidden: 64\nvocabulary: 100\noutput_norms: true\nlayers:\n  - count: 1\n"
      "    attention: {heads: 4, head_size: 16, sinks: true}\n" +
      kFeedForward;
  const Model model = model_of(text);
  const ParameterCount layer = parameters_of(model, model.layers[0]);
  REQUIRE(layer.norms == 4 * 64);
  REQUIRE(layer.attention == 4 * 64 * 64 + 4);
}

TEST_CASE("layers are repeated up to the depth", "[model]") {
  const Model model = shipped_model("gemma-3-1b");
  REQUIRE(model.layers.size() == 26);
  for (std::size_t index = 0; index < model.layers.size(); ++index) {
    REQUIRE(model.layers[index].attention.window == (index % 6 == 5 ? 0 : 512));
  }
  REQUIRE_THROWS_MATCHES(
      model_of("depth: 1\n" + kHead + kAttention + kFeedForward), ConfigError,
      Catch::Matchers::Message("m.yaml:7:3: layers: expected at most depth, 1, layers, found 2"));
}

TEST_CASE("a window leaves the scores that a mask leaves near each token", "[model]") {
  Attention attention;
  for (const bool is_causal : {true, false}) {
    attention.is_causal = is_causal;
    attention.window = 0;
    REQUIRE(attention.window_share(64) == 1.0);
    attention.window = 64;
    REQUIRE(attention.window_share(64) == 1.0);
  }
  attention.window = 16;
  REQUIRE(attention.window_share(64) == Approx(0.25));
  // 64 x 16 - 16^2 / 2 of 64^2 / 2.
  attention.is_causal = true;
  REQUIRE(attention.window_share(64) == Approx(896.0 / 2048.0));
}

TEST_CASE("parts of encoders and models of images are where they belong", "[model]") {
  const ParameterCount bert = parameters_of(shipped_model("bert-base"));
  // Words, positions and types; transform, pooler, two classes and a bias for each word.
  REQUIRE(bert.embedding == (30'522 + 512 + 2) * 768);
  REQUIRE(bert.head == 2 * (768 * 768 + 768) + 2 * 768 + 2 + 30'522);
  REQUIRE(bert.norms == (1 + 12 * 2 + 1) * 2 * 768);  // No last one.
  const ParameterCount vit = parameters_of(shipped_model("vit-base-16"));
  REQUIRE(vit.embedding == 16 * 16 * 3 * 768 + 768 + (197 + 1) * 768);
  REQUIRE(vit.head == 768 * 1000 + 1000);
  const ParameterCount dit = parameters_of(shipped_model("dit-xl-2"));
  REQUIRE(dit.modulation == 28 * (1152 * 6 + 6) * 1152);
  REQUIRE(dit.norms == 0);
  REQUIRE(dit.head == (1152 + 1) * 2 * 1152 + (1152 + 1) * 2 * 2 * 8);
  REQUIRE(parameters_of(shipped_model("llama-3-8b")).modulation == 0);
}

TEST_CASE("images say how many tokens they are", "[model]") {
  REQUIRE(shipped_model("vit-base-16").patches->tokens() == 197);
  REQUIRE(shipped_model("vit-gigantic-14").patches->tokens() == 257);
  REQUIRE(shipped_model("dit-xl-2").patches->tokens() == 256);
  REQUIRE_FALSE(shipped_model("bert-base").patches.has_value());
}

TEST_CASE("keys of text stand in no model of images", "[model]") {
  const auto require_refused = [](const std::string& text, const std::string& message) {
    REQUIRE_THROWS_MATCHES(model_of(text), ConfigError,
                           Catch::Matchers::Message("m.yaml:" + message));
  };
  const std::string layers = "layers:\n  - count: 2\n" + kAttention + kFeedForward;
  const std::string start = "title: T\nhidden: 64\n";
  const std::string patches = "patches: {image: 32, size: 8, channels: 3}\n";
  const std::string head = "head: {classes: 10}\n";
  REQUIRE(model_of(start + patches + head + layers).patches->tokens() == 16);
  require_refused(start + "vocabulary: 100\n" + patches + head + layers,
                  "3:13: vocabulary: expected no such key beside patches, found \"100\"");
  require_refused(start + "tied_embeddings: true\n" + patches + head + layers,
                  "3:18: tied_embeddings: expected no such key beside patches, found \"true\"");
  require_refused(start + patches + "head: {classes: 10, bias: true}\n" + layers,
                  "4:27: head.bias: expected no such key beside patches, which have no "
                  "vocabulary, found \"true\"");
  require_refused(start + "vocabulary: 100\nhead: {channels: 4}\n" + layers,
                  "4:18: head.channels: expected no such key without patches, found \"4\"");
  require_refused(start + patches + layers,
                  "1:1: expected a head with classes or channels, as patches have no vocabulary");
  require_refused(start + "patches: {image: 30, size: 8, channels: 3}\n" + head + layers,
                  "3:28: patches.size: expected a divisor of image, 30, found 8");
  require_refused(start + patches + "learned_positions: 15\n" + head + layers,
                  "4:20: learned_positions: expected at least the 16 tokens of an image, found 15");
}

TEST_CASE("a wrong model is refused with its place", "[model]") {
  const auto require_refused = [](const std::string& text, const std::string& message) {
    REQUIRE_THROWS_MATCHES(model_of(text), ConfigError,
                           Catch::Matchers::Message("m.yaml:" + message));
  };
  require_refused(kHead + "    attention: {heads: 4, kv_heads: 3, head_size: 16}\n" + kFeedForward,
                  "7:37: layers[0].attention.kv_heads: expected a divisor of heads, 4, found 3");
  require_refused(kHead + kAttention, "6:5: layers[0]: expected either feed_forward or experts");
  require_refused(
      kHead + kAttention + "    experts: {count: 4, active: 8, expert: {size: 8, gated: true}}\n",
      "8:33: layers[0].experts.active: expected at most count, 4, found 8");
  require_refused("title: T\nsource: s\nhidden: 64\nvocabulary: 100\nlayers: []\n",
                  "5:9: layers: expected at least one kind of layer, found none");
}

}  // namespace trainyard
