// SPDX-License-Identifier: Apache-2.0
#include "calibration/hosts/host_calibration.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include "calibration/hosts/host_collectives.h"
#include "calibration/hosts/host_validation.h"
#include "calibration/predict/profile_yaml.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

// Constants that rows are fitted to. Machines differ in each by a factor of two: an estimate.
using Member = std::variant<SimTime*, Bandwidth*>;
struct Kind {
  const char* name;
  Member (*member)(MpiProfile& profile);
};
constexpr std::array<Kind, 14> kKinds{{
    {"shared.send", [](MpiProfile& of) { return Member(&of.shared->send); }},
    {"shared.latency", [](MpiProfile& of) { return Member(&of.shared->latency); }},
    {"shared.copy", [](MpiProfile& of) { return Member(&of.shared->copy); }},
    {"shared.rendezvous", [](MpiProfile& of) { return Member(&of.shared->rendezvous); }},
    {"shared.read", [](MpiProfile& of) { return Member(&of.shared->read); }},
    {"shared.written", [](MpiProfile& of) { return Member(&of.shared->written); }},
    {"shared.crossing", [](MpiProfile& of) { return Member(&of.shared->crossing); }},
    {"shared.rewrite", [](MpiProfile& of) { return Member(&of.shared->rewrite); }},
    {"shared.uncached", [](MpiProfile& of) { return Member(&of.shared->uncached); }},
    {"tcp.send", [](MpiProfile& of) { return Member(&of.tcp.send); }},
    {"tcp.receive", [](MpiProfile& of) { return Member(&of.tcp.receive); }},
    {"tcp.copy", [](MpiProfile& of) { return Member(&of.tcp.copy); }},
    {"sum", [](MpiProfile& of) { return Member(&of.sum); }},
    {"copy", [](MpiProfile& of) { return Member(&of.copy); }},
}};
enum Index : std::size_t {
  kSend,
  kLatency,
  kSharedCopy,
  kRendezvous,
  kRead,
  kWritten,
  kCrossing,
  kRewrite,
  kUncached,
  kTcpSend,
  kTcpReceive,
  kTcpCopy,
  kSum,
  kCopy
};
constexpr double kSpread = 2.0;
constexpr double kRange = 100.0;  // A constant is within this factor of what is shipped.
// A receive is taken to cost what a send does, as in the profile.
constexpr double kSendAndReceive = 2.0;

using Values = std::array<double, kKinds.size()>;  // In seconds or bits per second.

Values values_of(MpiProfile profile) {
  Values values{};
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const Member member = kKinds.at(k).member(profile);
    values.at(k) = std::holds_alternative<SimTime*>(member)
                       ? std::get<SimTime*>(member)->seconds()
                       : static_cast<double>(std::get<Bandwidth*>(member)->bits_per_second());
  }
  return values;
}

MpiProfile profile_with(const Values& values, MpiProfile profile) {
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const Member member = kKinds.at(k).member(profile);
    if (std::holds_alternative<SimTime*>(member)) {
      *std::get<SimTime*>(member) = picoseconds(std::llround(values.at(k) * 1e12));
    } else {
      *std::get<Bandwidth*>(member) = Bandwidth(std::llround(values.at(k)));
    }
  }
  return profile;
}

bool is_time(std::size_t kind) {
  MpiProfile profile;
  profile.shared.emplace();
  return std::holds_alternative<SimTime*>(kKinds.at(kind).member(profile));
}

// How often a constant is in the time of a row, or its bytes are: what is multiplied with a time,
// or, in bits, divided by a rate.
struct Term {
  std::size_t kind;
  double times;
};

// Where messages are read in place: what the receiver does is one latency after the sender's call,
// and the sender's ends another one later.
struct InPlace {
  std::string_view test;
  std::size_t rate;
  double latencies;
  bool is_crossed;
  bool is_rewritten;
};
constexpr std::array kInPlace{
    InPlace{"ping-pong", kRead, 1.0, false, false}, InPlace{"returned", kWritten, 1.0, false, true},
    InPlace{"written", kWritten, 2.0, false, false}, InPlace{"exchange", kRead, 2.0, true, false},
    InPlace{"exchange-written", kWritten, 2.0, true, false}};

std::vector<Term> shared_terms(const HostRow& row, double bits, const MpiProfile::Shared& shared) {
  if (row.size < shared.eager) {
    if (row.test == "sends") {
      return {{kSend, 1.0}, {kSharedCopy, bits}};
    }
    if (row.test == "ping-pong") {
      return {{kSend, kSendAndReceive}, {kLatency, 1.0}, {kSharedCopy, 2.0 * bits}};
    }
    return {};
  }
  const auto* const found = std::ranges::find(kInPlace, row.test, &InPlace::test);
  if (found == kInPlace.end()) {
    return {};
  }
  std::vector<Term> terms{{kSend, 1.0},
                          {kLatency, found->latencies},
                          {kRendezvous, 1.0},
                          {row.size < shared.cached ? found->rate : kUncached, bits}};
  if (found->is_crossed) {
    terms.push_back({kCrossing, 1.0});
  }
  if (found->is_rewritten) {
    terms.push_back({kRewrite, bits});
  }
  return terms;
}

