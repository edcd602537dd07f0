// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/doctor_report.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <utility>

#include "report/formats/json.h"
#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

// Limits of the explanations that a reader should see.
constexpr double kLeastShown = 0.001;
constexpr std::size_t kMostShown = 8;

Cell microseconds(SimTime time) {
  return {fmt::format("{:.2f}", time.microseconds()), time.microseconds()};
}

Cell ratio_cell(double log_ratio) {
  return {signed_percent_of_log(log_ratio), log_ratio};
}

Cell percent_cell(double share) {
  return {fmt::format("{:.1f} %", 100.0 * share), share};
}

Table rows_of(const DoctorReport& report) {
  Table table({column("size", "size_bytes", Align::Right, "(B)"),
               column("operation", "operation", Align::Left),
               column("measured", "measured_us", Align::Right, "(us)"),
               column("expected", "predicted_us", Align::Right, "(us)"),
               column("low", "low_us", Align::Right, "(us)"),
               column("high", "high_us", Align::Right, "(us)"),
               column("measured is", "verdict", Align::Left),
               column("bound by", "bound_by", Align::Left), column("share", "bound_share"),
               column("as", "how", Align::Left)});
  for (const DoctorRow& row : report.result.rows) {
    const HealthyRow& healthy = row.healthy;
    table.add_row({Cell::of(healthy.size.count()),
                   Cell::of(std::string(to_string(report.operations.at(healthy.run)))),
                   microseconds(row.measured),
                   microseconds(healthy.time),
                   microseconds(row.expected.low),
                   microseconds(row.expected.high),
                   Cell::of(std::string(to_string(row.verdict))),
                   Cell::of(std::string(to_string(healthy.limit.limit))),
                   {fmt::format("{:.0f} %", 100.0 * healthy.limit.share), healthy.limit.share},
                   Cell::of(healthy.how)});
  }
  return table;
}

const FaultVariant& variant_of(const DoctorResult& result, const Explanation& explanation) {
  const Hypotheses& all = result.hypotheses;
  const std::size_t fault = all.candidates[explanation.candidate].fault;
  return all.faults[fault].variants[all.variants[explanation.candidate]];
}

std::vector<std::string> codes_of(const DoctorResult& result, const std::vector<std::size_t>& of) {
  std::vector<std::string> codes;
  for (const std::size_t fault : of) {
    codes.push_back(result.hypotheses.faults[fault].code);
  }
  return codes;
}

Table explanations_of(const DoctorResult& result, bool all) {
  Table table({column("explanation", "explanation", Align::Left),
               column("probability", "probability"), column("measured over it", "mean_log_ratio"),
               column("as far off", "tail"), column("simulated as", "simulated_as", Align::Left)});
  std::size_t shown = 0;
  for (const Explanation& explanation : result.diagnosis.explanations) {
    const bool is_shown = explanation.probability >= kLeastShown || shown < 2;
    if (!all && (!is_shown || shown == kMostShown)) {
      continue;
    }
    ++shown;
    table.add_row(
        {Cell::of(fmt::format("{}", fmt::join(codes_of(result, explanation.faults), ", "))),
         percent_cell(explanation.probability), ratio_cell(explanation.mean_residual),
         percent_cell(explanation.tail), Cell::of(variant_of(result, explanation).change)});
  }
  return table;
}

