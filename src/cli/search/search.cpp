// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/log.h"
#include "cli/search/search_request.h"
#include "cli/step/step_request.h"
#include "nccl/search/search_memory.h"
#include "nccl/timing/profile.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/operators/model_flops.h"
#include "parallelism/run/gpu_kinds.h"
#include "parallelism/run/step_cost.h"
#include "parallelism/traffic/cluster_times.h"
#include "parallelism/traffic/shared_times.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload_text.h"
#include "report/formats/output.h"
#include "report/steps/cost_report.h"
#include "report/steps/search_report.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample = R"(
All plans of the axes are looked at: those that cannot be had or do not fit the memory are counted,
the others timed in the order of a bound that they cannot undercut, until the next bound is above
the time of the last plan that is wanted (docs/commands/search.md). Axes without values of their own
have those of the documentation.

Examples:
  trainyard search --cluster dgx-h100 --nodes 8 --workload llama-3-8b
  trainyard search --cluster superpod-a100 --workload gpt-3-175b --gpus 512,1024 \
      --tp 1..8 --pp 8,16
  trainyard search --cluster dgx-h100 --nodes 8 --workload mixtral-8x7b --keep sp,recompute \
      --method graph --best-plan best.yaml
)";

// The cluster with so many GPUs, of servers like those of `inputs`.
Cluster cluster_of(const SearchRequest& request, const Inputs& inputs, int gpus) {
  ClusterOverrides overrides = request.inputs.overrides;
  const int of_server = inputs.machine.cluster.gpus_per_node;
  if (gpus >= of_server && gpus % of_server != 0) {
    throw ConfigError(fmt::format("--gpus: expected multiples of the {} GPUs of a server, found {}",
                                  of_server, gpus));
  }
  overrides.nodes = std::max(1, gpus / of_server);
  if (gpus < of_server) {
    overrides.gpus_per_node = gpus;
  }
  return load_cluster(find_config("clusters", request.inputs.cluster), load_default_catalogue(),
                      overrides);
}

int largest_domain(std::span<const int> domain_of_rank) {
  std::map<int, int> members;
  int max = 0;
  for (const int domain : domain_of_rank) {
    max = std::max(max, ++members[domain]);
  }
  return max;
}

class SizeSearch {
 public:
  SizeSearch(const SearchRequest& request, const Inputs& inputs, const Cluster& cluster,
             nccl::SearchMemory& searches)
      : request_(request),
        inputs_(inputs),
        cluster_(cluster),
        searches_(searches),
        costs_(request.costs ? std::optional(load_costs(*request.costs, cluster)) : std::nullopt),
        kinds_(gpu_kinds(cluster)),
        rates_(
            kinds_.rates(inputs.machine.rates, inputs.machine.software, inputs.workload.precision)),
        places_(cluster, std::nullopt, Fidelity::Analytical),
        times_([this] { return make_times(); }),
        task_{.model = inputs.workload.model,
              .rates = rates_.front(),
              .software = inputs.machine.software,
              .overlap = overlap_of(inputs.workload.overlap, inputs.machine.software),
              .server_of_rank = places_.servers(),
              .domain_of_rank = places_.domains(),
              .loads = inputs.workload.routing,
              .host = host_rates_for(inputs.workload.plan, cluster),
              .kinds = rates_,
              .kind_of_rank = kinds_.of_rank,
              .memory = Bytes(static_cast<std::int64_t>(
                  request.memory_share * static_cast<double>(memory_size().count()))),
              .hosts = &cluster} {}

