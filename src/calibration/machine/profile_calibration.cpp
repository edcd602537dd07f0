// SPDX-License-Identifier: Apache-2.0
#include "calibration/machine/profile_calibration.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "calibration/fit/nccl_fit_model.h"
#include "calibration/measured/comparison.h"
#include "calibration/measured/osu_log.h"
#include "calibration/predict/nccl_prediction.h"
#include "calibration/predict/profile_yaml.h"
#include "calibration/predict/validation.h"
#include "calibration/predict/validation_case.h"
#include "nccl/tuning/choice.h"
#include "sim/check.h"
#include "sim/config.h"
#include "sim/statistics.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

// Quantile of a normal distribution: 90 % are within so many standard deviations. Times of one
// machine repeat better than this.
constexpr double kMuchNoise = 0.15;
// Digits of a constant in the profile.
constexpr int kDigits = 4;

// A table that is fitted to. The session holds on to the cluster.
struct Prepared {
  CalibratedTable table;
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<NcclSession> session;
  std::string left_out;  // Why; empty if it is not.
};

// "a.log", "a.log:12", "set.json nccl.processes.default".
std::string place_of(const CalibratedTable& table, std::size_t line) {
  return fmt::format("{}{}{}", table.file, table.part.empty() ? "" : " " + table.part,
                     line == 0 ? "" : fmt::format(":{}", line));
}

// Servers and GPUs of each that take part.
std::pair<int, int> shape_of(const MeasuredTable& table, std::optional<int> nodes,
                             int gpus_per_node) {
  if (!table.ranks) {
    throw ConfigError("expected how many ranks took part, found nothing of it");
  }
  const int ranks = *table.ranks;
  const int servers = table.nodes ? *table.nodes
                      : nodes     ? *nodes
                                  : (ranks + gpus_per_node - 1) / gpus_per_node;
  if (servers < 1 || ranks % servers != 0 || ranks / servers > gpus_per_node) {
    throw ConfigError(fmt::format("expected up to {} ranks on each of {} nodes, found {} ranks",
                                  gpus_per_node, servers, ranks));
  }
  return {servers, ranks / servers};
}

ValidationCase case_of(const CalibrationTable& table, const CalibrationRequest& request,
                       int gpus_per_node) {
  ValidationCase item;
  item.name = table.file;
  item.system = request.cluster_name;
  item.cluster = request.cluster;
  std::tie(item.nodes, item.gpus_per_node) = shape_of(table.table, request.nodes, gpus_per_node);
  item.ranks = item.nodes * item.gpus_per_node;
  item.settings = request.settings;
  item.environment = request.environment;
  item.environment.insert(item.environment.end(), table.environment.begin(),
                          table.environment.end());
  item.nccl_version = request.nccl_version ? request.nccl_version : table.nccl_version;
  item.gpus_per_process =
      std::min(request.gpus_per_process.value_or(table.table.gpus_per_process.value_or(1)),
               item.gpus_per_node);
  item.cuda_graph = table.table.cuda_graph;
  return item;
}

Prepared prepare(const CalibrationTable& given, const CalibrationRequest& request,
                 int gpus_per_node, const Catalogue& catalogue, const nccl::Profile& profile) {
  Prepared made;
  made.table.file = given.file;
  made.table.part = given.part;
  try {
    LoadedCase loaded{.item = case_of(given, request, gpus_per_node), .table = given.table};
    const std::optional<Operation> operation =
        given.table.operation ? given.table.operation : request.operation;
    if (!operation) {
      throw ConfigError("expected which operation was measured (--op), found nothing of it");
    }
    loaded.operation = *operation;
    take_whole_sizes(loaded.table, loaded.item.ranks);
    made.table.operation = *operation;
    made.table.ranks = loaded.item.ranks;
    std::vector<Bytes> sizes;
    for (const ValidationRow& row : validation_rows(loaded)) {
      const MeasuredRow* const measured = find_row(loaded.table, row.size);
      CHECK(measured != nullptr, "a row is of the table");
      sizes.push_back(row.size);
      made.table.rows.push_back(
          {.size = row.size, .line = measured->line, .measured = row.measured});
    }
    made.cluster = std::make_unique<Cluster>(cluster_of(loaded.item, catalogue));
    made.session =
        std::make_unique<NcclSession>(loaded.item, *made.cluster, profile, *operation, sizes);
    static_cast<void>(made.session->time(0));  // Some algorithms are refused only here.
  } catch (const ConfigError& error) {
    made.session.reset();
    made.left_out = fmt::format("{}: left out: {}", place_of(made.table, 0), error.what());
  }
  return made;
}

// The priors lie around what is shipped: this machine is one of a kind that was seen before.
std::vector<FitParameter> parameters_of(const std::vector<ProfileConstant>& constants) {
  std::vector<ProfileConstant> around = constants;
  for (ProfileConstant& constant : around) {
    constant.start = std::clamp(constant.in_file, constant.min, constant.max);
    constant.neighbour.reset();
  }
  return fit_parameters(around);
}

