// SPDX-License-Identifier: Apache-2.0
// The list of tensors against the closed forms of arXiv 2205.05198, section 4, and against sums by
// hand for the layers that came later.
#include "parallelism/model/activation_memory.h"

#include <string>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

constexpr ActivationOptions kPublished{.attention = AttentionKernel::Unfused, .has_dropout = true};

// A layer as in the paper: f = 4 h.
Model published_model(std::int64_t hidden, std::int64_t heads) {
  ModelLayer layer;
  layer.attention.grouped =
      GroupedAttention{.heads = heads, .kv_heads = heads, .head_size = hidden / heads};
  layer.feed_forward = FeedForward{.size = 4 * hidden};
  Model model;
  model.hidden = hidden;
  model.vocabulary = 51200;
  model.norm = Norm::Layer;
  model.bias = Bias::All;
  model.layers = {layer};
  return model;
}

std::int64_t kept(const Model& model, const ParallelPlan& plan,
                  const ActivationOptions& options = kPublished) {
  return saved_bytes(kept_tensors(model, model.layers.front(), plan, options), plan.tokens())
      .forward.count();
}

}  // namespace

TEST_CASE("a layer keeps what the closed forms say", "[memory]") {
  for (const auto& [hidden, heads] : {std::pair{6144, 64}, std::pair{12288, 96}}) {
    const Model model = published_model(hidden, heads);
    for (const std::int64_t batch : {1, 4}) {
      const std::int64_t s = 2048;
      const std::int64_t sb = s * batch;
      const std::int64_t sbh = sb * hidden;
      const std::int64_t scores = 5 * sb * heads * s;
      ParallelPlan plan{.micro_batch = batch, .sequence = s};
      REQUIRE(kept(model, plan) == 34 * sbh + scores);
      for (const int t : {2, 4, 8}) {
        INFO("t=" << t);
        plan.tensor = t;
        plan.has_sequence_parallelism = false;
        plan.recompute = Recompute::None;
        REQUIRE(kept(model, plan) == 10 * sbh + (24 * sbh + scores) / t);
        plan.recompute = Recompute::Selective;
        REQUIRE(kept(model, plan) == 10 * sbh + 24 * sbh / t);
        plan.recompute = Recompute::Full;
        REQUIRE(kept(model, plan) == 2 * sbh);
        plan.has_sequence_parallelism = true;
        REQUIRE(kept(model, plan) == 2 * sbh / t);
        plan.recompute = Recompute::None;
        REQUIRE(kept(model, plan) == (34 * sbh + scores) / t);
        plan.recompute = Recompute::Selective;
        REQUIRE(kept(model, plan) == 34 * sbh / t);
      }
    }
  }
}

TEST_CASE("a rectifier needs what the second linear layer keeps, and nothing more", "[memory]") {
  const Model model = published_model(1024, 16);
  const ParallelPlan plan{.tensor = 4, .micro_batch = 8, .sequence = 2048, .element_bytes = 4};
  const std::int64_t sbh = std::int64_t{8} * 2048 * 1024;
  ActivationOptions options{.attention = AttentionKernel::Unfused};
  // In 32 bits, without dropout: 16 sbh in full, 48 sbh and the softmax over tensor ranks.
  const std::int64_t softmax = 4 * sbh / 1024 * 16 * 2048;
  REQUIRE(kept(model, plan, options) == 16 * sbh + (48 * sbh + softmax) / 4);
  options.has_rectifier = true;
  REQUIRE(kept(model, plan, options) == 16 * sbh + (32 * sbh + softmax) / 4);
}

TEST_CASE("the gradient of weights needs 32 sbh", "[memory]") {
  // Qi et al., arXiv 2401.10241, table 1.
  const Model model = published_model(4096, 32);
  const ParallelPlan plan{.micro_batch = 3, .sequence = 1024};
  const auto tensors = saved_tensors(model, model.layers.front(), plan, kPublished);
  REQUIRE(saved_bytes(tensors, plan.tokens()).weight.count() == 32 * 3 * 1024 * 4096);
}

TEST_CASE("context ranks share tokens, and scores stay as wide as the sequence", "[memory]") {
  const Model model = published_model(4096, 32);
  const ParallelPlan plan{.context = 4, .sequence = 8192};
  const ParallelPlan one{.sequence = 8192};
  REQUIRE(kept(model, plan) * 4 == kept(model, one));
}

