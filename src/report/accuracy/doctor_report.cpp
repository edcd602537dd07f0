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
constexpr double kMinShown = 0.001;
constexpr std::size_t kMaxShown = 8;
constexpr std::size_t kAlwaysShown = 2;

Cell microseconds(SimTime time) {
  return {fmt::format("{:.2f}", time.microseconds()), time.microseconds()};
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
                   Cell::of(to_string(report.operations.at(healthy.run))),
                   microseconds(row.measured),
                   microseconds(healthy.time),
                   microseconds(row.expected.low),
                   microseconds(row.expected.high),
                   Cell::of(to_string(row.verdict)),
                   Cell::of(to_string(healthy.limit.limit)),
                   {fmt::format("{:.0f} %", 100.0 * healthy.limit.share), healthy.limit.share},
                   Cell::of(healthy.how)});
  }
  return table;
}

const FaultVariant& variant_of(const DoctorResult& result, const Explanation& explanation) {
  const Candidate& best = result.hypotheses.candidates[explanation.candidate];
  return result.hypotheses.faults[best.fault].variants[best.variant];
}

std::vector<std::string> codes_of(const DoctorResult& result, const std::vector<std::size_t>& of) {
  std::vector<std::string> codes;
  for (const std::size_t fault : of) {
    codes.push_back(result.hypotheses.faults[fault].code);
  }
  return codes;
}

// Those that a reader should see.
Table explanation_table(const DoctorResult& result) {
  Table table({column("explanation", "explanation", Align::Left),
               column("probability", "probability"), column("measured over it", "mean_log_ratio"),
               column("as far off", "tail"), column("simulated as", "simulated_as", Align::Left)});
  for (const Explanation& explanation : result.diagnosis.explanations) {
    if (table.rows().size() == kMaxShown ||
        (table.rows().size() >= kAlwaysShown && explanation.probability < kMinShown)) {
      break;
    }
    table.add_row(
        {Cell::of(fmt::format("{}", fmt::join(codes_of(result, explanation.faults), ", "))),
         percent_cell(explanation.probability), bias_cell(true, explanation.mean_residual),
         percent_cell(explanation.tail), Cell::of(variant_of(result, explanation).change)});
  }
  return table;
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

std::string and_second(const DoctorResult& result) {
  const Diagnosis& diagnosis = result.diagnosis;
  if (diagnosis.is_sure) {
    return "";
  }
  const Explanation& second = diagnosis.explanations[1];
  return fmt::format("; the log can hardly tell it from: {}, {:.0f} %", name_of(result, second),
                     100.0 * second.probability);
}

std::string nearest_text(const DoctorResult& result) {
  const Explanation& first = result.diagnosis.explanations.front();
  return fmt::format(
      "nothing that was tried explains it: {} comes nearest, and {:.1g} % of such machines are as "
      "far off",
      name_of(result, first), 100.0 * first.tail);
}

std::string times_text(const DoctorResult& result) {
  const Diagnosis& diagnosis = result.diagnosis;
  const Explanation& first = diagnosis.explanations.front();
  const double percent = 100.0 * first.probability;
  if (result.is_fast()) {
    return fmt::format(
        "Not normal: {} of {} rows take less time than their ranges, which no fault does: the "
        "machine, or how it was run, is not what was said",
        result.below, result.rows.size());
  }
  if (result.is_slow()) {
    const std::string rows = fmt::format("Not normal: {} of {} rows take longer than their ranges",
                                         result.above, result.rows.size());
    if (!diagnosis.fits || first.faults.front() == 0) {
      return rows + ", and " + nearest_text(result);
    }
    return fmt::format("{}; of the faults that were tried, {} is the likeliest with {:.0f} %{}",
                       rows, name_of(result, first), percent, and_second(result));
  }
  if (!diagnosis.fits) {
    return "Not normal, and " + nearest_text(result);
  }
  return fmt::format("{}: {} with {:.0f} %{}", diagnosis.is_healthy ? "Normal" : "Not normal",
                     name_of(result, first), percent, and_second(result));
}

}  // namespace

std::string verdict_text(const DoctorResult& result) {
  if (result.wrong_results.empty()) {
    return times_text(result);
  }
  return "Not normal: the machine gives wrong results. Its times by themselves: " +
         times_text(result);
}

Document document_of(const DoctorReport& report) {
  const DoctorResult& result = report.result;
  Document document{
      .heading = {fmt::format("{} on {}: {} ranks, {} {}", report.log, report.cluster, report.ranks,
                              report.nodes, report.nodes == 1 ? "node" : "nodes")},
      .notes = report.notes};
  for (const std::string& wrong : result.wrong_results) {
    document.heading.push_back("Wrong results, data is corrupted: " + wrong);
  }
  document.add("log", report.log);
  document.add("cluster", report.cluster);
  document.add("ranks", std::int64_t{report.ranks});
  document.add("nodes", std::int64_t{report.nodes});
  document.add("normal", result.is_normal());
  document.add_detail("wrong_results", result.wrong_results);
  document.add_detail("rows_outside", result.outside());
  document.add_detail("rows_above", result.above);
  document.add_detail("rows_below", result.below);
  document.add("fits", result.diagnosis.fits);
  document.add("sure", result.diagnosis.is_sure);
  document.add("verdict", verdict_text(result));
  document.add(NamedTable{.key = "rows", .table = rows_of(report), .mark = HeaderMark::Hash});
  Json explanations = Json::array();
  for (const Explanation& explanation : result.diagnosis.explanations) {
    explanations.push_back({{"faults", codes_of(result, explanation.faults)},
                            {"probability", explanation.probability},
                            {"mean_log_ratio", explanation.mean_residual},
                            {"tail", explanation.tail},
                            {"simulated_as", variant_of(result, explanation).change}});
  }
  document.add_detail("explanations", std::move(explanations));
  NamedTable shown{.key = "",
                   .table = explanation_table(result),
                   .title = verdict_text(result),
                   .is_apart = true,
                   .shown = Shown::People};
  const std::vector<std::string> unseen = codes_of(result, result.diagnosis.unseen);
  if (!unseen.empty()) {
    shown.remarks.push_back(fmt::format("Would not show in this log: {}", fmt::join(unseen, ", ")));
  }
  document.add_detail("would_not_show", unseen);
  Json not_tried = Json::array();
  std::vector<std::string> left_out;
  for (const MachineFault& fault : result.hypotheses.faults) {
    if (!fault.left_out.empty()) {
      left_out.push_back(fmt::format("{} ({})", fault.code, fault.left_out));
      not_tried.push_back({{"fault", fault.code}, {"reason", fault.left_out}});
    }
  }
  if (!left_out.empty()) {
    shown.remarks.push_back(fmt::format("Not tried: {}", fmt::join(left_out, ", ")));
  }
  document.add_detail("not_tried", std::move(not_tried));
  document.add(std::move(shown));
  return document;
}

}  // namespace trainyard