FitTable fit_table(const CalibratedTable& table) {
  FitTable made{.name = table.file, .system = "", .rows = {}};
  for (const CalibratedRow& row : table.rows) {
    made.rows.push_back({.log_measured = std::log(row.measured.seconds())});
  }
  return made;
}

CalibratedConstant calibrated(const ProfileConstant& constant, const ConstantEstimate& estimate) {
  CalibratedConstant made{.constant = constant, .value = constant.in_file};
  made.rows = estimate.rows;
  const std::set<std::string> files(estimate.tables.begin(), estimate.tables.end());
  made.files.assign(files.begin(), files.end());
  if (!estimate.is_determined) {
    made.mark = constant.is_estimate ? ConstantMark::Guess : ConstantMark::Cited;
    made.reason = estimate.reason;
    return made;
  }
  const double half = kNormal90Percent * estimate.standard_error;
  made.mark = ConstantMark::Measured;
  made.value = std::exp(estimate.value);
  made.low = std::max(constant.min, std::exp(estimate.value - half));
  made.high = std::min(constant.max, std::exp(estimate.value + half));
  made.rests_on = estimate.rests_on;
  return made;
}

FittedText text_of(const CalibratedConstant& one) {
  const ConstantKind kind = one.constant.kind;
  return {.name = one.constant.name,
          .value = constant_text(kind, one.value, kDigits),
          .low = constant_text(kind, one.low, kDigits),
          .high = constant_text(kind, one.high, kDigits),
          .rows = one.rows,
          .files = one.files};
}

// Returns what is fitted to, by operation and ranks.
nccl::ProfileBasis basis_of(const std::vector<CalibratedTable>& tables,
                            const nccl::MachineKind& machine) {
  std::map<std::pair<Operation, int>, nccl::ProfileBasis::Rows> all;
  for (const CalibratedTable& table : tables) {
    for (const CalibratedRow& row : table.rows) {
      if (row.use != RowUse::Fitted) {
        continue;
      }
      auto& rows = all.try_emplace({table.operation, table.ranks},
                                   nccl::ProfileBasis::Rows{.operation = table.operation,
                                                            .ranks = table.ranks,
                                                            .min = row.size,
                                                            .max = row.size})
                       .first->second;
      rows.min = std::min(rows.min, row.size);
      rows.max = std::max(rows.max, row.size);
      ++rows.count;
    }
  }
  nccl::ProfileBasis basis{.machine = machine, .rows = {}};
  for (const auto& [key, rows] : all) {
    basis.rows.push_back(rows);
  }
  return basis;
}

// Predictions of `profile` into one member of the rows. Sessions are not for several threads.
void predict(std::vector<CalibratedTable>& tables, NcclFitModel& model,
             const nccl::Profile& profile, SimTime CalibratedRow::*time) {
  for (std::size_t t = 0; t < tables.size(); ++t) {
    for (std::size_t r = 0; r < tables[t].rows.size(); ++r) {
      tables[t].rows[r].*time = model.time(t, r, profile);
    }
  }
}

void warn_of_outliers(ProfileCalibration& result) {
  for (const CalibratedTable& table : result.tables) {
    for (const CalibratedRow& row : table.rows) {
      if (row.use == RowUse::Outlier) {
        result.warnings.push_back(fmt::format(
            "{}: left out as an outlier: {} of {} in {:.2f} us, where the others lead to {:.2f} us",
            place_of(table, row.line), to_string(table.operation), to_string(row.size),
            row.measured.microseconds(), row.fitted.microseconds()));
      }
    }
  }
  if (result.fit.noise > kMuchNoise) {
    result.warnings.push_back(fmt::format(
        "rows are {:.0f} % off after the fit as well: the machine, its cluster file or the "
        "variables of NCCL may be others",
        100.0 * std::expm1(result.fit.noise)));
  }
  if (result.fit.many_outliers) {
    result.warnings.emplace_back(
        "more than a fifth of the rows are far from what the constants can give: none is left out "
        "as an outlier, and the machine, its cluster file or the variables of NCCL may be others");
  }
}

std::vector<std::string> files_of(const std::vector<CalibratedTable>& tables) {
  std::vector<std::string> files;
  for (const CalibratedTable& table : tables) {
    if (std::find(files.begin(), files.end(), table.file) == files.end()) {
      files.push_back(table.file);
    }
  }
  return files;
}

}  // namespace

std::string_view to_string(ConstantMark mark) {
  static constexpr std::array<std::string_view, 3> kNames{"measured", "cited", "guess"};
  return kNames.at(static_cast<std::size_t>(mark));
}