TEST_CASE("ends keep masks, the last norm, the head's input and logits", "[memory]") {
  // arXiv 2205.05198, section 4.3: sbh of the embedding's dropout, 4 sbh (1 + V / h) at the end.
  const Model model = published_model(6144, 64);
  ParallelPlan plan{.tensor = 8, .has_sequence_parallelism = true};
  const std::int64_t sb = 2048;
  const std::int64_t h = model.hidden;
  REQUIRE(saved_bytes(embedding_tensors(model, plan, kPublished), sb).forward.count() ==
          sb * h / 8);
  REQUIRE(saved_bytes(head_tensors(model, plan, kPublished), sb).forward.count() ==
          4 * sb * (h + model.vocabulary) / 8);
  REQUIRE(loss_working_bytes(model, plan, {.loss = LossKernel::Fused}).count() == 2 * 2 * sb * h);
  REQUIRE((loss_working_bytes(model, plan, {.loss = LossKernel::PyTorch}) -
           loss_working_bytes(model, plan, {.loss = LossKernel::Fused}))
              .count() == 8 * sb * model.vocabulary / 8);
  // Gathered on each rank, in 16 bits.
  const ActivationOptions gathered{.loss = LossKernel::PyTorch16, .has_split_logits = false};
  REQUIRE(head_tensors(model, plan, gathered).back().bytes(sb).count() ==
          4 * sb * model.vocabulary);
}

TEST_CASE("modulated layers keep what shifts, scales and gates multiply", "[memory]") {
  Model model = published_model(1152, 16);
  const ParallelPlan plan{.micro_batch = 2, .sequence = 256};
  const std::int64_t plain = kept(model, plan);
  model.modulation = Modulation{.frequencies = 256};
  const std::int64_t sbh = plan.tokens() * model.hidden;
  REQUIRE(kept(model, plan) == plain + 8 * sbh);
  const std::int64_t end = 2 * sbh;
  Model unmodulated = model;
  unmodulated.modulation.reset();
  REQUIRE(saved_bytes(head_tensors(model, plan, kPublished), plan.tokens()).forward.count() ==
          saved_bytes(head_tensors(unmodulated, plan, kPublished), plan.tokens()).forward.count() +
              end);
}

TEST_CASE("norms behind blocks keep their inputs", "[memory]") {
  Model model = published_model(1024, 16);
  const ParallelPlan plan{.micro_batch = 2, .sequence = 512};
  const std::int64_t plain = kept(model, plan);
  model.has_output_norms = true;
  REQUIRE(kept(model, plan) == plain + 2 * 2 * plan.tokens() * model.hidden);
}

TEST_CASE("heads of encoders and of images keep the inputs of their layers", "[memory]") {
  Model model = published_model(1024, 16);
  const ParallelPlan plan{.micro_batch = 2, .sequence = 512};
  const std::int64_t sb = plan.tokens();
  const std::int64_t sbh = sb * model.hidden;
  const auto bytes = [&](const std::vector<SavedTensor>& tensors) {
    return saved_bytes(tensors, sb).forward.count();
  };
  model.is_post_norm = true;
  model.head.has_transform = true;
  REQUIRE(bytes(head_tensors(model, plan, kPublished)) ==
          3 * 2 * sbh + 2 * sbh + 4 * sb * model.vocabulary);
  // Patches of 16 x 16 x 3 elements; a class for a sample is too little to count.
  model.is_post_norm = false;
  model.vocabulary = 0;
  model.patches = Patches{.image = 224, .size = 16, .channels = 3};
  model.head = {.classes = 1000};
  REQUIRE(bytes(head_tensors(model, plan, kPublished)) == 2 * sbh);
  REQUIRE(head_tensors(model, plan, kPublished).back().bytes(sb).count() == 0);
  REQUIRE(bytes(embedding_tensors(model, plan, kPublished)) == 2 * sb * 768 + sbh);
  // Predictions of patches in 32 bits.
  model.head = {.channels = 3};
  REQUIRE(bytes(head_tensors(model, plan, kPublished)) == 2 * 2 * sbh + 4 * sb * 768);
}

