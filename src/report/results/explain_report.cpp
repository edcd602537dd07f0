// SPDX-License-Identifier: Apache-2.0
#include "report/results/explain_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "parallelism/run/resources.h"
#include "report/formats/json.h"

namespace trainyard {
namespace {

constexpr double kNothing = 0.002;
// Improvements by less are not worth a line.
constexpr double kLeastGain = 0.001;

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

std::string bytes_text(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count());
  return count >= 1e9   ? fmt::format("{:.4g} GB", count / 1e9)
         : count >= 1e6 ? fmt::format("{:.4g} MB", count / 1e6)
                        : fmt::format("{:.4g} kB", count / 1e3);
}

// No minus before what rounds to zero.
std::string share_text(double value) {
  const std::string text = fmt::format("{:.3f}", value);
  return text == "-0.000" ? "0.000" : text;
}

Table effect_table(const ExplainedTime& of, double factor) {
  Table table({{.name = "resource", .key = "resource", .align = Align::Left, .min_width = 28},
               {.name = "now", .key = "value", .align = Align::Left, .min_width = 10},
               {.name = "elasticity", .key = "elasticity", .unit = "faster"},
               {.name = "elasticity", .key = "elasticity_slower", .unit = "slower"},
               {.name = "", .key = "verdict", .align = Align::Left}});
  const auto add = [&](const ResourceEffect& effect) {
    const double faster = gain(effect, of.time, factor);
    const double slower = loss(effect, of.time, factor);
    table.add_row({Cell::of(effect.title),
                   effect.value.empty() ? Cell::none() : Cell::of(effect.value),
                   {share_text(faster), faster},
                   {share_text(slower), slower},
                   Cell::of(verdict(effect, of.time, factor))});
  };
  double faster = 0.0;
  double slower = 0.0;
  for (const ResourceEffect& effect : of.effects) {
    add(effect);
    faster += gain(effect, of.time, factor);
    slower += loss(effect, of.time, factor);
  }
  table.add_row({Cell::of("sum"),
                 Cell::none(),
                 {share_text(faster), faster},
                 {share_text(slower), slower},
                 Cell::of("of one at a time")});
  add(of.all);
  return table;
}

std::string link_lines(const ExplainedTime& of) {
  std::string text;
  for (const ContendedLinks& links : of.links) {
    std::vector<std::string> parts;
    for (const ContendedLinks::Part& part : links.parts) {
      parts.push_back(fmt::format("{} {}", part.operation, bytes_text(part.bytes)));
    }
    text += fmt::format("  {:>5.1f} %  {} at {:.4g} GB/s: {}{}: {}\n", 100.0 * links.utilisation,
                        links.resource, links.rate_gbps, links.example,
                        links.count > 1 ? fmt::format(" and {} more", links.count - 1) : "",
                        fmt::join(parts, ", "));
  }
  return text;
}

std::string improvement_lines(const ExplainedTime& of) {
  std::string text;
  constexpr std::size_t kShown = 3;
  for (std::size_t index = 0; index < std::min(kShown, of.improvements.size()); ++index) {
    const Improvement& each = of.improvements[index];
    if (each.time / of.time > 1.0 - kLeastGain) {
      break;  // They are in order.
    }
    text += fmt::format("  {:+6.2f} %  {} ({}): {}\n", 100.0 * (each.time / of.time - 1.0),
                        each.what, each.kind, microseconds_text(each.time));
  }
  return text.empty() ? "  none of what was tried\n" : text;
}

std::string text_of_time(const ExplainedTime& of, double factor) {
  std::string text = fmt::format("{}: {}{}\n", of.label, microseconds_text(of.time),
                                 of.how.empty() ? "" : ", " + of.how);
  text += summary_of(of, factor) + "\n\n" + render_text(effect_table(of, factor));
  if (!of.links.empty()) {
    text += "\nBusiest links, share of the time:\n" + link_lines(of);
  }
  text += "\nWhat would help most:\n" + improvement_lines(of);
  return text;
}

// Resources over times, where there are several.
std::string matrix_text(const RunExplanation& explanation) {
  std::vector<Column> columns{
      {.name = "elasticity", .key = "resource", .align = Align::Left, .min_width = 28}};
  for (const ExplainedTime& time : explanation.times) {
    columns.push_back({.name = time.label, .key = time.label, .min_width = 7});
  }
  Table table(std::move(columns));
  const auto add = [&](const std::string& title, auto value) {
    std::vector<Cell> cells{Cell::of(title)};
    for (const ExplainedTime& time : explanation.times) {
      const double number = value(time);
      cells.push_back({share_text(number), number});
    }
    table.add_row(std::move(cells));
  };
  const double factor = explanation.factor;
  for (std::size_t index = 0; index < explanation.times.front().effects.size(); ++index) {
    add(explanation.times.front().effects[index].title,
        [&](const ExplainedTime& time) { return gain(time.effects[index], time.time, factor); });
  }
  add("sum", [&](const ExplainedTime& time) {
    double sum = 0.0;
    for (const ResourceEffect& effect : time.effects) {
      sum += gain(effect, time.time, factor);
    }
    return sum;
  });
  return render_text(table);
}

std::string explanation_text(const RunExplanation& explanation) {
  std::string text;
  for (const std::string& line : explanation.header) {
    text += "# " + line + "\n";
  }
  text += fmt::format(
      "# elasticity: by how many per cent the time falls for one per cent of the resource, from "
      "runs\n# with each {:.3g} % better and worse; 1 is all of the time, 0 nothing\n#\n",
      100.0 * (explanation.factor - 1.0));
  if (explanation.times.size() > 1) {
    text += matrix_text(explanation) + "\n";
    for (const ExplainedTime& time : explanation.times) {
      text += fmt::format("{}: {}, {}: {}\n", time.label, microseconds_text(time.time), time.how,
                          summary_of(time, explanation.factor));
    }
    text += "\n";
  }
  // In full the last, which is the largest.
  text += text_of_time(explanation.times.back(), explanation.factor);
  text += "\nNot in this model:\n";
  for (const std::string& limit : explanation.limits) {
    text += "  - " + limit + "\n";
  }
  for (const std::string& note : explanation.notes) {
    text += "# Note: " + note + "\n";
  }
  return text;
}

Json explanation_json(const ResourceEffect& effect, SimTime base, double factor) {
  Json json;
  json["resource"] = effect.key;
  json["title"] = effect.title;
  if (!effect.value.empty()) {
    json["value"] = effect.value;
  }
  json["time_faster_ps"] = effect.faster.picoseconds();
  json["time_slower_ps"] = effect.slower.picoseconds();
  json["elasticity"] = gain(effect, base, factor);
  json["elasticity_slower"] = loss(effect, base, factor);
  json["verdict"] = verdict(effect, base, factor);
  return json;
}

Json explanation_json(const ExplainedTime& of, double factor) {
  Json json;
  json["label"] = of.label;
  json["how"] = of.how;
  json["time_ps"] = of.time.picoseconds();
  json["time_s"] = of.time.seconds();
  json["summary"] = summary_of(of, factor);
  json["resources"] = Json::array();
  double sum = 0.0;
  for (const ResourceEffect& effect : of.effects) {
    json["resources"].push_back(explanation_json(effect, of.time, factor));
    sum += gain(effect, of.time, factor);
  }
  json["sum_of_elasticities"] = sum;
  json["all_at_once"] = explanation_json(of.all, of.time, factor);
  json["links"] = Json::array();
  for (const ContendedLinks& links : of.links) {
    Json one{{"resource", links.resource},
             {"example", links.example},
             {"count", links.count},
             {"rate_gb_per_s", links.rate_gbps},
             {"utilisation", links.utilisation}};
    for (const ContendedLinks::Part& part : links.parts) {
      one["bytes"][part.operation] = part.bytes.count();
    }
    json["links"].push_back(std::move(one));
  }
  json["improvements"] = Json::array();
  for (const Improvement& each : of.improvements) {
    json["improvements"].push_back({{"what", each.what},
                                    {"kind", each.kind},
                                    {"time_ps", each.time.picoseconds()},
                                    {"change", each.time / of.time - 1.0}});
  }
  return json;
}

std::string explanation_json_text(const RunExplanation& explanation) {
  Json root;
  root["header"] = explanation.header;
  root["factor"] = explanation.factor;
  root["times"] = Json::array();
  for (const ExplainedTime& time : explanation.times) {
    root["times"].push_back(explanation_json(time, explanation.factor));
  }
  root["not_modelled"] = explanation.limits;
  root["notes"] = explanation.notes;
  return to_text(root);
}

std::string explanation_csv(const RunExplanation& explanation) {
  Table table({{.name = "label", .key = "label"},
               {.name = "time_s", .key = "time_s"},
               {.name = "resource", .key = "resource"},
               {.name = "elasticity", .key = "elasticity"},
               {.name = "elasticity_slower", .key = "elasticity_slower"},
               {.name = "time_faster_s", .key = "time_faster_s"},
               {.name = "time_slower_s", .key = "time_slower_s"}});
  for (const ExplainedTime& time : explanation.times) {
    std::vector<ResourceEffect> effects = time.effects;
    effects.push_back(time.all);
    for (const ResourceEffect& effect : effects) {
      table.add_row({Cell::of(time.label),
                     {"", time.time.seconds()},
                     Cell::of(effect.key),
                     {"", gain(effect, time.time, explanation.factor)},
                     {"", loss(effect, time.time, explanation.factor)},
                     {"", effect.faster.seconds()},
                     {"", effect.slower.seconds()}});
    }
  }
  return render_csv(table);
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
  constexpr std::size_t kMost = 3;
  for (std::size_t index = 0; index < std::min(kMost, shares.size()); ++index) {
    constexpr double kLeastShare = 0.01;
    if (index == 0 || shares[index].first >= kLeastShare) {
      words.push_back(
          fmt::format("{} ({:.0f} %)", shares[index].second, 100.0 * shares[index].first));
    }
  }
  std::string text = words.empty() ? "No single resource bounds it"
                                   : fmt::format("Follows {}", fmt::join(words, ", "));
  if (!idle.empty()) {
    text += fmt::format("; nothing comes of {}", fmt::join(idle, ", "));
  }
  return text;
}

std::string render(const RunExplanation& explanation, Format format) {
  switch (format) {
    case Format::Csv:
      return explanation_csv(explanation);
    case Format::Json:
      return explanation_json_text(explanation);
    case Format::Table:
      break;
  }
  return explanation_text(explanation);
}

}  // namespace trainyard
