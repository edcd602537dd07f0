// SPDX-License-Identifier: Apache-2.0
#include "cli/search/search_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>

#include "cli/common/log.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr int kMostRanks = 50'000;
constexpr int kMostGpus = 1'000'000;
constexpr int kMostBest = 1'000;
constexpr std::array<std::string_view, 3> kRecomputeNames{"none", "selective", "full"};
constexpr std::array<std::string_view, 12> kAxisNames{"tp",          "sp",        "cp",   "pp",
                                                      "schedule",    "vpp",       "ep",   "etp",
                                                      "micro-batch", "recompute", "zero", "order"};

std::optional<int> number_of(std::string_view text) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number =
      !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_number ? std::optional(value) : std::nullopt;
}

template <typename Value>
void add_value(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    values.push_back(value);
  }
}

std::optional<std::vector<int>> numbers(const OptionReader& reader, std::string_view name,
                                        int least, int most) {
  const std::optional<std::string> text = reader.text(name);
  return text ? std::optional(parse_numbers(name, *text, least, most)) : std::nullopt;
}

// Each word of a list as the index of its name.
std::optional<std::vector<std::size_t>> words(const OptionReader& reader, std::string_view name,
                                              std::span<const std::string_view> names) {
  const std::optional<std::string> text = reader.text(name);
  if (!text) {
    return std::nullopt;
  }
  const std::vector<std::string> candidates(names.begin(), names.end());
  std::vector<std::size_t> found;
  for (const std::string& word : split_list(*text)) {
    const auto at = std::find(names.begin(), names.end(), word);
    if (at == names.end()) {
      fail_option(name, fmt::format("a list of {}", alternatives(candidates)), word, candidates);
    }
    add_value(found, static_cast<std::size_t>(at - names.begin()));
  }
  return found;
}

std::optional<std::vector<PlanOrder>> read_orders(const OptionReader& reader) {
  const std::optional<std::string> text = reader.text("order");
  if (!text) {
    return std::nullopt;
  }
  std::vector<PlanOrder> orders;
  for (const std::string& letters : split_list(*text)) {
    const std::optional<PlanOrder> order = order_of(letters);
    if (!order) {
      fail_option("order", "a list of t, c, d and p in some order, such as tcdp", letters);
    }
    add_value(orders, *order);
  }
  return orders;
}

AxisChoices read_axes(const OptionReader& reader) {
  AxisChoices axes{.tensor = numbers(reader, "tp", 1, kMostRanks),
                   .context = numbers(reader, "cp", 1, kMostRanks),
                   .pipeline = numbers(reader, "pp", 1, kMostRanks),
                   .chunks = numbers(reader, "vpp", 1, kMostRanks),
                   .expert = numbers(reader, "ep", 1, kMostRanks),
                   .expert_tensor = numbers(reader, "etp", 1, kMostRanks),
                   .micro_batch = numbers(reader, "micro-batch", 1, kMostRanks),
                   .zero_stage = numbers(reader, "zero", 0, 3),
                   .orders = read_orders(reader)};
  constexpr std::array<std::string_view, 2> kOffOn{"off", "on"};
  if (const auto found = words(reader, "sp", kOffOn)) {
    axes.sequence_parallel.emplace(found->begin(), found->end());
  }
  if (const auto found = words(reader, "schedule", pipeline_schedule_names())) {
    axes.schedules.emplace();
    for (const std::size_t index : *found) {
      axes.schedules->push_back(pipeline_schedules()[index]);
    }
  }
  if (const auto found = words(reader, "recompute", kRecomputeNames)) {
    axes.recompute.emplace();
    for (const std::size_t index : *found) {
      axes.recompute->push_back(static_cast<Recompute>(index));
    }
  }
  if (const auto found = words(reader, "keep", kAxisNames)) {
    for (const std::size_t index : *found) {
      const std::string name(kAxisNames.at(index));
      if (reader.given(name)) {
        throw ConfigError(
            fmt::format("--keep: expected axes without values of their own, found {}", name));
      }
      axes.kept.push_back(name);
    }
  }
  return axes;
}

double read_memory_share(const OptionReader& reader) {
  const std::optional<int> percent = reader.integer("memory-percent", 1, 100);
  constexpr double kPercent = 100.0;
  return percent.value_or(100) / kPercent;
}