CalibrationError calibration_error(std::span<const EstimatedRow> rows) {
  std::vector<double> shipped;
  std::vector<double> fitted;
  for (const EstimatedRow& row : rows) {
    shipped.push_back(std::abs(row.shipped));
    fitted.push_back(std::abs(row.fitted));
  }
  const RegimeError before = regime_error(std::move(shipped));
  const RegimeError after = regime_error(std::move(fitted));
  return {.rows = after.rows,
          .median_shipped = before.median,
          .p90_shipped = before.p90,
          .median_fitted = after.median,
          .p90_fitted = after.p90};
}

CalibrationError error_of(std::span<const CalibratedTable> tables, RowUse use) {
  std::vector<EstimatedRow> rows;
  for (const CalibratedTable& table : tables) {
    for (const CalibratedRow& row : table.rows) {
      if (row.use == use) {
        rows.push_back({.use = use,
                        .shipped = std::log(row.shipped / row.measured),
                        .fitted = std::log(row.fitted / row.measured)});
      }
    }
  }
  return calibration_error(rows);
}

std::vector<bool> third_of_four(std::size_t rows) {
  std::vector<bool> marks(rows);
  for (std::size_t r = 2; r + 1 < rows; r += 4) {
    marks[r] = true;
  }
  return marks;
}

std::vector<std::vector<bool>> kept_out_rows(std::span<const CalibratedTable> tables) {
  std::set<std::string_view> collectives;
  for (const CalibratedTable& table : tables) {
    if (nccl::function_of(table.operation)) {
      collectives.insert(to_string(table.operation));
    }
  }
  const std::string_view last = collectives.size() < 3 ? "" : *collectives.rbegin();
  std::vector<std::vector<bool>> marks;
  for (const CalibratedTable& table : tables) {
    const std::size_t rows = table.rows.size();
    marks.push_back(to_string(table.operation) == last ? std::vector<bool>(rows, true)
                                                       : third_of_four(rows));
  }
  return marks;
}

ProfileCalibration calibrate_profile(const CalibrationRequest& request,
                                     const ProfileConstants& constants, const Catalogue& catalogue,
                                     const TaskRunner& run_tasks) {
  ConfigDocument document = ConfigDocument::parse(constants.text(), constants.name());
  const nccl::Profile shipped = nccl::Profile::read(document);
  const Cluster whole = load_cluster(request.cluster, catalogue, {.settings = request.settings});
  std::vector<Prepared> prepared(request.tables.size());
  run_tasks(prepared.size(), [&](std::size_t index) {
    prepared[index] =
        prepare(request.tables[index], request, whole.gpus_per_node, catalogue, shipped);
  });
  ProfileCalibration result;
  std::vector<std::unique_ptr<NcclSession>> sessions;
  std::vector<FitTable> tables;
  nccl::MachineKind machine;
  for (Prepared& one : prepared) {
    if (!one.left_out.empty()) {
      result.warnings.push_back(one.left_out);
      continue;
    }
    machine = std::max(machine, one.session->machine());
    result.tables.push_back(one.table);
    tables.push_back(fit_table(one.table));
    sessions.push_back(std::move(one.session));
  }
  if (tables.empty()) {
    throw ConfigError(result.warnings.empty() ? "expected a table of a collective, found none"
                                              : result.warnings.front());
  }
  NcclFitModel model(constants, std::move(sessions));
  const std::vector<std::vector<bool>> kept_out = kept_out_rows(result.tables);
  result.fit = fit_constants(model, parameters_of(constants.all()), tables, kept_out, request.fit,
                             run_tasks);
  std::vector<FittedText> fitted;
  for (std::size_t k = 0; k < constants.all().size(); ++k) {
    result.constants.push_back(calibrated(constants.all()[k], result.fit.constants[k]));
    if (result.constants.back().mark == ConstantMark::Measured) {
      fitted.push_back(text_of(result.constants.back()));
    }
  }
  for (std::size_t t = 0; t < tables.size(); ++t) {
    std::vector<CalibratedRow>& rows = result.tables[t].rows;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      rows[r].use = result.fit.tables[t][r].use;
    }
    result.tables[t].kept_out =
        !request.fit.all_rows && std::all_of(kept_out[t].begin(), kept_out[t].end(),
                                             [](bool is_kept_out) { return is_kept_out; });
  }
  result.basis = basis_of(result.tables, machine);
  result.profile = calibrated_profile(
      constants, fitted,
      {.cluster = request.cluster_name, .files = files_of(result.tables), .basis = result.basis});
  ConfigDocument written = ConfigDocument::parse(result.profile, "profile");
  predict(result.tables, model, shipped, &CalibratedRow::shipped);
  predict(result.tables, model, nccl::Profile::read(written), &CalibratedRow::fitted);
  warn_of_outliers(result);
  return result;
}

}  // namespace trainyard
