// SPDX-License-Identifier: Apache-2.0
// Scoring, on predictions whose errors can be checked by hand.
#include "support/catch.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "calibration/predict/validation.h"
#include "sim/config_error.h"
#include "support/case_files.h"
#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

using namespace literals;

// 20 us, 100 us, 10 ms: twice, equal, twice the times of the table.
std::vector<PredictedTime> predict_fixed(const ValidationCase&, const Cluster&, Operation,
                                         std::span<const Bytes> sizes) {
  std::vector<PredictedTime> times;
  for (const Bytes size : sizes) {
    times.push_back({size == 1_KiB ? 20_us : (size == 1_MiB ? 100_us : 10_ms), "fixed"});
  }
  return times;
}

CaseResult run(const std::string& more, const std::string& table = kTableHead + kTableRows) {
  const CaseFolder folder(table);
  return run_case(folder.load(more), shipped_catalogue(), predict_fixed);
}

std::string with_in_place(const std::string& out, const std::string& in) {
  return kTableHead + "rows:\n  - {bytes: 1048576, time_us: " + out + ", ip_time_us: " + in + "}\n";
}

TEST_CASE("errors of a case are apart for small and large sizes") {
  const CaseResult result = run("");
  REQUIRE(result.not_covered.empty());
  REQUIRE(result.errors.small.rows == 1);
  REQUIRE(result.errors.small.median == Approx(std::log(2.0)));
  REQUIRE(result.errors.bias_small == Approx(std::log(2.0)));
  REQUIRE(result.errors.large.rows == 2);
  REQUIRE(result.errors.large.median == Approx(0.0).margin(1e-12));
  REQUIRE(result.errors.large.p90 == Approx(std::log(2.0)));
  REQUIRE(result.errors.bias_large == Approx(std::log(2.0) / 2.0));
  REQUIRE(result.rows[*result.worst].size == 1_KiB);
  REQUIRE_FALSE(result.noise.has_value());
}

TEST_CASE("excluded rows are predicted and do not count") {
  const CaseResult result = run("exclude_rows: [{from: 1G, to: 1G, reason: a fault}]\n");
  REQUIRE(result.rows[2].excluded == "a fault");
  REQUIRE(result.rows[2].predicted.has_value());
  REQUIRE(result.errors.large.rows == 1);
  REQUIRE(error_figures(result.rows, CountedRows::Every).large.rows == 2);
}

TEST_CASE("a case without a row that counts, or that cannot run, is not covered and says why") {
  const CaseResult unscored = run("exclude_rows: [{reason: a fault}]\n");
  REQUIRE(unscored.not_covered.empty());
  REQUIRE(!unscored.worst);
  const std::array<const CaseResult*, 1> alone{&unscored};
  REQUIRE(group_of("", alone).covered == 1);
  REQUIRE(group_of("", alone).scored == 0);
  const CaseResult said = run("not_covered: needs more\n");
  REQUIRE(said.not_covered == "needs more");
  REQUIRE_FALSE(said.rows[0].predicted.has_value());
  REQUIRE(run("set: {server.nix: 4}\n").not_covered.find("server.nix") != std::string::npos);
  const CaseFolder folder;
  const CaseResult thrown = run_case(folder.load(""), shipped_catalogue(),
                                     [](const ValidationCase&, const Cluster&, Operation,
                                        std::span<const Bytes>) -> std::vector<PredictedTime> {
                                       throw ConfigError("no such algorithm");
                                     });
  REQUIRE(thrown.not_covered == "no such algorithm");
}