// The first look has closed forms with the fastest times of the runtime.
bool has_second_look(const SearchRequest& request) {
  const Runtime& runtime = request.runtime;
  return request.method == StepMethod::Graph ||
         (runtime.nccl ? runtime.engine.has_value() : runtime.engine != Fidelity::Analytical);
}

}  // namespace

Options search_options() {
  return joined(
      {cluster_options(),
       Options{
           {"workload", "NAME|FILE",
            "model, batch, software and precision: a file, or a name in configs/workloads", kInput},
           {"gpus",
            "LIST",
            "numbers of GPUs to search on, whole servers (default: the cluster's)",
            {.excludes = "nodes"}},
           {"tp", "LIST", "tensor ranks, such as 1,2,4 or 1..8", {.synonyms = "tensor"}},
           {"sp", "LIST", "sequence parallelism: off, on", {.synonyms = "sequence-parallel"}},
           {"cp", "LIST", "context ranks", {.synonyms = "context"}},
           {"pp", "LIST", "pipeline ranks", {.synonyms = "pipeline"}},
           {"schedule", "LIST", "of the pipeline: 1f1b, interleaved, gpipe, zb-h1, ..."},
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
  (void)reader.required_text("workload");
  SearchRequest request{
      .inputs = read_input_names(reader),
      .runtime = read_runtime(reader),
      .gpus = numbers(reader, "gpus", 1, kMostGpus).value_or(std::vector<int>()),
      .axes = read_axes(reader),
      .best = static_cast<std::size_t>(reader.integer("best", 1, kMostBest).value_or(10)),
      .wants_front = reader.given("trades"),
      .prunes = !reader.given("exhaustive"),
      .memory_share = read_memory_share(reader),
      .threads = read_threads(reader),
      .format = output_format(reader),
      .output = output_file(reader, "output"),
      .best_file = output_file(reader, "best-plan"),
      .costs = read_cost_options(reader)};
  check_distinct_files({{"output", request.output}, {"best-plan", request.best_file}});
  request.method = reader.word("method") == "graph" ? StepMethod::Graph : StepMethod::ClosedForms;
  request.refines = has_second_look(request);
  return request;
}

PlanAxes chosen_axes(const AxisChoices& choices, const Workload& workload, int gpus,
                     int domain_gpus) {
  PlanAxes axes = default_axes(workload, gpus, domain_gpus);
  const PlanAxes own = axes_of(workload);
  const auto choose = [&](std::string_view name, const auto& choice, const auto& of_workload,
                          auto& axis) {
    if (choice) {
      axis.assign(choice->begin(), choice->end());
    } else if (std::find(choices.kept.begin(), choices.kept.end(), name) != choices.kept.end()) {
      axis = of_workload;
    }
  };
  choose("tp", choices.tensor, own.tensor, axes.tensor);
  choose("sp", choices.sequence_parallel, own.sequence_parallel, axes.sequence_parallel);
  choose("cp", choices.context, own.context, axes.context);
  choose("pp", choices.pipeline, own.pipeline, axes.pipeline);
  choose("schedule", choices.schedules, own.schedules, axes.schedules);
  choose("vpp", choices.chunks, own.chunks, axes.chunks);
  choose("ep", choices.expert, own.expert, axes.expert);
  choose("etp", choices.expert_tensor, own.expert_tensor, axes.expert_tensor);
  choose("micro-batch", choices.micro_batch, own.micro_batch, axes.micro_batch);
  choose("recompute", choices.recompute, own.recompute, axes.recompute);
  choose("zero", choices.zero_stage, own.zero_stage, axes.zero_stage);
  choose("order", choices.orders, own.orders, axes.orders);
  return axes;
}

std::vector<int> parse_numbers(std::string_view name, const std::string& text, int least,
                               int most) {
  constexpr std::string_view kRange = "..";
  std::vector<int> values;
  for (const std::string& part : split_list(text)) {
    const std::size_t dots = part.find(kRange);
    const auto first = number_of(std::string_view(part).substr(0, dots));
    const auto last = dots == std::string::npos
                          ? first
                          : number_of(std::string_view(part).substr(dots + kRange.size()));
    if (!first || !last || *first < least || *last > most || *last < *first) {
      fail_option(name, fmt::format("numbers from {} to {}, such as 1,2,4 or 1..8", least, most),
                  part);
    }
    for (int value = *first; value <= *last; ++value) {
      add_value(values, value);
    }
  }
  return values;
}

}  // namespace trainyard
