// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/operators/layer_time.h"

#include <array>
#include <string>

#include "parallelism/operators/model_flops.h"
#include "parallelism/workload/workload.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

Model shipped_model(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

ParallelPlan plan_of(int tensor) {
  return {.tensor = tensor, .has_sequence_parallelism = tensor > 1, .sequence = 4096};
}

// At the rate of products alone; with whole tiles and no other cost.
ComputeRates ideal_rates() {
  ComputeRates rates = unit_rates();
  rates.multiprocessors = 1;
  rates.gemm_rate = 1e12;
  rates.linear_rate = 1e12;
  rates.memory_rate = 1e30;
  return rates;
}

double linear_seconds(const PassTimes& times) {
  return times.forward[StepPart::Linear].seconds();
}

}  // namespace

TEST_CASE("products of a layer do the operations that the model counts", "[layer]") {
  const OperatorTimes operators(ideal_rates());
  for (const std::string name : {"llama-3-70b", "gpt-3-175b", "deepseek-v3", "bert-large"}) {
    INFO(name);
    const Model model = shipped_model(name);
    ParallelPlan plan = plan_of(1);
    double sum = 0.0;
    for (const ModelLayer& layer : model.layers) {
      const PassTimes times = layer_times(model, layer, plan, operators);
      sum += linear_seconds(times);
      // Tiles fit some sides better than others.
      REQUIRE(times.input_gradient[StepPart::Linear].seconds() ==
              Approx(linear_seconds(times)).epsilon(0.12));
      REQUIRE(times.weight_gradient[StepPart::Linear].seconds() ==
              Approx(linear_seconds(times)).epsilon(0.12));
    }
    const double flops =
        token_flops(model, plan.sequence).linear * static_cast<double>(plan.tokens());
    REQUIRE(sum == Approx(flops / 1e12).epsilon(name == "deepseek-v3" ? 0.12 : 0.02));
  }
}

TEST_CASE("what is done for each sample takes as long whatever its tokens", "[layer]") {
  const OperatorTimes operators(ideal_rates());
  const Model dit = shipped_model("dit-xl-2");
  Model plain = dit;
  plain.modulation.reset();
  const auto of_samples = [&](std::int64_t sequence, int context) {
    const ParallelPlan plan{.context = context, .micro_batch = 64, .sequence = sequence};
    return linear_seconds(layer_times(dit, dit.layers[0], plan, operators)) -
           linear_seconds(layer_times(plain, plain.layers[0], plan, operators));
  };
  // 64 rows are a whole tile at 0.52 of the rate.
  const double expected = 2.0 * 64 * 6 * 1152 * 1152 / 1e12 / 0.52;
  REQUIRE(of_samples(256, 1) == Approx(expected).epsilon(0.01));
  REQUIRE(of_samples(1024, 1) == Approx(of_samples(256, 1)).epsilon(1e-6));
  REQUIRE(of_samples(256, 2) == Approx(of_samples(256, 1)).epsilon(1e-6));
}

TEST_CASE("ends of encoders and images do the operations that the model counts", "[layer]") {
  const OperatorTimes operators(ideal_rates());
  for (const std::string name : {"bert-large", "vit-huge-14", "dit-xl-2"}) {
    INFO(name);
    const Model model = shipped_model(name);
    const std::int64_t sequence = model.patches ? model.patches->tokens() : 512;
    const ParallelPlan plan{.micro_batch = 128, .sequence = sequence};
    const PassTimes embedding = embedding_times(model, plan, operators);
    const double seconds = linear_seconds(embedding) +
                           head_times(model, plan, operators).forward[StepPart::Head].seconds();
    const double flops = token_flops(model, sequence).ends * static_cast<double>(plan.tokens());
    // Few outputs fill no tile.
    REQUIRE(seconds / (flops / 1e12) > 0.99);
    REQUIRE(seconds / (flops / 1e12) < (name == "dit-xl-2" ? 2.6 : 1.15));
    // Nothing is behind the pixels.
    REQUIRE(embedding.input_gradient[StepPart::Linear] <= embedding.forward[StepPart::Linear]);
    REQUIRE((embedding.input_gradient[StepPart::Linear] > SimTime()) ==
            model.modulation.has_value());
  }
}