// "NAME (WHY), NAME (WHY)".
std::string left_out_text(const DoctorResult& result) {
  std::vector<std::string> parts;
  for (const MachineFault& fault : result.hypotheses.faults) {
    if (!fault.left_out.empty()) {
      parts.push_back(fmt::format("{} ({})", fault.code, fault.left_out));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string text_of(const DoctorReport& report) {
  const DoctorResult& result = report.result;
  std::string text = fmt::format("# {} on {}: {} ranks, {} {}\n", report.log, report.cluster,
                                 report.ranks, report.nodes, report.nodes == 1 ? "node" : "nodes");
  for (const std::string& wrong : result.wrong_results) {
    text += fmt::format("# Wrong results, data is corrupted: {}\n", wrong);
  }
  text += render_text(rows_of(report), HeaderMark::Hash);
  text += fmt::format("\n# {}\n", verdict_text(result));
  text += render_text(explanations_of(result, false));
  const auto unseen = codes_of(result, result.diagnosis.unseen);
  if (!unseen.empty()) {
    text += fmt::format("# Would not show in this log: {}\n", fmt::join(unseen, ", "));
  }
  const std::string left_out = left_out_text(result);
  if (!left_out.empty()) {
    text += fmt::format("# Not tried: {}\n", left_out);
  }
  for (const std::string& note : report.notes) {
    text += fmt::format("# Note: {}\n", note);
  }
  return text;
}

std::string doctor_json(const DoctorReport& report) {
  const DoctorResult& result = report.result;
  Json root;
  root["log"] = report.log;
  root["cluster"] = report.cluster;
  root["ranks"] = report.ranks;
  root["nodes"] = report.nodes;
  root["normal"] = result.is_normal();
  root["wrong_results"] = result.wrong_results;
  root["rows_outside"] = result.outside;
  root["fits"] = result.diagnosis.fits;
  root["sure"] = result.diagnosis.is_sure;
  root["verdict"] = verdict_text(result);
  root["rows"] = to_json(rows_of(report));
  root["explanations"] = Json::array();
  for (const Explanation& explanation : result.diagnosis.explanations) {
    root["explanations"].push_back({{"faults", codes_of(result, explanation.faults)},
                                    {"probability", explanation.probability},
                                    {"mean_log_ratio", explanation.mean_residual},
                                    {"tail", explanation.tail},
                                    {"simulated_as", variant_of(result, explanation).change}});
  }
  root["would_not_show"] = codes_of(result, result.diagnosis.unseen);
  root["not_tried"] = Json::array();
  for (const MachineFault& fault : result.hypotheses.faults) {
    if (!fault.left_out.empty()) {
      root["not_tried"].push_back({{"fault", fault.code}, {"reason", fault.left_out}});
    }
  }
  root["notes"] = report.notes;
  return to_text(root);
}

}  // namespace

std::string name_of(const DoctorResult& result, const Explanation& explanation) {
  std::vector<std::string> titles;
  for (const std::size_t fault : explanation.faults) {
    titles.push_back(result.hypotheses.faults[fault].title);
  }
  return fmt::format("{}", fmt::join(titles, ", or "));
}

namespace {

std::string times_text(const DoctorResult& result) {
  const Diagnosis& diagnosis = result.diagnosis;
  const Explanation& first = diagnosis.explanations.front();
  if (!diagnosis.fits) {
    return fmt::format(
        "Not normal, and nothing that was tried explains it: {} comes nearest, and {:.1g} % of "
        "such "
        "machines are as far off",
        name_of(result, first), 100.0 * first.tail);
  }
  if (diagnosis.is_healthy && !result.has_normal_times()) {
    return fmt::format(
        "Not normal: {} of {} rows are outside their ranges, and no fault that was tried explains "
        "them better than none",
        result.outside, result.rows.size());
  }
  std::string text = diagnosis.is_healthy
                         ? fmt::format("Normal: healthy with {:.0f} %", 100.0 * first.probability)
                         : fmt::format("Not normal: {} with {:.0f} %", name_of(result, first),
                                       100.0 * first.probability);
  if (!diagnosis.is_sure) {
    const Explanation& second = diagnosis.explanations[1];
    text += fmt::format("; the log can hardly tell it from: {}, {:.0f} %", name_of(result, second),
                        100.0 * second.probability);
  }
  return text;
}

}  // namespace

std::string verdict_text(const DoctorResult& result) {
  if (result.wrong_results.empty()) {
    return times_text(result);
  }
  return "Not normal: the machine gives wrong results. Its times by themselves: " +
         times_text(result);
}

std::string render(const DoctorReport& report, Format format) {
  switch (format) {
    case Format::Csv:
      return render_csv(rows_of(report));
    case Format::Json:
      return doctor_json(report);
    case Format::Table:
      break;
  }
  return text_of(report);
}

}  // namespace trainyard