TEST_CASE("of two columns that differ by more than a quarter the smaller one counts") {
  const auto row_of = [](const std::string& more, const std::string& out, const std::string& in) {
    return run(more, with_in_place(out, in)).rows.front();
  };
  REQUIRE(row_of("", "100.0", "90.00").measured == 100_us);
  REQUIRE_FALSE(row_of("", "100.0", "90.00").columns_apart);
  REQUIRE(row_of("", "100.0", "70.00").measured == 70_us);
  REQUIRE(row_of("", "100.0", "70.00").in_place);
  REQUIRE(row_of("", "100.0", "70.00").columns_apart);
  REQUIRE(row_of("", "100.0", "150.0").measured == 100_us);
  REQUIRE(row_of("column: in_place\n", "100.0", "110.0").measured == 110_us);
  REQUIRE(row_of("column: in_place\n", "100.0", "150.0").measured == 100_us);
  REQUIRE_FALSE(row_of("column: in_place\n", "100.0", "150.0").in_place);
  REQUIRE(*run("", with_in_place("100.0", "110.0")).noise == Approx(std::log(1.1)));
}

TEST_CASE("one row represents the sizes of one doubling of a linear sweep") {
  // 3, 4 and 5 MiB round to 4 MiB, 7 MiB to 8 MiB; times per byte of the first three: 1, 3, 2.
  const std::string table = kTableHead +
                            "rows:\n"
                            "  - {bytes: 3145728, time_us: 3.000}\n"
                            "  - {bytes: 4194304, time_us: 12.00}\n"
                            "  - {bytes: 5242880, time_us: 10.00}\n"
                            "  - {bytes: 7340032, time_us: 14.00}\n";
  const CaseResult result = run("one_row_per_doubling: true\n", table);
  REQUIRE(result.rows.size() == 2);
  REQUIRE(result.rows[0].size == 5_MiB);
  REQUIRE(result.rows[0].stands_for == 3);
  REQUIRE(result.rows[1].size == 7_MiB);
  REQUIRE(run("", table).rows.size() == 4);
  const std::string apart = with_in_place("100.0", "50.00");
  REQUIRE(run("one_row_per_doubling: true\n", apart).rows[0].measured == 100_us);
}

TEST_CASE("groups weigh tables alike, and rows alike") {
  CaseResult good = run("class: b\n");
  CaseResult bad = run("class: a\nexclude_rows: [{from: 1M, to: 1M, reason: r}]\n");
  CaseResult none = run("class: a\nnot_covered: w\n");
  const Validation validation = validation_of({good, bad, none});
  REQUIRE(validation.classes.size() == 2);
  REQUIRE(validation.classes[0].name == "a");
  REQUIRE(validation.classes[0].cases == 2);
  REQUIRE(validation.classes[0].covered == 1);
  REQUIRE(validation.classes[0].large.median == Approx(std::log(2.0)));
  REQUIRE(validation.all.cases == 3);
  REQUIRE(validation.all.covered == 2);
  REQUIRE(validation.all.large.tables == 2);
  REQUIRE(validation.all.large.median == Approx(0.0).margin(1e-12));  // Nearest rank of two.
  REQUIRE(validation.all.large.bias == Approx(0.75 * std::log(2.0)));
  REQUIRE(validation.all.rows.large.rows == 3);
  REQUIRE(validation.all.rows.large.median == Approx(std::log(2.0)));
  REQUIRE(validation.all.every_row.large.rows == 4);
  REQUIRE(validation.all.excluded == 1);
  REQUIRE(validation.all.by_size.size() == 6);
  REQUIRE(validation.all.by_size[1].error.rows == 2);  // 1 KiB.
  REQUIRE(validation.all.by_size[3].error.rows == 1);  // 1 MiB, once excluded.
  REQUIRE(validation.all.by_size[5].bias == Approx(std::log(2.0)));
}

TEST_CASE("every shipped case describes a cluster of its ranks") {
  const std::filesystem::path root = source_dir();
  for (const auto& file : validation_case_files(root / "validation/cases/nccl")) {
    CAPTURE(file.string());
    LoadedCase loaded = load_validation_case(file, root);
    loaded.item.not_covered.reset();
    const CaseResult result = run_case(loaded, shipped_catalogue(), predict_fixed);
    INFO(result.not_covered);
    for (const ValidationRow& row : result.rows) {
      REQUIRE(row.predicted.has_value());
    }
  }
}

}  // namespace
}  // namespace trainyard