TEST_CASE("separate kernels for shifts, scales and gates take time", "[layer]") {
  ComputeRates rates = unit_rates();
  const Model dit = shipped_model("dit-xl-2");
  const ParallelPlan plan{.micro_batch = 4, .sequence = 256};
  rates.fuses_operators = true;
  const PassTimes fused = layer_times(dit, dit.layers[0], plan, OperatorTimes(rates));
  rates.fuses_operators = false;
  const PassTimes eager = layer_times(dit, dit.layers[0], plan, OperatorTimes(rates));
  const double bytes = 24.0 * static_cast<double>(plan.tokens() * dit.hidden);
  REQUIRE((eager.forward[StepPart::MemoryBound] - fused.forward[StepPart::MemoryBound]).seconds() ==
          Approx(bytes / rates.memory_rate));
}

TEST_CASE("tensor, expert and context ranks share the work of a layer evenly", "[layer]") {
  const OperatorTimes operators(ideal_rates());
  const Model dense = shipped_model("llama-3-70b");
  const Model mixture = shipped_model("mixtral-8x7b");
  const double whole = linear_seconds(layer_times(dense, dense.layers[0], plan_of(1), operators));
  const PassTimes split = layer_times(dense, dense.layers[0], plan_of(8), operators);
  REQUIRE(linear_seconds(split) == Approx(whole / 8.0).epsilon(0.01));
  ParallelPlan context = plan_of(1);
  context.context = 4;
  REQUIRE(linear_seconds(layer_times(dense, dense.layers[0], context, operators)) ==
          Approx(whole / 4.0));

  const double experts =
      linear_seconds(layer_times(mixture, mixture.layers[0], plan_of(1), operators));
  ParallelPlan expert = plan_of(1);
  expert.data = 8;
  expert.expert = 4;
  REQUIRE(linear_seconds(layer_times(mixture, mixture.layers[0], expert, operators)) ==
          Approx(experts).epsilon(0.01));
  ParallelPlan both = plan_of(8);
  both.expert_tensor = 8;
  REQUIRE(linear_seconds(layer_times(mixture, mixture.layers[0], both, operators)) ==
          Approx(experts / 8.0).epsilon(0.01));
}

TEST_CASE("a layer takes no less time the fuller its experts, and no jump with one token more",
          "[layer][property]") {
  struct Case {
    std::string model;
    std::string gpu;
    Precision precision;
  };
  for (const auto& [name, gpu, precision] : {Case{"mixtral-8x7b", "H100-SXM", Precision::Bf16},
                                             Case{"mixtral-8x7b", "H100-SXM", Precision::Fp8},
                                             Case{"deepseek-v3", "H100-SXM", Precision::Fp8}}) {
    INFO(name << " " << to_string(precision));
    const Model model = shipped_model(name);
    const ParallelPlan plan{.data = 8, .expert = 8, .sequence = 8192};
    const OperatorTimes operators(shipped_compute(gpu, "megatron-core", precision));
    const auto time = [&](double load) {
      const PassTimes times = layer_times(model, model.layers.back(), plan, operators, load);
      return std::array{times.forward.total(), times.input_gradient.total(),
                        times.weight_gradient.total()};
    };
    const auto even = time(1.0);
    auto last = even;
    for (int step = 0; step <= 7 * 128; ++step) {
      const double load = 1.0 + step / 128.0 + (step % 3) / 1000.0;
      CAPTURE(load);
      const auto found = time(load);
      for (std::size_t pass = 0; pass < found.size(); ++pass) {
        REQUIRE(found[pass] >= last[pass]);
        // A wave of tiles, of an eighth of all experts, is the most that comes at once.
        REQUIRE(found[pass] / even[pass] <= load + 0.15);
      }
      last = found;
    }
  }
}

