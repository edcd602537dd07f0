// SPDX-License-Identifier: Apache-2.0
// Models of training rows: forms with the sizes of a row, files cut to its layers.
#include "calibration/training/training_model.h"

#include <filesystem>
#include <string>

#include "calibration/training/training_run.h"
#include "support/catch.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kModelRoot = source_dir();

ModelResolution resolved(const ModelFields& fields) {
  ModelFolder models(kModelRoot / "configs" / "workloads" / "models");
  return model_of(fields, models);
}

}  // namespace

TEST_CASE("a row without sizes lists all that a model needs", "[training]") {
  REQUIRE(resolved({}).missing == std::vector<std::string>{"model.layers", "model.hidden",
                                                           "model.heads", "model.vocab",
                                                           "model.form", "model.ffn_hidden"});
}

TEST_CASE("a form of a model makes the file of that model from its sizes", "[training]") {
  ModelFolder models(kModelRoot / "configs" / "workloads" / "models");
  const auto parameters = [&](const ModelFields& fields) {
    const ModelResolution result = model_of(fields, models);
    REQUIRE(result.missing.empty());
    return parameters_of(result.model).total();
  };
  const auto shipped = [&](const std::string& name) {
    return parameters_of(models.model(name)).total();
  };
  ModelFields fields{.layers = 96,
                     .hidden = 12288,
                     .heads = 96,
                     .feed_forward_ratio = 4,
                     .vocabulary = 51200,
                     .sequence = 2048};
  fields.form = ModelForm::Gpt;
  REQUIRE(parameters(fields) == shipped("gpt-3-175b"));
  fields = {.layers = 70, .hidden = 14336, .heads = 112, .feed_forward = 57344};
  fields.form = ModelForm::Bloom;
  fields.vocabulary = 250880;
  REQUIRE(parameters(fields) == shipped("bloom-176b"));
  fields = {.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .feed_forward = 28672};
  fields.form = ModelForm::Llama;
  fields.vocabulary = 128256;
  REQUIRE(parameters(fields) == shipped("llama-3-70b"));
  fields = {.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .feed_forward = 14336};
  fields.form = ModelForm::Llama;
  fields.vocabulary = 32000;
  fields.experts = 8;
  fields.active_experts = 2;
  REQUIRE(parameters(fields) == shipped("mixtral-8x7b"));
}

TEST_CASE("heads that do not divide the hidden size need a size of their own", "[training]") {
  ModelFields fields{.layers = 2, .hidden = 100, .heads = 3, .feed_forward = 400};
  fields.form = ModelForm::Gpt;
  fields.vocabulary = 1000;
  REQUIRE(resolved(fields).missing == std::vector<std::string>{"model.head_dim"});
  fields.head_size = 40;
  REQUIRE(resolved(fields).missing.empty());
}

TEST_CASE("a row with a rank has adapters beside frozen weights", "[training]") {
  ModelFields fields{.file = "llama-2-7b"};
  REQUIRE_FALSE(resolved(fields).model.adapters);
  fields.adapter_rank = 32;
  const ModelResolution of_all = resolved(fields);
  REQUIRE(of_all.clash.empty());
  REQUIRE(of_all.model.adapters->rank == 32);
  REQUIRE(of_all.model.adapters->targets.empty());
  fields.adapter_targets = {AdapterTarget::Query, AdapterTarget::Value};
  REQUIRE(resolved(fields).model.adapters->targets.size() == 2);
  fields.file = "mixtral-8x7b";
  REQUIRE(resolved(fields).clash == "expected no model.lora_rank with experts, found both");
}

TEST_CASE("latent attention needs a file", "[training]") {
  ModelFields fields{.layers = 2, .hidden = 64, .heads = 4, .feed_forward = 256};
  fields.form = ModelForm::Llama;
  fields.vocabulary = 1000;
  fields.latent_attention = true;
  REQUIRE(resolved(fields).missing == std::vector<std::string>{"model.file (latent attention)"});
}

TEST_CASE("a row cuts the layers of its model's file", "[training]") {
  ModelFields fields;
  fields.file = "deepseek-v3";
  fields.layers = 4;
  const auto with_experts = [&] {
    std::string kinds;
    for (const ModelLayer& layer : resolved(fields).model.layers) {
      kinds += layer.experts ? 'e' : 'd';
    }
    return kinds;
  };
  REQUIRE(with_experts() == "ddde");
  fields.dense_layers = 1;
  REQUIRE(with_experts() == "deee");
  fields.dense_layers = 3;
  fields.layers.reset();
  REQUIRE(with_experts() == "ddd" + std::string(58, 'e'));
}

TEST_CASE("a row must agree with the file of its model", "[training]") {
  ModelFields fields;
  fields.file = "llama-3-8b";
  fields.hidden = 5120;
  REQUIRE(resolved(fields).clash == "expected model.hidden of 4096, as in llama-3-8b, found 5120");
  fields.hidden = 4096;
  fields.vocabulary = 32000;
  REQUIRE(resolved(fields).clash.empty());
  REQUIRE(resolved(fields).model.vocabulary == 32000);
  fields.layers = 33;
  REQUIRE(resolved(fields).clash == "expected at most 32 model.layers, as in llama-3-8b, found 33");
  fields = {};
  fields.file = "vit-large-16";
  REQUIRE(resolved(fields).clash.empty());
  fields.vocabulary = 1000;
  REQUIRE(resolved(fields).clash == "expected no model.vocab, as in vit-large-16, found 1000");
}

}  // namespace trainyard
