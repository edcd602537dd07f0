// SPDX-License-Identifier: Apache-2.0
#include "cli/search/search_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "cli/common/log.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr int kMaxRanks = 50'000;
constexpr int kMaxGpus = 1'000'000;
constexpr int kMaxBest = 1'000;
constexpr std::array<std::string_view, 12> kAxisNames{"tp",          "sp",        "cp",   "pp",
                                                      "schedule",    "vpp",       "ep",   "etp",
                                                      "micro-batch", "recompute", "zero", "order"};

// No numbers where the option is absent.
std::vector<int> numbers(const OptionReader& reader, std::string_view name, int min, int max) {
  const std::optional<std::string> text = reader.text(name);
  return text ? parse_numbers(name, *text, min, max) : std::vector<int>();
}

// The value of each word of a list, by the index of its name; none where the option is absent.
template <typename ValueOf>
auto words(const OptionReader& reader, std::string_view name,
           std::span<const std::string_view> names, ValueOf value_of) {
  std::vector<decltype(value_of(std::size_t{}))> found;
  const std::optional<std::string> text = reader.text(name);
  if (!text) {
    return found;
  }
  const std::vector<std::string> candidates(names.begin(), names.end());
  for (const std::string& word : split_list(*text)) {
    const auto at = std::find(names.begin(), names.end(), word);
    if (at == names.end()) {
      fail_option(name, fmt::format("a list of {}", alternatives(candidates)), word, candidates);
    }
    add_once(found, value_of(static_cast<std::size_t>(at - names.begin())));
  }
  return found;
}

std::vector<PlanOrder> read_orders(const OptionReader& reader) {
  std::vector<PlanOrder> orders;
  const std::optional<std::string> text = reader.text("order");
  if (!text) {
    return orders;
  }
  for (const std::string& letters : split_list(*text)) {
    const std::optional<PlanOrder> order = order_of(letters);
    if (!order) {
      fail_option("order", "a list of t, c, d and p in some order, such as tcdp", letters);
    }
    add_once(orders, *order);
  }
  return orders;
}

AxisChoices read_axes(const OptionReader& reader) {
  constexpr std::array<std::string_view, 2> kOffOn{"off", "on"};
  const auto ranks = [&](std::string_view name) { return numbers(reader, name, 1, kMaxRanks); };
  const std::vector<int> micro_batches = ranks("micro-batch");
  return {
      .given = {.tensor = ranks("tp"),
                .sequence_parallel =
                    words(reader, "sp", kOffOn, [](std::size_t index) { return index == 1; }),
                .context = ranks("cp"),
                .pipeline = ranks("pp"),
                .schedules = words(reader, "schedule", pipeline_schedule_names(),
                                   [](std::size_t index) { return pipeline_schedules()[index]; }),
                .chunks = ranks("vpp"),
                .expert = ranks("ep"),
                .expert_tensor = ranks("etp"),
                .micro_batch = {micro_batches.begin(), micro_batches.end()},
                .recompute = words(reader, "recompute", kRecomputes,
                                   [](std::size_t index) { return static_cast<Recompute>(index); }),
                .zero_stage = numbers(reader, "zero", 0, 3),
                .orders = read_orders(reader)},
      .kept = words(reader, "keep", kAxisNames, [&](std::size_t index) {
        std::string name(kAxisNames.at(index));
        if (reader.given(name)) {
          throw ConfigError(
              fmt::format("--keep: expected axes without values of their own, found {}", name));
        }
        return name;
      })};
}

}  // namespace