TEST_CASE("a layer of 22 billion parameters takes what was measured", "[layer]") {
  // Korthikanti et al., arXiv 2205.05198, table 4: 7.2 ms forward and 11.8 ms backward with
  // sequence parallelism on 8 A100, traffic of tensor ranks included, which is about 1 ms each way.
  Model model = shipped_model("megatron-18b");
  model.layers[0].attention.grouped =
      GroupedAttention{.heads = 64, .kv_heads = 64, .head_size = 96};
  const ParallelPlan plan{
      .tensor = 8, .has_sequence_parallelism = true, .micro_batch = 4, .sequence = 2048};
  const OperatorTimes operators(
      shipped_compute("A100-SXM-80GB", "megatron-unfused", Precision::Fp16));
  const PassTimes times = layer_times(model, model.layers[0], plan, operators);
  REQUIRE(model.hidden == 6144);
  const double backward =
      times.input_gradient.total().seconds() + times.weight_gradient.total().seconds();
  REQUIRE(times.forward.total().seconds() == Approx(6.2e-3).epsilon(0.15));
  REQUIRE(backward == Approx(10.8e-3).epsilon(0.15));
}

TEST_CASE("the head has three products, and a padded share of the vocabulary", "[layer]") {
  Model model = shipped_model("llama-3-8b");
  model.vocabulary = 1000;
  const OperatorTimes operators(ideal_rates());
  const PassTimes whole = head_times(model, plan_of(1), operators);
  const double product = 2.0 * 4096.0 * 4096.0 * 1024.0 / 1e12;
  REQUIRE(whole.forward[StepPart::Head].seconds() == Approx(product));
  REQUIRE(whole.input_gradient[StepPart::Head].seconds() == Approx(product));
  REQUIRE(whole.weight_gradient[StepPart::Head].seconds() == Approx(product));
  const PassTimes split = head_times(model, plan_of(8), operators);
  REQUIRE(split.forward[StepPart::Head].seconds() == Approx(product / 8.0));
  REQUIRE(embedding_times(model, plan_of(1), operators).forward.total() > SimTime());
}

TEST_CASE("FP8 layers pay for their casts", "[layer]") {
  const Model model = shipped_model("llama-3-8b");
  const ParallelPlan plan = plan_of(1);
  const auto total = [&](Precision precision) {
    const OperatorTimes operators(shipped_compute("H100-SXM", "nemo", precision));
    return layer_times(model, model.layers[0], plan, operators);
  };
  const PassTimes half = total(Precision::Bf16);
  const PassTimes quarter = total(Precision::Fp8);
  REQUIRE(half.forward[StepPart::Casts] == SimTime());
  REQUIRE(quarter.forward[StepPart::Casts] > SimTime());
  REQUIRE(quarter.forward[StepPart::Linear] < half.forward[StepPart::Linear]);
  REQUIRE(quarter.forward[StepPart::Attention] == half.forward[StepPart::Attention]);
}

TEST_CASE("each weight pays for the sum of its gradients, and with ZeRO 3 for its places",
          "[layer]") {
  const Model model = shipped_model("llama-3-8b");
  ComputeRates without = ideal_rates();
  without.memory_rate = 1e9;
  ComputeRates with = without;
  with.accumulate_bytes = 6.0;
  with.scatter_bytes = 4.0;
  with.gather_bytes = 3.0;
  // Bytes that `with` moves more of, for each weight of the layer and the head.
  const auto more = [&](const ParallelPlan& plan, auto times_of, double weights) {
    const PassTimes plain = times_of(plan, OperatorTimes(without));
    const PassTimes moved = times_of(plan, OperatorTimes(with));
    const auto bytes = [&](const StepParts& to, const StepParts& from) {
      return (to.total() - from.total()).seconds() * 1e9 / weights;
    };
    return std::array{bytes(moved.forward, plain.forward),
                      bytes(moved.input_gradient, plain.input_gradient),
                      bytes(moved.weight_gradient, plain.weight_gradient)};
  };
  const auto layer = [&](const ParallelPlan& plan, const OperatorTimes& operators) {
    return layer_times(model, model.layers[0], plan, operators);
  };
  const auto head = [&](const ParallelPlan& plan, const OperatorTimes& operators) {
    return head_times(model, plan, operators);
  };
  const auto embedding = [&](const ParallelPlan& plan, const OperatorTimes& operators) {
    return embedding_times(model, plan, operators);
  };
  const auto is_near = [](const std::array<double, 3>& found, double forward, double input,
                          double weight) {
    return found[0] == Approx(forward).margin(1e-6) && found[1] == Approx(input).margin(1e-6) &&
           found[2] == Approx(weight).margin(1e-6);
  };
  // 218 M weights in a layer: norms have none that a product makes.
  const double of_layer = 4096.0 * (4096.0 + 2.0 * 1024.0 + 4096.0 + 3.0 * 14336.0);
  const double of_end = 128256.0 * 4096.0;
  for (const int tensor : {1, 8}) {
    ParallelPlan plan = plan_of(tensor);
    REQUIRE(is_near(more(plan, layer, of_layer / tensor), 0.0, 0.0, 6.0));
    plan.zero_stage = 3;
    // One rank has all there is, and nothing to lay out or to gather.
    REQUIRE(is_near(more(plan, layer, of_layer / tensor), 0.0, 0.0, 6.0));
    plan.data = 2;
    REQUIRE(is_near(more(plan, layer, of_layer / tensor), 3.0, 3.0, 4.0));
    // Gathered once for the pass that is run again and the one backward.
    plan.recompute = Recompute::Full;
    REQUIRE(is_near(more(plan, layer, of_layer / tensor), 3.0, 0.0, 4.0));
  }
  const ParallelPlan plan = plan_of(1);
  REQUIRE(is_near(more(plan, head, of_end), 0.0, 0.0, 6.0));
  REQUIRE(is_near(more(plan, embedding, of_end), 0.0, 0.0, 6.0));
}

