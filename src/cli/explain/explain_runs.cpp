// SPDX-License-Identifier: Apache-2.0
#include "cli/explain/explain_runs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/long_run_display.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

bool is_software(const Resource& resource) {
  return resource.kind == ResourceKind::KernelRate ||
         resource.kind == ResourceKind::KernelLatency || resource.kind == ResourceKind::Launch;
}

bool is_latency(const Resource& resource) {
  return resource.kind == ResourceKind::ServerLatency ||
         resource.kind == ResourceKind::NetworkLatency ||
         resource.kind == ResourceKind::KernelLatency || resource.kind == ResourceKind::Launch;
}

void add_improvements(const std::vector<Resource>& resources, ExplainedTime& time) {
  for (std::size_t index = 0; index < resources.size(); ++index) {
    const Resource& resource = resources[index];
    const ResourceEffect& effect = time.effects[index];
    if (effect_kind(effect, time.time, kExplainFactor) == EffectKind::Helps) {
      time.improvements.push_back({.what = fmt::format("{}: 10 % {}", resource.title,
                                                       is_latency(resource) ? "shorter" : "more"),
                                   .kind = is_software(resource) ? "software" : "hardware",
                                   .time = effect.faster});
    }
  }
}

void sort_improvements(ExplainedTime& time) {
  std::stable_sort(time.improvements.begin(), time.improvements.end(),
                   [](const Improvement& a, const Improvement& b) { return a.time < b.time; });
}

}  // namespace

std::vector<ExplainedTime> explain_times(const ExplainTask& task, const TimesOf& times_of) {
  // The base, all at once better and worse, then each resource better and worse.
  std::vector<std::pair<Resource, double>> runs;
  std::vector<Resource> all{all_resources()};
  all.insert(all.end(), task.resources.begin(), task.resources.end());
  for (const Resource& resource : all) {
    runs.emplace_back(resource, kExplainFactor);
    runs.emplace_back(resource, 1.0 / kExplainFactor);
  }
  std::vector<std::vector<SimTime>> times(runs.size() + 1);
  // First alone, as it may find that nothing can be run at all.
  {
    const LongRunDisplay display("explain", nullptr);
    times[0] = times_of(task.machine);
  }
  if (std::any_of(times[0].begin(), times[0].end(),
                  [](SimTime time) { return time <= SimTime(); })) {
    throw ConfigError("explain: expected something that takes time, found none: nothing is sent");
  }
  run_tasks(runs.size(), task.threads, "resources", [&](std::size_t index) {
    times[index + 1] = times_of(scaled(task.machine, runs[index].first, runs[index].second));
  });
  std::vector<ExplainedTime> explained;
  for (std::size_t which = 0; which < task.labels.size(); ++which) {
    ExplainedTime time{
        .label = task.labels[which].label, .how = task.labels[which].how, .time = times[0][which]};
    for (std::size_t index = 0; index < all.size(); ++index) {
      ResourceEffect effect{.key = all[index].key,
                            .title = all[index].title,
                            .value = all[index].value,
                            .faster = times[2 * index + 1][which],
                            .slower = times[2 * index + 2][which]};
      if (index == 0) {
        time.all = std::move(effect);
      } else {
        time.effects.push_back(std::move(effect));
      }
    }
    add_improvements(task.resources, time);
    sort_improvements(time);
    explained.push_back(std::move(time));
  }
  return explained;
}

void add_settings(std::span<const SettingVariant> variants, unsigned threads, ExplainedTime& time) {
  std::vector<std::optional<SimTime>> times(variants.size());
  run_tasks(variants.size(), threads, "settings", [&](std::size_t index) {
    try {
      times[index] = variants[index].run();
    } catch (const ConfigError&) {
      // Not to be had on this cluster or with this plan.
    }
  });
  for (std::size_t index = 0; index < variants.size(); ++index) {
    if (times[index] && *times[index] < time.time) {
      time.improvements.push_back(
          {.what = variants[index].what, .kind = "setting", .time = *times[index]});
    }
  }
  sort_improvements(time);
}

std::vector<ContendedLinks> contended_links(const Topology& topology,
                                            std::span<const LinkTraffic> traffic, SimTime time) {
  CHECK(time > SimTime(), "links are busy for a share of a time that passes");
  const LinkResources resources(topology);
  using Key = std::tuple<std::string, std::int64_t, std::vector<PurposeBytes>>;
  std::map<Key, ContendedLinks> alike;
  for (const LinkTraffic& each : traffic) {
    const Link& link = topology.link(each.link);
    const std::string& resource = resources.of(each.link).key;
    const auto [entry, is_new] =
        alike.try_emplace({resource, link.spec.bandwidth.bits_per_second(), each.parts});
    ContendedLinks& links = entry->second;
    if (!is_new) {
      ++links.count;
      continue;
    }
    links.resource = resource;
    links.example =
        fmt::format("{} -> {}", topology.node(link.source).name, topology.node(link.target).name);
    links.rate_gbps = link.spec.bandwidth.gigabytes_per_second();
    links.utilisation = transfer_time(each.total(), link.spec.bandwidth) / time;
    links.parts = each.parts;
  }
  std::vector<ContendedLinks> busiest;
  for (auto& [key, links] : alike) {
    busiest.push_back(std::move(links));
  }
  std::stable_sort(busiest.begin(), busiest.end(),
                   [](const ContendedLinks& a, const ContendedLinks& b) {
                     return a.utilisation > b.utilisation;
                   });
  constexpr std::size_t kShown = 5;
  busiest.resize(std::min(kShown, busiest.size()));
  return busiest;
}

void add_links(const Cluster& cluster, std::span<const LinkTraffic> traffic, ExplainedTime& time) {
  time.links = contended_links(cluster.topology, traffic, time.time);
  time.volumes = tier_volumes(LinkResources(cluster.topology, cluster.routing.fabric), traffic);
}

}  // namespace trainyard
