// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/step_entries.h"

#include <string>

#include "report/formats/json.h"

namespace trainyard {
namespace {

Json json_of(const Document& document) {
  return Json::parse(render(document, Format::Json));
}

}  // namespace

TEST_CASE("the setup of a step names what is known", "[step-entries]") {
  Document document;
  add_setup({.cluster = "C", .workload = "w", .gpus = 8, .runtime = "plain", .fidelity = "flow"},
            document);
  REQUIRE(document.heading ==
          std::vector<std::string>{
              "Simulated by Trainyard: cluster C, 8 GPUs, runtime plain, fidelity flow"});
  REQUIRE(render(document, Format::Csv) == "cluster,workload,gpus\nC,w,8\n");
  REQUIRE(json_of(document)["fidelity"] == "flow");
  REQUIRE(!json_of(document).contains("model"));
}

TEST_CASE("noise is reported where there is some", "[step-entries]") {
  Document document;
  add_noise({}, document);
  REQUIRE(document.entries.empty());
  StepSetup setup;
  setup.slow_rank = SlowRank{.rank = 3, .ppm = 1'250'000};
  setup.jitter = {.rank_ppm = 10'000, .seed = 7};
  add_noise(setup, document);
  REQUIRE(json_of(document)["slow_rank"] == Json{{"rank", 3}, {"factor", 1.25}});
  REQUIRE(json_of(document)["jitter"] == Json{{"ranks", 0.01}, {"operations", 0.0}, {"seed", 7}});
}

TEST_CASE("rates, operations and memory of a step have their units", "[step-entries]") {
  Document document;
  add_rate("tokens", 4000.0, 4, document);
  const ModelFlops flops{.of_gpu = 1e12, .mfu = 0.1, .peak = 1e13, .convention = "model"};
  add_flops(flops, document);
  MemoryUse memory;
  memory[MemoryClass::Weights] = gib(3);
  add_memory(memory, gib(4), true, "", document);
  add_convention(flops, document);
  add_memory_classes(memory, document);
  REQUIRE(render(document, Format::Table) ==
          "tokens                       4000.0 /s, 1000.0 /s for each GPU\n"
          "model FLOP/s                    1.0 T for each GPU, MFU 10.00 % of 10.0 T "
          "(convention: model)\n"
          "memory peak                    3.00 GiB of 4.00\n");
  REQUIRE(render(document, Format::Csv) ==
          "tokens_per_s,tokens_per_s_per_gpu,model_tflops_per_gpu,mfu,memory_peak_gib,"
          "memory_size_gib,memory_fits,mfu_convention\n"
          "4000,1000,1,0.1,3,4,true,model\n");
  REQUIRE(json_of(document)["mfu_peak_tflops"] == 10.0);
  REQUIRE(json_of(document)["memory_peak_by_class_gib"]["weights"] == 3.0);
}

TEST_CASE("parts have the names of their kind of workload", "[step-entries]") {
  StepParts parts;
  parts[StepPart::Linear] = milliseconds(2);
  const auto named = named_parts(parts, [](StepPart part) {
    return part == StepPart::Linear ? std::string_view("compute") : std::string_view();
  });
  REQUIRE(named.size() == 1);
  REQUIRE(named.front().name == "compute");
  REQUIRE(named.front().time == milliseconds(2));
}

}  // namespace trainyard