TEST_CASE("a kernel for each operator passes the bytes of RMS norms and rotary positions again",
          "[layer]") {
  ComputeRates rates = unit_rates();
  const auto bytes = [&](const Model& model, bool fuses, int tensor) {
    rates.fuses_operators = fuses;
    const PassTimes times =
        layer_times(model, model.layers[0], plan_of(tensor), OperatorTimes(rates));
    return times.forward[StepPart::MemoryBound].seconds() * rates.memory_rate;
  };
  const Model llama = shipped_model("llama-3-70b");
  for (const int tensor : {1, 8}) {
    // Of a token: two norms of 8192 elements, 64 heads and 8 groups of 128, and 28672 of the gate.
    const double more = 64.0 * 8192 + 20.0 * (64 + 8) * 128 + 4.0 * 28672;
    REQUIRE(bytes(llama, false, tensor) - bytes(llama, true, tensor) ==
            Approx(4096.0 * more / tensor));
  }
  const Model gpt = shipped_model("gpt-3-175b");
  REQUIRE(bytes(gpt, false, 1) == bytes(gpt, true, 1));
}

TEST_CASE("a stream of 32 bits beside layers of 16 passes more bytes, with casts of what is read",
          "[layer]") {
  ComputeRates rates = unit_rates();
  rates.fuses_operators = false;
  const auto bytes = [&](const Model& model, bool is_wide, StepParts PassTimes::*pass) {
    rates.has_norm_kernel = true;
    rates.stream_bytes = is_wide ? 4 : 2;
    const PassTimes times = layer_times(model, model.layers[0], plan_of(1), OperatorTimes(rates));
    return (times.*pass)[StepPart::MemoryBound].seconds() * rates.memory_rate;
  };
  Model llama = shipped_model("llama-3-70b");
  // A norm reads and writes 4 bytes more for each element, and so does the sum behind it; queries,
  // keys, values, gate and up have casts of 6. Each has its gradient.
  const double elements = 4096.0 * 8192.0;
  const double more = elements * (2.0 * (4.0 + 4.0) + 5.0 * 6.0);
  const auto added = [&](const Model& model, StepParts PassTimes::*pass) {
    return bytes(model, true, pass) - bytes(model, false, pass);
  };
  REQUIRE(added(llama, &PassTimes::forward) == Approx(more));
  REQUIRE(added(llama, &PassTimes::input_gradient) == Approx(2.0 * more));
  // A norm of one kernel reads and writes 2 bytes, as fused ones do.
  rates.fuses_operators = true;
  const double fused = bytes(llama, false, &PassTimes::forward);
  REQUIRE(added(llama, &PassTimes::forward) == Approx(elements * 2.0 * 4.0));
  rates.fuses_operators = false;
  REQUIRE(bytes(llama, false, &PassTimes::forward) - fused ==
          Approx(4096.0 * (20.0 * (64 + 8) * 128 + 4.0 * 28672)));
  // Frozen weights have 16 bits.
  llama.adapters = Adapters{.rank = 16};
  REQUIRE(added(llama, &PassTimes::forward) == 0.0);
}

