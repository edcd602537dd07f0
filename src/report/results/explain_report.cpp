// SPDX-License-Identifier: Apache-2.0
#include "report/results/explain_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "parallelism/run/resources.h"
#include "report/formats/json.h"
#include "report/results/volume_entries.h"

namespace trainyard {
namespace {

constexpr double kNothing = 0.002;
// Improvements by less are not worth a line.
constexpr double kMinGain = 0.001;

std::string microseconds_text(SimTime time) {
  const double seconds = time.seconds();
  return seconds >= 0.1    ? fmt::format("{:.4f} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.4f} ms", seconds * 1e3)
                           : fmt::format("{:.3f} us", seconds * 1e6);
}

double gain(const ResourceEffect& effect, SimTime base, double factor) {
  return elasticity(base, effect.faster, factor);
}
double loss(const ResourceEffect& effect, SimTime base, double factor) {
  return elasticity(base, effect.slower, 1.0 / factor);
}

std::string verdict(const ResourceEffect& effect, SimTime base, double factor) {
  switch (effect_kind(effect, base, factor)) {
    case EffectKind::None:
      return "does nothing";
    case EffectKind::Slack:
      return "just enough: slower shows";
    case EffectKind::Backward:
      return "slower with more of it";
    case EffectKind::Helps:
      break;
  }
  return fmt::format("{:+.2f} %", 100.0 * (effect.faster / base - 1.0));
}

// No minus before what rounds to zero.
std::string share_text(double value) {
  const std::string text = fmt::format("{:.3f}", value);
  return text == "-0.000" ? "0.000" : text;
}

// Adds up resources, one at a time; `of_effect` is gain or loss.
template <typename OfEffect>
double sum_of(const ExplainedTime& of, OfEffect of_effect, double factor) {
  double sum = 0.0;
  for (const ResourceEffect& effect : of.effects) {
    sum += of_effect(effect, of.time, factor);
  }
  return sum;
}

// A row for each resource of each time, and one for all of them at once.
Table effect_table(std::span<const ExplainedTime> times, double factor) {
  Table table({{.name = "", .key = "label", .shown = Shown::Csv},
               {.name = "", .key = "time_s", .shown = Shown::Csv},
               {.name = "", .key = "resource", .shown = Shown::Programs},
               {.name = "resource", .key = "title", .align = Align::Left, .min_width = 28},
               {.name = "now", .key = "value", .align = Align::Left, .min_width = 10},
               {.name = "elasticity", .key = "elasticity", .unit = "faster"},
               {.name = "elasticity", .key = "elasticity_slower", .unit = "slower"},
               {.name = "", .key = "verdict", .align = Align::Left},
               {.name = "", .key = "time_faster_s", .shown = Shown::Csv},
               {.name = "", .key = "time_slower_s", .shown = Shown::Csv},
               {.name = "", .key = "time_faster_ps", .shown = Shown::Json},
               {.name = "", .key = "time_slower_ps", .shown = Shown::Json}});
  for (const ExplainedTime& of : times) {
    std::vector<ResourceEffect> effects = of.effects;
    effects.push_back(of.all);
    for (const ResourceEffect& effect : effects) {
      const double faster = gain(effect, of.time, factor);
      const double slower = loss(effect, of.time, factor);
      table.add_row({Cell::of(of.label),
                     {"", of.time.seconds()},
                     Cell::of(effect.key),
                     Cell::of(effect.title),
                     Cell::any(effect.value),
                     {share_text(faster), faster},
                     {share_text(slower), slower},
                     Cell::of(verdict(effect, of.time, factor)),
                     {"", effect.faster.seconds()},
                     {"", effect.slower.seconds()},
                     {"", effect.faster.picoseconds()},
                     {"", effect.slower.picoseconds()}});
    }
  }
  return table;
}

Table contention_table(const ExplainedTime& of) {
  Table table({column("share", "utilisation"),
               column("of", "resource", Align::Left),
               column("rate", "rate_gb_per_s", Align::Right, "(GB/s)"),
               column("links", "example", Align::Left),
               {.name = "", .key = "count", .shown = Shown::Json},
               {.name = "bytes", .key = "", .align = Align::Left, .shown = Shown::People}});
  for (const ContendedLinks& links : of.links) {
    std::vector<std::string> parts;
    for (const PurposeBytes& part : links.parts) {
      parts.push_back(fmt::format("{} {}", part.purpose, short_size(part.bytes)));
    }
    const std::string others = links.count > 1 ? fmt::format(" and {} more", links.count - 1) : "";
    table.add_row({{fmt::format("{:.1f} %", 100.0 * links.utilisation), links.utilisation},
                   Cell::of(links.resource),
                   {fmt::format("{:.4g}", links.rate_gbps), links.rate_gbps},
                   {links.example + others, links.example},
                   Cell::count(links.count),
                   Cell::of(fmt::format("{}", fmt::join(parts, ", ")))});
  }
  return table;
}

// All that help, or for people the best few.
Table improvement_table(const ExplainedTime& of, bool is_for_people) {
  constexpr std::size_t kShown = 3;
  Table table({column("change", "change"), column("what", "what", Align::Left),
               column("of", "kind", Align::Left), column("time", "time_ps")});
  for (const Improvement& each : of.improvements) {
    const double change = each.time / of.time - 1.0;
    if (is_for_people && (change > -kMinGain || table.rows().size() == kShown)) {
      break;  // They are in order.
    }
    table.add_row({{fmt::format("{:+.2f} %", 100.0 * change), change},
                   Cell::of(each.what),
                   Cell::of(each.kind),
                   {microseconds_text(each.time), each.time.picoseconds()}});
  }
  return table;
}

// Resources over times, where there are several.
Table matrix(const RunExplanation& explanation) {
  std::vector<Column> columns{
      {.name = "elasticity", .key = "resource", .align = Align::Left, .min_width = 28}};
  for (const ExplainedTime& time : explanation.times) {
    columns.push_back({.name = time.label, .key = time.label, .min_width = 7});
  }
  Table table(std::move(columns));
  const auto add = [&](const std::string& title, auto value) {
    std::vector<Cell> cells{Cell::of(title)};
    for (const ExplainedTime& time : explanation.times) {
      cells.push_back(Cell::of(share_text(value(time))));
    }
    table.add_row(std::move(cells));
  };
  const double factor = explanation.factor;
  for (std::size_t index = 0; index < explanation.times.front().effects.size(); ++index) {
    add(explanation.times.front().effects[index].title,
        [&](const ExplainedTime& time) { return gain(time.effects[index], time.time, factor); });
  }
  add("sum", [&](const ExplainedTime& time) { return sum_of(time, gain, factor); });
  return table;
}

Json explanation_json(const ExplainedTime& of, double factor) {
  Json effects = to_json(effect_table(std::span(&of, 1), factor));
  const Json all = effects.back();
  effects.erase(effects.size() - 1);
  Json links = to_json(contention_table(of));
  for (std::size_t index = 0; index < of.links.size(); ++index) {
    for (const PurposeBytes& part : of.links[index].parts) {
      links[index]["bytes"][part.purpose] = part.bytes.count();
    }
  }
  return {{"label", of.label},
          {"how", of.how},
          {"time_ps", of.time.picoseconds()},
          {"time_s", of.time.seconds()},
          {"summary", summary_of(of, factor)},
          {"resources", std::move(effects)},
          {"sum_of_elasticities", sum_of(of, gain, factor)},
          {"all_at_once", all},
          {"links", std::move(links)},
          {"volumes", to_json(table_of(of.volumes, tier_fields))},
          {"improvements", to_json(improvement_table(of, false))}};
}

}  // namespace

EffectKind effect_kind(const ResourceEffect& effect, SimTime base, double factor) {
  const double faster = gain(effect, base, factor);
  if (faster > kNothing) {
    return EffectKind::Helps;
  }
  if (faster < -kNothing) {
    return EffectKind::Backward;
  }
  return std::abs(loss(effect, base, factor)) > kNothing ? EffectKind::Slack : EffectKind::None;
}

std::string summary_of(const ExplainedTime& time, double factor) {
  std::vector<std::pair<double, std::string>> shares;
  std::vector<std::string> idle;
  for (const ResourceEffect& effect : time.effects) {
    const EffectKind kind = effect_kind(effect, time.time, factor);
    if (kind == EffectKind::Helps) {
      shares.emplace_back(gain(effect, time.time, factor), effect.title);
    } else if (kind == EffectKind::None) {
      idle.push_back(effect.title);
    }
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> words;
  constexpr std::size_t kMax = 3;
  for (std::size_t index = 0; index < std::min(kMax, shares.size()); ++index) {
    constexpr double kMinShare = 0.01;
    if (index == 0 || shares[index].first >= kMinShare) {
      words.push_back(
          fmt::format("{} ({:.0f} %)", shares[index].second, 100.0 * shares[index].first));
    }
  }
  std::string text = words.empty() ? "No single resource bounds it"
                                   : fmt::format("Follows {}", fmt::join(words, ", "));
  if (!idle.empty()) {
    text += fmt::format("; no effect from {}", fmt::join(idle, ", "));
  }
  return text;
}

Document document_of(const RunExplanation& explanation) {
  const double factor = explanation.factor;
  const ExplainedTime& last = explanation.times.back();  // In full, as it is the largest.
  Document document{.heading = explanation.header, .notes = explanation.notes};
  document.heading.insert(
      document.heading.end(),
      {"elasticity: by how many per cent the time falls for one per cent of the resource, from "
       "runs",
       fmt::format("with each {:.3g} % better and worse; 1 is all of the time, 0 nothing",
                   100.0 * (factor - 1.0))});
  document.add_detail("header", explanation.header);
  document.add("factor", factor);
  Json times = Json::array();
  for (const ExplainedTime& time : explanation.times) {
    times.push_back(explanation_json(time, factor));
    document.add(Lines{.title = fmt::format("{}: {}{}", time.label, microseconds_text(time.time),
                                            time.how.empty() ? "" : ", " + time.how),
                       .lines = {summary_of(time, factor)}});
  }
  document.add_detail("times", std::move(times));
  if (explanation.times.size() > 1) {
    document.add_table("", matrix(explanation), Shown::People);
    std::get<NamedTable>(document.entries.back()).page_title = "Elasticity of all sizes";
  }
  document.add_table("", effect_table(std::span(&last, 1), factor), Shown::People);
  auto& effects = std::get<NamedTable>(document.entries.back());
  effects.page_title = "Elasticity of " + last.label;
  effects.remarks.push_back(fmt::format("sum of one at a time: {} faster, {} slower",
                                        share_text(sum_of(last, gain, factor)),
                                        share_text(sum_of(last, loss, factor))));
  document.add_table("", effect_table(explanation.times, factor), Shown::Csv);
  document.add_table("Busiest links, by share of the time", contention_table(last), Shown::People);
  document.add_table("Bytes on links, by tier", table_of(last.volumes, tier_fields), Shown::People);
  const Table improvements = improvement_table(last, true);
  document.add_table("What would help most", improvements, Shown::People);
  if (improvements.rows().empty()) {
    document.add(Lines{.title = "Nothing that was tried would help."});
  }
  document.add(Lines{.title = "Not in this model:", .lines = explanation.limits});
  document.add_detail("not_modelled", explanation.limits);
  return document;
}

}  // namespace trainyard