Options search_options() {
  return joined(
      {cluster_options(),
       Options{{"workload",
                "NAME|FILE",
                "model, batch, software and precision: a file, or a name in configs/workloads",
                {.role = Role::Input, .names = "workloads"}},
               model_option(),
               {"gpus",
                "LIST",
                "numbers of GPUs to search on, whole servers (default: the cluster's)",
                {.excludes = "nodes"}},
               {"tp", "LIST", "tensor ranks, such as 1,2,4 or 1..8", {.synonyms = "tensor"}},
               {"sp", "LIST", "sequence parallelism: off, on", {.synonyms = "sequence-parallel"}},
               {"cp", "LIST", "context ranks", {.synonyms = "context"}},
               {"pp", "LIST", "pipeline ranks", {.synonyms = "pipeline"}},
               {"schedule",
                "LIST",
                "of the pipeline: 1f1b, interleaved, gpipe, zb-h1, ...",
                {.names = "schedules"}},
               {"vpp", "LIST", "chunks of a pipeline rank, with interleaved"},
               {"ep", "LIST", "expert ranks", {.synonyms = "expert experts"}},
               {"etp", "LIST", "tensor ranks within an expert"},
               {"micro-batch", "LIST", "sequences"},
               {"recompute", "LIST", "none, selective, full"},
               {"zero", "LIST", "ZeRO stages"},
               {"order", "LIST", "of ranks on the machine, neighbours first: tcdp, tcpd, ..."},
               {"keep", "LIST", "of these axes, those that stay as the workload has them"},
               {"memory-percent", "N", "of the memory of a GPU that a plan may use (default: 100)"},
               {"best", "N", "how many plans are wanted (default: 10)"},
               {"trades", "",
                "also plans that no other one beats in time, GPUs, memory, network and energy "
                "together"},
               {"exhaustive", "", "time every plan that fits, whatever its bound"}},
       runtime_options(),
       Options{{"method",
                "NAME",
                "the best plans again by that method: closed-forms (the default) or graph",
                {.choices = "closed-forms|graph"}},
               {"traffic",
                "NAME",
                "of the best plans again: alone (the default) or shared, as for step",
                {.choices = "alone|shared", .needs = "method=graph"}},
               threads_option(),
               {"best-plan", "FILE", "write the workload with the fastest plan there", kResult}},
       cost_options(), output_options(), log_options()});
}

SearchRequest read_search_request(const OptionReader& reader) {
  (void)reader.required_text("cluster");
  require_job(reader);
  SearchRequest request{
      .inputs = read_input_names(reader),
      .runtime = read_runtime(reader),
      .gpus = numbers(reader, "gpus", 1, kMaxGpus),
      .axes = read_axes(reader),
      .best = static_cast<std::size_t>(reader.integer("best", 1, kMaxBest).value_or(10)),
      .wants_front = reader.given("trades"),
      .prunes = !reader.given("exhaustive"),
      .memory_share = reader.integer("memory-percent", 1, 100).value_or(100) / 100.0,
      .threads = read_threads(reader),
      .result = result_target(reader),
      .best_file = output_file(reader, "best-plan"),
      .costs = read_cost_options(reader)};
  check_distinct_files({{"output", request.result.output},
                        {"report", reader.text("report")},
                        {"best-plan", request.best_file}});
  request.method = reader.word("method") == "graph" ? StepMethod::Graph : StepMethod::ClosedForms;
  // The first look has closed forms with the fastest times of the runtime.
  const Runtime& runtime = request.runtime;
  request.refines =
      request.method == StepMethod::Graph ||
      (runtime.nccl ? runtime.engine.has_value() : runtime.engine != Fidelity::Analytical);
  return request;
}

PlanAxes chosen_axes(const AxisChoices& choices, const Workload& workload, int gpus,
                     int domain_gpus) {
  PlanAxes axes = default_axes(workload, gpus, domain_gpus);
  const PlanAxes own = axes_of(workload);
  const auto choose = [&](std::string_view name, auto PlanAxes::*axis) {
    if (!(choices.given.*axis).empty()) {
      axes.*axis = choices.given.*axis;
    } else if (std::find(choices.kept.begin(), choices.kept.end(), name) != choices.kept.end()) {
      axes.*axis = own.*axis;
    }
  };
  choose("tp", &PlanAxes::tensor);
  choose("sp", &PlanAxes::sequence_parallel);
  choose("cp", &PlanAxes::context);
  choose("pp", &PlanAxes::pipeline);
  choose("schedule", &PlanAxes::schedules);
  choose("vpp", &PlanAxes::chunks);
  choose("ep", &PlanAxes::expert);
  choose("etp", &PlanAxes::expert_tensor);
  choose("micro-batch", &PlanAxes::micro_batch);
  choose("recompute", &PlanAxes::recompute);
  choose("zero", &PlanAxes::zero_stage);
  choose("order", &PlanAxes::orders);
  return axes;
}

std::vector<int> parse_numbers(std::string_view name, const std::string& text, int min, int max) {
  constexpr std::string_view kRange = "..";
  std::vector<int> values;
  for (const std::string& part : split_list(text)) {
    const std::size_t dots = part.find(kRange);
    const auto first = parse_number<int>(std::string_view(part).substr(0, dots));
    const auto last = dots == std::string::npos
                          ? first
                          : parse_number<int>(std::string_view(part).substr(dots + kRange.size()));
    if (!first || !last || *first < min || *last > max || *last < *first) {
      fail_option(name, fmt::format("numbers from {} to {}, such as 1,2,4 or 1..8", min, max),
                  part);
    }
    for (int value = *first; value <= *last; ++value) {
      add_once(values, value);
    }
  }
  return values;
}

}  // namespace trainyard