TEST_CASE("a ring adds up the outputs of its steps", "[layer]") {
  ComputeRates rates = unit_rates();
  const Model model = shipped_model("llama-3-70b");
  const auto bytes_of_token = [&](int context, ContextParallelism kind) {
    ParallelPlan plan = plan_of(2);
    plan.context = context;
    plan.context_kind = kind;
    const PassTimes times = layer_times(model, model.layers[0], plan, OperatorTimes(rates));
    return times.forward[StepPart::MemoryBound].seconds() * rates.memory_rate /
           static_cast<double>(plan.tokens());
  };
  const double alone = bytes_of_token(1, ContextParallelism::Ring);
  // 64 heads of 128 over two tensor ranks.
  REQUIRE(bytes_of_token(2, ContextParallelism::Ring) - alone == Approx(9.5 * 64 * 128 / 2));
  REQUIRE(bytes_of_token(4, ContextParallelism::Ring) - alone == Approx(20.5 * 64 * 128 / 2));
  REQUIRE(bytes_of_token(4, ContextParallelism::AllToAll) == Approx(alone));
  // In FP32, and with halves joined, where keys are gathered.
  rates.gathers_keys = true;
  REQUIRE(bytes_of_token(1, ContextParallelism::Ring) == Approx(alone));
  REQUIRE(bytes_of_token(4, ContextParallelism::Ring) - alone == Approx(48.5 * 64 * 128 / 2));
}

TEST_CASE("what is recomputed by choice: attention, or half of the products and all the rest",
          "[layer]") {
  PassTimes times;
  times.forward[StepPart::Linear] = SimTime(1000);
  times.forward[StepPart::Casts] = SimTime(100);
  times.forward[StepPart::Attention] = SimTime(10);
  times.forward[StepPart::MemoryBound] = SimTime(1);
  REQUIRE(recomputed_selectively(times, false) == SimTime(10));
  REQUIRE(recomputed_selectively(times, true) == SimTime(551));
  times.forward[StepPart::MemoryBound] = SimTime(8);
  times.kept = SimTime(7);
  REQUIRE(recomputed_selectively(times, true) == SimTime(551));
}

TEST_CASE("frozen matrices have no gradient of weights, and their adapters have", "[layer]") {
  Model model = shipped_model("llama-2-7b");
  const ComputeRates rates = ideal_rates();
  const OperatorTimes operators(rates);
  const auto times = [&] {
    return layer_times(model, model.layers.front(), plan_of(1), operators);
  };
  const PassTimes full = times();
  model.adapters = Adapters{.rank = 64};
  const PassTimes frozen = times();
  // An adapter of rank 64 beside 4096 x 4096 has a 32nd of its operations.
  REQUIRE(frozen.forward[StepPart::Linear] > full.forward[StepPart::Linear]);
  REQUIRE(frozen.forward[StepPart::Linear].seconds() <
          1.1 * full.forward[StepPart::Linear].seconds());
  REQUIRE(frozen.weight_gradient[StepPart::Linear].seconds() <
          0.1 * full.weight_gradient[StepPart::Linear].seconds());
  REQUIRE(head_times(model, plan_of(1), operators).weight_gradient.total() == SimTime());
  REQUIRE(embedding_times(model, plan_of(1), operators).weight_gradient.total() == SimTime());
}

TEST_CASE("matrices of 4 bits are brought to 16 for each product", "[layer]") {
  Model model = shipped_model("llama-2-7b");
  ComputeRates rates = ideal_rates();
  rates.memory_rate = 1e9;
  const OperatorTimes operators(rates);
  model.adapters = Adapters{.rank = 64, .is_quantised = true};
  const PassTimes times = layer_times(model, model.layers.front(), plan_of(1), operators);
  const double weights = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11'008;
  const double seconds = weights * (2.0 + 4.127 / 8.0) / 1e9;
  REQUIRE(times.forward[StepPart::Casts].seconds() == Approx(seconds).epsilon(1e-4));
  REQUIRE(times.input_gradient[StepPart::Casts].seconds() == Approx(seconds).epsilon(1e-4));
}

}  // namespace trainyard
