// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/intervals.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "sim/check.h"
#include "sim/config.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Systems that those of other families count as, together: a group of its own is as small as three,
// which know little of their 5 %.
constexpr double kOthers = 3.0;
constexpr std::array<std::string_view, 3> kRegimeNames{"latency", "between", "bandwidth"};

using LedgerRows = std::vector<const LedgerRow*>;

// Counts as many systems as `weight` says, which all weigh the same. Returns how many there are.
std::size_t add_errors(const LedgerRows& rows, std::optional<double> weight,
                       std::vector<WeightedError>& errors) {
  std::map<std::string, std::size_t> rows_of;
  for (const LedgerRow* row : rows) {
    ++rows_of[row->system];
  }
  const auto systems = static_cast<double>(rows_of.size());
  for (const LedgerRow* row : rows) {
    errors.push_back(
        {.surprise = row->surprise(),
         .weight = weight.value_or(systems) / systems / static_cast<double>(rows_of[row->system])});
  }
  return rows_of.size();
}

TimeBand band_of_rows(const LedgerRows& own, const LedgerRows& others) {
  std::vector<WeightedError> errors;
  const std::size_t systems = add_errors(own, {}, errors);
  add_errors(others, kOthers, errors);
  TimeBand band = band_of(std::move(errors));
  band.systems = systems;
  band.rows = own.size();
  return band;
}

void machine_fields(Fields& fields, nccl::MachineKind& machine) {
  fields.required("gpu", machine.gpu, Text{}, "Generation of its GPUs.");
  fields.required("scale_up", machine.scale_up, Text{}, "What joins the GPUs of a server.");
  fields.required("network", machine.network, Text{}, "What joins servers.");
}

}  // namespace

std::string_view to_string(SizeRegime regime) {
  return kRegimeNames.at(static_cast<std::size_t>(regime));
}

SizeRegime regime_of(Bytes size) {
  return size < kib(64)   ? SizeRegime::Latency
         : size < mib(16) ? SizeRegime::Between
                          : SizeRegime::Bandwidth;
}

std::string family_of(const nccl::MachineKind& machine) {
  if (machine.scale_up == "xgmi") {
    return "xgmi";
  }
  if (machine.network == "none") {
    return machine.scale_up.starts_with("nvswitch") ? "nvswitch" : "pcie";
  }
  if (machine.network != "rdma") {
    return "other-network";
  }
  return machine.scale_up == "nvswitch"        ? "rdma"
         : machine.scale_up == "nvswitch-rack" ? "rdma-rack"
         : machine.scale_up == "nvlink"        ? "rdma-mesh"
                                               : "rdma-pcie";
}

bool gives_intervals(std::span<const LedgerRow> ledger) {
  std::map<SizeRegime, std::set<std::string>> systems;
  for (const LedgerRow& row : ledger) {
    systems[regime_of(row.size)].insert(row.system);
  }
  return std::all_of(kSizeRegimes.begin(), kSizeRegimes.end(),
                     [&](SizeRegime regime) { return systems[regime].size() >= 2; });
}

Intervals Intervals::of(std::span<const LedgerRow> ledger, std::string_view without) {
  Intervals intervals;
  std::map<std::pair<std::string, SizeRegime>, LedgerRows> groups;
  std::map<SizeRegime, LedgerRows> regimes;
  for (const LedgerRow& row : ledger) {
    if (row.system == without) {
      continue;
    }
    intervals.known_.insert(row.machine);
    const SizeRegime regime = regime_of(row.size);
    regimes[regime].push_back(&row);
    groups[{row.is_alone ? std::string(kUnlikeAny) : family_of(row.machine), regime}].push_back(
        &row);
  }
  for (const SizeRegime regime : kSizeRegimes) {
    CHECK(!regimes[regime].empty(), "gives_intervals() was asked");
    // Where no system was alone, none tells how far a stranger is off: all rows stand for it.
    groups.try_emplace({std::string(kUnlikeAny), regime}, regimes[regime]);
  }
  for (const auto& [group, rows] : groups) {
    LedgerRows others;
    std::set_difference(regimes[group.second].begin(), regimes[group.second].end(), rows.begin(),
                        rows.end(), std::back_inserter(others));
    intervals.bands_[group] = band_of_rows(rows, others);
  }
  return intervals;
}