TEST_CASE("groups of keys, gates and fused attention change the sum as their shapes say",
          "[memory]") {
  // Llama 3 70B: h = 8192, f = 3.5 h, keys and values h / 8 each.
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "llama-3-70b.yaml");
  const std::int64_t h = model.hidden;
  const std::int64_t tokens = 4096;
  const ParallelPlan plan{.sequence = tokens};
  // Norms, inputs of linears, queries and the output; keys and values; gate, inner vector, product;
  // a number in 32 bits for each head.
  const std::int64_t expected = tokens * (8 * h + 4 * h + h / 2 + 21 * h + 4 * 64);
  REQUIRE(kept(model, plan, {}) == expected);
  const ParallelPlan eight{.tensor = 8, .has_sequence_parallelism = true, .sequence = tokens};
  REQUIRE(kept(model, eight, {}) * 8 == expected);
  // Two hidden vectors of norms and two inputs are on every rank without sequence parallelism.
  const ParallelPlan plain{.tensor = 8, .sequence = tokens};
  REQUIRE(kept(model, plain, {}) == tokens * 8 * h + (expected - tokens * 8 * h) / 8);
}

TEST_CASE("latent attention keeps its vectors of low rank as well", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "deepseek-v3.yaml");
  const std::int64_t h = 7168;
  const ParallelPlan plan{.sequence = 4096};
  // Norms and inputs 8 h; latent vectors before and behind their norms; queries and keys of 192,
  // values and outputs of 128 elements a head; 6 f; sums.
  const std::int64_t expected =
      8 * h + 4 * (1536 + 512) + 128 * 2 * (2 * 192 + 2 * 128) + 6 * 18432 + 4 * 128;
  REQUIRE(kept(model, plan, {}) == 4096 * expected);
}

TEST_CASE("recomputation by operators keeps every other product", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "llama-3-8b.yaml");
  const std::int64_t h = model.hidden;
  const ParallelPlan plan{.sequence = 8192, .recompute = Recompute::Selective};
  const ActivationOptions options{.selective = SelectiveRecompute::AlternateProducts};
  // The input; queries, values, one of the two inner vectors, the output; that of attention.
  REQUIRE(kept(model, plan, options) == 8192 * (2 * (h + h + h / 4 + 14336 + h + h) + 4 * 32));
}

TEST_CASE("full recomputation keeps the input of a layer, and queries, keys and values if so told",
          "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "llama-3-8b.yaml");
  const std::int64_t h = model.hidden;
  const ParallelPlan plan{.sequence = 8192, .recompute = Recompute::Full};
  REQUIRE(kept(model, plan, {}) == 8192 * 2 * h);
  REQUIRE(kept(model, plan, {.keeps_projections = true}) == 8192 * 2 * (h + h + 2 * h / 4));
}

TEST_CASE("a ring holds keys and values of another rank beside its own", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "mpt-7b.yaml");
  const ModelLayer& layer = model.layers.front();
  ParallelPlan plan{.context = 4, .sequence = 32768};
  const Bytes ring = backward_working_bytes(model, layer, plan, {});
  plan.context_kind = ContextParallelism::AllToAll;
  // Attention's 12 h and the ring's 8 h more than the feed-forward's 8 h.
  REQUIRE((ring - backward_working_bytes(model, layer, plan, {})).count() ==
          2 * 8192 * (12 - 8) * model.hidden);
}

TEST_CASE("experts keep each token as often as it is sent", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "mixtral-8x7b.yaml");
  const std::int64_t h = 4096;
  const std::int64_t f = 14336;
  const std::int64_t tokens = 4096;
  const std::int64_t attention = 2 * h + 2 * h + 2 * h + 2 * 2 * 1024 + 4 * 32 + 2 * h + 2 * h;
  const std::int64_t experts = 2 * h + 4 * 8 + 2 * (2 * h + 6 * f);
  const ParallelPlan plan{.data = 8, .expert = 8, .sequence = tokens};
  REQUIRE(kept(model, plan, {}) == tokens * (attention + experts));
  // Ranks that are parts of one expert hold each other's tokens, and parts of the inner vectors.
  const ParallelPlan parts{
      .tensor = 2, .has_sequence_parallelism = true, .expert_tensor = 2, .sequence = tokens};
  REQUIRE(kept(model, parts, {}) * 2 == tokens * (attention + experts + 2 * 2 * h));
  // Half as many tokens again on the most loaded rank.
  REQUIRE(kept(model, plan, {.expert_imbalance = 1.5}) - kept(model, plan, {}) ==
          tokens * (2 * h + 6 * f));
}

}  // namespace trainyard