// Empty for a row of which the model says nothing.
std::vector<Term> terms_of(const HostRow& row, const MpiProfile& profile) {
  const double bits = 8.0 * static_cast<double>(row.size.count());
  if (row.test == "copy") {
    return {{kCopy, bits}};
  }
  if (row.test == "sum") {
    return {{kSum, bits}};
  }
  if (row.test == "rewrite-copy" || row.test == "rewrite-sum") {
    return {{kRewrite, bits}};
  }
  if (row.path == "shared") {
    return shared_terms(row, bits, *profile.shared);
  }
  if (row.test == "ping-pong" && row.path == "tcp" && row.size < *profile.tcp.eager) {
    return {{kTcpSend, 1.0}, {kTcpReceive, 1.0}, {kTcpCopy, 2.0 * bits}};
  }
  if (row.test == "sends" && row.path == "tcp" && row.size < *profile.tcp.eager) {
    return {{kTcpSend, 1.0}, {kTcpCopy, bits}};
  }
  return {};
}

bool is_fitted_to(const HostRow& row, const MpiProfile& profile) {
  return row.is_between_hosts() || !terms_of(row, profile).empty();
}

double time_of(const std::vector<Term>& terms, const Values& values) {
  double seconds = 0.0;
  for (const Term& term : terms) {
    const double value = values.at(term.kind);
    seconds += is_time(term.kind) ? term.times * value : term.times / value;
  }
  return seconds;
}

class HostModel : public FitModel {
 public:
  // All must outlive it.
  HostModel(const HostSet& set, const std::vector<HostTable>& tables, const MpiProfile& profile,
            const HostCollectives& collectives)
      : set_(set), tables_(tables), profile_(profile), collectives_(collectives) {}

  void set_points(std::span<const std::vector<double>> points) override {
    points_.clear();
    for (const std::vector<double>& point : points) {
      Values& values = points_.emplace_back();
      std::ranges::transform(point, values.begin(), [](double x) { return std::exp(x); });
    }
  }

  void log_times(std::size_t table, std::size_t point, std::span<const std::size_t> rows,
                 std::span<double> times) override {
    const Values& values = points_.at(point);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t place = tables_.at(table).rows.at(rows[i]);
      const HostRow& row = set_.rows.at(place);
      times[i] = std::log(row.is_between_hosts()
                              ? collectives_.time(place, profile_with(values, profile_)).seconds()
                              : time_of(terms_of(row, profile_), values));
    }
  }

 private:
  const HostSet& set_;
  const std::vector<HostTable>& tables_;
  const MpiProfile& profile_;
  const HostCollectives& collectives_;
  std::vector<Values> points_;
};

std::vector<FitParameter> parameters_at(const Values& shipped) {
  std::vector<FitParameter> all;
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const double start = std::log(shipped.at(k));
    all.push_back({.name = kKinds.at(k).name,
                   .start = start,
                   .min = start - std::log(kRange),
                   .max = start + std::log(kRange),
                   .spread = std::log(kSpread),
                   .neighbour = {},
                   .slower = is_time(k) ? 1.0 : -1.0});
  }
  return all;
}

// Rows of one table have the same constants: the fit looks at few of them to know which.
std::vector<HostTable> tables_of(const HostSet& set, const MpiProfile& profile) {
  std::vector<HostTable> tables;
  for (std::size_t row = 0; row < set.rows.size(); ++row) {
    const HostRow& one = set.rows[row];
    if (!is_fitted_to(one, profile)) {
      continue;
    }
    std::string name = one.test + ", " + one.path;
    for (const Term& term : terms_of(one, profile)) {
      name += fmt::format(", {}", kKinds.at(term.kind).name);
    }
    auto place = std::ranges::find(tables, name, &HostTable::name);
    if (place == tables.end()) {
      place = tables.insert(tables.end(), {.name = name, .rows = {}});
    }
    place->rows.push_back(row);
  }
  return tables;
}

// Marks the third of each four, but never the last, so that what is left reaches as far.
std::vector<bool> kept_out_of(std::size_t rows) {
  std::vector<bool> marks(rows);
  for (std::size_t row = 2; row + 1 < rows; row += 4) {
    marks[row] = true;
  }
  return marks;
}

std::string text_of(const FittedConstant& constant, double value) {
  if (!constant.is_time) {
    return fmt::format("{:.4g} GB/s", value / 8e9);
  }
  return value < 1e-6 ? fmt::format("{:.4g} ns", value * 1e9)
                      : fmt::format("{:.4g} us", value * 1e6);
}