  [[nodiscard]] SearchOfSize run() {
    const auto gpus = static_cast<int>(cluster_.gpus.size());
    const PlanAxes axes =
        chosen_axes(request_.axes, inputs_.workload, gpus, largest_domain(places_.domains()));
    const std::vector<ParallelPlan> plans =
        plans_of(axes, batched_plan(inputs_.workload, gpus), gpus);
    if (plans.empty()) {
      throw ConfigError(fmt::format(
          "search: expected tensor x context x pipeline ranks that divide {} GPUs, found none",
          gpus));
    }
    const SearchOptions options{.best = request_.best,
                                .wants_front = request_.wants_front,
                                .prunes = request_.prunes,
                                .power = power(),
                                .team = request_.team};
    const PlanSearch found =
        search_plans(task_, plans, times_, options, task_runner(request_.threads, "search"));
    SearchOfSize result{
        .gpus = gpus, .counts = found.counts, .plans = chosen(found), .costs = costs_};
    result.given = given_plan(gpus, plans);
    refine(result);
    return result;
  }

  [[nodiscard]] double peak() const { return kinds_.mean_peak(rates_); }
  [[nodiscard]] Bytes memory_size() const {
    return device_capacity(kinds_.smallest().memory.value);
  }

 private:
  [[nodiscard]] StepPower power() const {
    return costs_ ? step_power(costs_->totals) : StepPower();
  }

  // Returns the times for the first look: those of the runtime that cost least.
  [[nodiscard]] std::unique_ptr<GroupTimes> make_times() const {
    std::optional<ClusterTimes::Nccl> runtime;
    const std::optional<nccl::Version> version = request_.runtime.nccl;
    if (version) {
      runtime.emplace(ClusterTimes::Nccl{
          .profile = inputs_.machine.nccl, .version = *version, .searches = &searches_});
    }
    auto times = std::make_unique<ClusterTimes>(cluster_, runtime,
                                                version ? Fidelity::Flow : Fidelity::Analytical);
    times->use_hccl(request_.runtime.hccl ? &*request_.runtime.hccl : nullptr);
    return times;
  }

  [[nodiscard]] std::vector<FoundPlan> chosen(const PlanSearch& found) const {
    const std::vector<std::size_t> trades =
        request_.wants_front ? best_trades(found.timed) : std::vector<std::size_t>();
    std::vector<FoundPlan> plans;
    for (std::size_t index = 0; index < found.timed.size(); ++index) {
      const bool is_best = index < request_.best;
      const bool is_trade = std::find(trades.begin(), trades.end(), index) != trades.end();
      if (is_best || is_trade) {
        plans.push_back({.timed = found.timed[index], .is_best = is_best, .is_trade = is_trade});
      }
    }
    return plans;
  }

  // The workload's own plan, if it is one for these GPUs.
  [[nodiscard]] std::optional<FoundPlan> given_plan(int gpus,
                                                    const std::vector<ParallelPlan>& plans) {
    try {
      const ParallelPlan plan = plan_for(inputs_.workload, gpus);
      const std::vector<ParallelPlan> one{plan};
      SearchTask task = task_;
      task.memory = Bytes(std::numeric_limits<std::int64_t>::max());
      task.hosts = nullptr;
      const PlanSearch found =
          search_plans(task, one, times_, {.best = 1, .power = power()}, task_runner(1, ""));
      if (found.timed.empty()) {
        return std::nullopt;
      }
      FoundPlan given{.timed = found.timed.front()};
      given.timed.index = plans.size();
      return given;
    } catch (const ConfigError&) {
      return std::nullopt;  // Its numbers do not fit these GPUs: there is nothing to compare with.
    }
  }

  void refine(SearchOfSize& size) const {
    if (!request_.refines) {
      return;
    }
    std::vector<FoundPlan*> plans;
    for (FoundPlan& plan : size.plans) {
      plans.push_back(&plan);
    }
    if (size.given) {
      plans.push_back(&*size.given);
    }
    StepTables tables{
        .rates = inputs_.machine.rates, .method = request_.method, .searches = &searches_};
    request_.runtime.apply(inputs_.machine.nccl, tables);
    const auto refine_one = [&](std::size_t index) {
      Workload workload = inputs_.workload;
      workload.plan = plans[index]->timed.plan;
      workload.data_fills_cluster = false;
      workload.batch_fills_cluster = false;
      plans[index]->refined =
          run_workload(cluster_, workload, inputs_.machine.software, tables).step;
    };
    run_shared(
        request_.team, plans.size(), task_runner(request_.threads, "refine"), refine_one,
        [&](std::size_t index, Parcel& parcel) { parcel.put(*plans[index]->refined); },
        [&](std::size_t index, Parcel& parcel) { plans[index]->refined = parcel.get<StepTime>(); });
    std::stable_sort(
        size.plans.begin(), size.plans.end(),
        [](const FoundPlan& a, const FoundPlan& b) { return a.step().time < b.step().time; });
  }