const TimeBand& Intervals::band(const nccl::MachineKind& machine, Bytes size) const {
  const SizeRegime regime = regime_of(size);
  const auto own = bands_.find({family_of(machine), regime});
  if (is_known(machine) && own != bands_.end()) {
    return own->second;
  }
  const auto unlike = bands_.find({std::string(kUnlikeAny), regime});
  CHECK(unlike != bands_.end(), "every regime has a band for machines that no table shows");
  return unlike->second;
}

TimeInterval Intervals::around(SimTime predicted, const nccl::MachineKind& machine,
                               Bytes size) const {
  return trainyard::around(predicted, band(machine, size));
}

void Intervals::fields(Fields& fields) {
  std::vector<nccl::MachineKind> known;
  fields.required("known", known, List{Group{machine_fields}}, "Machines that a table shows.");
  known_.insert(known.begin(), known.end());
  const auto family_fields = [](Fields& inner, std::map<SizeRegime, TimeBand>& regimes) {
    for (const SizeRegime regime : kSizeRegimes) {
      TimeBand band;
      if (inner.optional(to_string(regime), band, Group{band_fields}, "Messages of such sizes.")) {
        regimes.emplace(regime, band);
      }
    }
  };
  std::map<std::string, std::map<SizeRegime, TimeBand>> bands;
  fields.required("bands", bands, Named{Group{family_fields}}, "Families of machines.");
  for (const auto& [family, regimes] : bands) {
    for (const auto& [regime, band] : regimes) {
      bands_[{family, regime}] = band;
    }
  }
}

Intervals Intervals::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  Intervals intervals;
  read_fields(document.root(), intervals,
              [](Fields& fields, Intervals& read) { read.fields(fields); });
  document.finish();
  for (const SizeRegime regime : kSizeRegimes) {
    if (!intervals.bands_.contains({std::string(kUnlikeAny), regime})) {
      document.root().fail(
          fmt::format("expected bands.{}.{}, found none", kUnlikeAny, to_string(regime)));
    }
  }
  return intervals;
}

std::string Intervals::to_yaml() const {
  std::string text =
      "# What was measured over what was foreseen, on machines that no constant was fitted to: "
      "nine\n"
      "# rows in ten lie between low and high (docs/accuracy/intervals.md).\n"
      "# Written by trainyard validate --leave-one-out --record-intervals.\n"
      "known:\n";
  for (const nccl::MachineKind& machine : known_) {
    text += fmt::format("  - {{gpu: {}, scale_up: {}, network: {}}}\n", machine.gpu,
                        machine.scale_up, machine.network);
  }
  text += "bands:\n";
  std::string before;
  for (const auto& [group, band] : bands_) {
    const auto& [family, regime] = group;
    if (family != before) {
      text += fmt::format("  {}:\n", family);
      before = family;
    }
    text += fmt::format("    {}: {}\n", to_string(regime), band.to_yaml());
  }
  return text;
}

IntervalsOfOthers::IntervalsOfOthers(std::span<const LedgerRow> ledger) {
  for (const LedgerRow& row : ledger) {
    const auto [entry, is_new] = without_.try_emplace(row.system);
    if (is_new) {
      entry->second = Intervals::of(ledger, row.system);
    }
  }
}

TimeInterval IntervalsOfOthers::of(const LedgerRow& row) const {
  return without_.at(row.system).around(row.foreseen, row.machine, row.size);
}

Coverage coverage_of(const Validation& validation, const Intervals& intervals) {
  Coverage coverage;
  for (const CaseResult& one : validation.cases) {
    for (const ValidationRow& row : one.rows) {
      if (row.predicted && row.excluded.empty()) {
        ++coverage.rows;
        const TimeInterval interval =
            intervals.around(row.predicted->time, row.predicted->machine, row.size);
        coverage.inside += interval.holds(row.measured) ? 1 : 0;
      }
    }
  }
  return coverage;
}

std::map<std::string, Coverage> coverage_of(std::span<const LedgerRow> ledger) {
  const IntervalsOfOthers intervals(ledger);
  std::map<std::string, Coverage> classes;
  for (const LedgerRow& row : ledger) {
    const bool inside = intervals.of(row).holds(row.measured);
    for (const std::string& group : {row.system_class, std::string("all")}) {
      ++classes[group].rows;
      classes[group].inside += inside ? 1 : 0;
    }
  }
  return classes;
}

}  // namespace trainyard