std::string document_of(const HostCalibration& made, const std::filesystem::path& shipped) {
  ConfigDocument document = ConfigDocument::load(shipped);
  for (const FittedConstant& constant : made.constants) {
    if (!constant.is_fitted) {
      continue;
    }
    const std::string value = text_of(constant, constant.value);
    document.set(constant.name,
                 fmt::format("{{value: {}, evidence: measured, source: calibration, note: \"90 % "
                             "within {} to {}, {} rows\"}}",
                             value, text_of(constant, constant.low),
                             text_of(constant, constant.high), constant.rows));
    if (constant.name == kKinds.at(kSend).name) {
      document.set("shared.receive",
                   fmt::format("{{value: {}, evidence: estimate, source: calibration, note: "
                               "\"taken to be that of a send\"}}",
                               value));
    }
  }
  return "# Costs of messages of MPI as trainyard calibrate fitted them to one host; the keys are "
         "those of\n# configs/mpi/profile.yaml, docs/accuracy/hosts.md says how.\n\n" +
         rewritten(document.root(),
                   fmt::format("trainyard calibrate: {}, {}, {}", made.set.name, made.set.cpu,
                               made.set.mpi),
                   cited_text);
}

void compare(HostCalibration& made, const HostCollectives& collectives, const MpiProfile& shipped,
             const TaskRunner& run_tasks) {
  ConfigDocument document = ConfigDocument::parse(made.profile, "the fitted profile");
  MpiProfile fitted;
  read_fields(document.root(), fitted, mpi_fields);
  const HostPredictions before = predict_unfitted(made.set, collectives, shipped, run_tasks);
  const HostPredictions after = predict_unfitted(made.set, collectives, fitted, run_tasks);
  for (std::size_t i = 0; i < before.rows.size(); ++i) {
    const HostRow& row = before.rows[i].row;
    made.collectives.push_back({.operation = *row.operation(),
                                .ranks = row.ranks,
                                .size = row.size,
                                .measured_us = row.least,
                                .shipped_us = before.rows[i].predicted_us,
                                .fitted_us = after.rows[i].predicted_us});
  }
  made.notes = notes_of(before);
}

}  // namespace

std::vector<EstimatedRow> HostCalibration::rows(RowUse use) const {
  std::vector<EstimatedRow> found;
  for (const std::vector<EstimatedRow>& table : fit.tables) {
    std::ranges::copy_if(table, std::back_inserter(found),
                         [&](const EstimatedRow& row) { return row.use == use; });
  }
  return found;
}

double host_measured_us(const HostRow& row) {
  constexpr std::array<std::string_view, 3> kRewrites{"rewrite-copy", "rewrite-sum", "returned"};
  return std::ranges::find(kRewrites, row.test) != kRewrites.end() ? row.median : row.least;
}

std::optional<double> host_time(const HostRow& row, const MpiProfile& profile) {
  const std::vector<Term> terms = terms_of(row, profile);
  return terms.empty() ? std::nullopt : std::optional(time_of(terms, values_of(profile)));
}

HostCalibration calibrate_host(HostSet set, const Cluster& cluster, const MpiRules& rules,
                               const std::filesystem::path& shipped,
                               const ConstantFitOptions& options, const TaskRunner& run_tasks) {
  const MpiProfile profile = MpiProfile::load(shipped);
  HostCalibration made{.set = std::move(set)};
  made.tables = tables_of(made.set, profile);
  if (made.tables.empty()) {
    throw ConfigError(fmt::format(
        "{}: expected a row of copy, sum, ping-pong, sends or a collective over tcp to fit "
        "to, found none",
        made.set.name));
  }
  std::vector<FitTable> rows;
  std::vector<std::vector<bool>> kept_out;
  for (const HostTable& table : made.tables) {
    FitTable& one = rows.emplace_back(FitTable{.name = table.name, .system = "", .rows = {}});
    for (const std::size_t row : table.rows) {
      one.rows.push_back({.log_measured = std::log(host_measured_us(made.set.rows[row]) * 1e-6)});
    }
    kept_out.push_back(kept_out_of(table.rows.size()));
  }
  const HostCollectives collectives(made.set, cluster, rules);
  HostModel model(made.set, made.tables, profile, collectives);
  const Values values = values_of(profile);
  made.fit = fit_constants(model, parameters_at(values), rows, kept_out, options, run_tasks);
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const double value = values.at(k);
    made.constants.push_back(fitted_constant(kKinds.at(k).name, is_time(k), value,
                                             made.fit.constants.at(k), value / kRange,
                                             value * kRange));
  }
  made.profile = document_of(made, shipped);
  compare(made, collectives, profile, run_tasks);
  return made;
}

}  // namespace trainyard