  const SearchRequest& request_;
  const Inputs& inputs_;
  const Cluster& cluster_;
  nccl::SearchMemory& searches_;  // For all threads.
  std::optional<ClusterCosts> costs_;
  GpuKinds kinds_;
  std::vector<ComputeRates> rates_;  // One for each kind.
  ClusterTimes places_;              // Asked for the servers of ranks alone.
  SharedTimes times_;
  SearchTask task_;
};

std::string refined_method(const SearchRequest& request) {
  if (!request.refines) {
    return "";
  }
  return fmt::format("{}{}",
                     request.method == StepMethod::Graph ? "graph of operations" : "closed forms",
                     request.runtime.engine ? ", fidelity " + request.runtime.engine_name() : "");
}

// A trade is none if a plan on fewer GPUs is no worse in anything: it is left out, unless it is one
// of the fastest.
void drop_beaten_by_smaller(std::vector<SearchOfSize>& sizes) {
  const auto is_beaten = [&](const SearchOfSize& size, const FoundPlan& plan) {
    return std::any_of(sizes.begin(), sizes.end(), [&](const SearchOfSize& smaller) {
      return smaller.gpus < size.gpus &&
             std::any_of(smaller.plans.begin(), smaller.plans.end(), [&](const FoundPlan& other) {
               return is_no_worse(other.timed, plan.timed);
             });
    });
  };
  // From the largest, so that what beats others is still there.
  std::vector<SearchOfSize*> order;
  for (SearchOfSize& size : sizes) {
    order.push_back(&size);
  }
  std::sort(order.begin(), order.end(),
            [](const SearchOfSize* a, const SearchOfSize* b) { return a->gpus > b->gpus; });
  for (SearchOfSize* const size : order) {
    for (FoundPlan& plan : size->plans) {
      plan.is_trade = plan.is_trade && !is_beaten(*size, plan);
    }
    std::erase_if(size->plans,
                  [](const FoundPlan& plan) { return !plan.is_best && !plan.is_trade; });
  }
}

// Names the rule that most invalid plans break, for a search that has found none.
std::string commonest_rule(const SearchOfSize& size) {
  const auto& invalid = size.counts.invalid;
  const auto max =
      std::max_element(invalid.begin(), invalid.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return max == invalid.end()
             ? ""
             : fmt::format("; {} plans break the rule \"{}\"", max->second, max->first);
}

std::vector<std::string> notes_of(const SearchRequest& request, const SearchReport& report) {
  std::vector<std::string> notes = request.runtime.notes;
  const bool has_plans = std::any_of(report.sizes.begin(), report.sizes.end(),
                                     [](const SearchOfSize& size) { return !size.plans.empty(); });
  for (const SearchOfSize& size : report.sizes) {
    if (size.plans.empty()) {
      notes.push_back(fmt::format("no plan fits {} GPUs{}", size.gpus, commonest_rule(size)));
    }
  }
  if (request.prunes && has_plans) {
    notes.push_back(fmt::format(
        "no plan that was not timed is faster than the {} best: its bound, or its time with groups "
        "alone, is above them",
        request.best));
  }
  if (request.refines && has_plans) {
    notes.push_back(fmt::format(
        "the plans of the table, the best by {}, were timed again by {}; \"first\" is their time "
        "before that, by which all others are slower",
        report.method, report.refined_method));
  }
  if (request.wants_front && has_plans) {
    notes.push_back(fmt::format(
        "*: no other plan is at most as long with at most as much memory and network{}{}",
        request.costs ? ", with as little energy" : "",
        report.sizes.size() > 1 ? ", on as few GPUs" : ""));
  }
  if (request.costs && !report.sizes.empty()) {
    for (std::string& note : cost_notes(*report.sizes.front().costs)) {
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

SearchReport search(const SearchRequest& request, spdlog::logger& log) {
  InputNames names = request.inputs;
  if (!request.gpus.empty()) {
    names.overrides.nodes = 1;
  }
  const Inputs inputs = load_inputs(names, log);
  if (inputs.workload.plan.servers) {
    throw ConfigError(
        "search: expected gradients summed by collectives, found plan.servers, which have no "
        "closed form");
  }
  SearchReport report{
      .workload = inputs.workload.name,
      .model = inputs.workload.model.title,
      .software = inputs.machine.software.name,
      .precision = std::string(to_string(inputs.workload.precision)),
      .runtime = std::string(request.runtime.name()),
      .method = request.runtime.nccl ? "closed forms" : "closed forms, fidelity analytical",
      .refined_method = refined_method(request),
      .flops_of_token = training_flops(inputs.workload.model, inputs.workload.plan.sequence,
                                       FlopsConvention::Model)};
  nccl::SearchMemory searches;
  const auto search_on = [&](const Cluster& cluster) {
    SizeSearch one(request, inputs, cluster, searches);
    report.sizes.push_back(one.run());
    report.cluster = cluster.name;
    report.peak = one.peak();
    report.memory_size = one.memory_size();
  };
  for (const int gpus : request.gpus) {
    search_on(cluster_of(request, inputs, gpus));
  }
  if (request.gpus.empty()) {
    search_on(inputs.machine.cluster);
  }
  if (request.wants_front) {
    drop_beaten_by_smaller(report.sizes);
  }
  report.notes = notes_of(request, report);
  add_job_note(request.inputs, report.notes);
  const GpuKinds kinds = gpu_kinds(inputs.machine.cluster);
  if (kinds.models.size() > 1) {
    report.notes.push_back(fmt::format(
        "GPUs of {} kinds: passes take as long as on the slowest GPU of a stage, plans fit the "
        "smallest GPU of all, and the peak is the mean of all (docs/models/step.md)",
        kinds.models.size()));
  }
  for (std::string& note : unmeasured_notes(inputs.machine.rates, inputs.machine.cluster)) {
    report.notes.push_back(std::move(note));
  }
  return report;
}

void write_best(const SearchRequest& request, const SearchReport& report) {
  const FoundPlan* best = nullptr;
  for (const SearchOfSize& size : report.sizes) {
    if (!size.plans.empty() &&
        (best == nullptr || size.plans.front().step().time < best->step().time)) {
      best = &size.plans.front();
    }
  }
  if (best == nullptr) {
    throw ConfigError("--best-plan: expected a plan that fits, found none");
  }
  const std::string text = workload_with_plan(
      find_workload(request.inputs.workload), configs_folder() / "workloads" / "models",
      request.inputs.workload_settings, best->timed.plan,
      fmt::format("trainyard search: the fastest plan of {} on {} GPUs of {}, {:.4f} s",
                  report.workload, best->timed.plan.ranks(), report.cluster,
                  best->step().time.seconds()));
  write_file(*request.best_file, text);
}

int run_search(const OptionReader& reader, std::ostream& out) {
  SearchRequest request = read_search_request(reader);
  request.team = reader.team();
  spdlog::logger log = make_logger(reader);
  const SearchReport report = search(request, log);
  if (request.best_file) {
    write_best(request, report);
  }
  write_result(request.result, with_effects(reader, document_of(report)), out);
  return 0;
}

}  // namespace

Command search_command() {
  return {.name = "search",
          .form = "search",
          .summary = "the fastest plans for a model on a cluster, and why",
          .usage = "search --cluster NAME|FILE --workload|--model NAME|FILE [options]",
          .options = search_options(),
          .example = kExample,
          .run = run_search};
}

}  // namespace trainyard
