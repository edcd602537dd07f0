// SPDX-License-Identifier: Apache-2.0
// Reading of case files: what they give, what they refuse, and all that Trainyard ships.
#include "support/catch.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "calibration/predict/validation_case.h"
#include "sim/config_error.h"
#include "support/case_files.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using namespace literals;

const std::filesystem::path kCaseRoot = source_dir();

std::string error_of(const std::string& more) {
  const CaseFolder folder;
  try {
    (void)folder.load(more);
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    return text.substr(text.find("one.yaml"));
  }
  return "no error";
}

TEST_CASE("a case has what its file says, and the table's shape where it says nothing") {
  const CaseFolder folder;
  const LoadedCase plain = folder.load("");
  REQUIRE(plain.item.name == "one");
  REQUIRE(plain.item.system_class == "unclassified");
  REQUIRE(plain.item.system == "one");
  REQUIRE(plain.item.ranks == 8);
  REQUIRE(plain.item.gpus_per_process == 1);
  REQUIRE_FALSE(plain.item.fidelity.has_value());
  REQUIRE(plain.operation == Operation::AllReduce);
  REQUIRE(plain.item.cluster == kCaseRoot / "configs/clusters/dgx-h100.yaml");

  const LoadedCase full = folder.load(
      "class: c\nsystem: s\nnodes: 1\ngpus_per_node: 8\nranks: 8\noperation: all_reduce\n"
      "set: {server.nics: 4, server.gpu: H200-SXM}\n"
      "env: {NCCL_ALGO: Ring, NCCL_MAX_NCHANNELS: 8}\n"
      "gpus_per_process: 4\ncuda_graph: true\nsymmetric: true\nnccl_version: \"2.27.7\"\n"
      "fidelity: analytical\ncolumn: in_place\none_row_per_doubling: true\n"
      "graph_file: table.txt\ntuner_csv: table.txt\nnot_covered: why\nnote: n\n"
      "exclude_rows:\n  - {from: 2K, to: 1048576, reason: first}\n  - {to: 8, reason: second}\n");
  const ValidationCase& item = full.item;
  REQUIRE(item.settings == std::vector<std::string>{"server.nics=4", "server.gpu=H200-SXM"});
  REQUIRE(*item.variable("NCCL_MAX_NCHANNELS") == "8");
  REQUIRE(item.variable("NCCL_PROTO") == nullptr);
  REQUIRE(item.gpus_per_process == 4);
  REQUIRE(item.cuda_graph);
  REQUIRE(item.symmetric);
  REQUIRE(item.nccl_version == "2.27.7");
  REQUIRE(item.fidelity == Fidelity::Analytical);
  REQUIRE(item.in_place);
  REQUIRE(item.one_row_per_doubling);
  REQUIRE(item.graph_file.has_value());
  REQUIRE(item.tuner_csv.has_value());
  REQUIRE(item.not_covered == "why");
  REQUIRE(*item.exclusion(2_KiB) == "first");
  REQUIRE(*item.exclusion(1_MiB) == "first");
  REQUIRE(*item.exclusion(4_B) == "second");
  REQUIRE(item.exclusion(1_KiB) == nullptr);
  REQUIRE(item.exclusion(2_MiB) == nullptr);
}

TEST_CASE("settings may be a list as --set takes them") {
  const CaseFolder folder;
  REQUIRE(folder.load("set: [\"server.nics=4\"]\n").item.settings ==
          std::vector<std::string>{"server.nics=4"});
}

TEST_CASE("excluded rows say which sizes they are") {
  REQUIRE(ExcludedRows{.from = 4_KiB, .to = 64_MiB, .reason = ""}.sizes() == "4KiB to 64MiB");
  REQUIRE(ExcludedRows{.from = 4_KiB, .to = 4_KiB, .reason = ""}.sizes() == "4KiB");
  REQUIRE(ExcludedRows{.to = 2_MiB, .reason = ""}.sizes() == "up to 2MiB");
  REQUIRE(ExcludedRows{.from = 2_MiB, .reason = ""}.sizes() == "from 2MiB");
  REQUIRE(ExcludedRows{.reason = ""}.sizes() == "every size");
}

TEST_CASE("a mistake in a case is one line with its place") {
  REQUIRE(error_of("rank: 8\n") == "one.yaml:3:1: unknown key \"rank\"; did you mean \"ranks\"?");
  REQUIRE(error_of("ranks: 16\n") ==
          "one.yaml:3:8: ranks: expected nodes x gpus_per_node = 8, found \"16\"");
  REQUIRE(error_of("nodes: 2\n") ==
          "one.yaml:3:8: nodes: expected 1, as in the measured table, found \"2\"");
  REQUIRE(error_of("operation: all_gather\n") ==
          "one.yaml:3:12: operation: expected all_reduce, as in the measured table, found "
          "\"all_gather\"");
  REQUIRE(error_of("gpus_per_process: 3\n") ==
          "one.yaml:3:19: gpus_per_process: expected a divisor of gpus_per_node = 8, found \"3\"");
  REQUIRE(error_of("nccl_version: new\n") ==
          "one.yaml:3:15: nccl_version: expected a release of NCCL, such as \"2.27.7\", found "
          "\"new\"");
  REQUIRE(error_of("env: {nccl_algo: Ring}\n") ==
          "one.yaml:3:18: env.nccl_algo: expected a variable's name in capitals, such as "
          "NCCL_ALGO, found \"nccl_algo\"");
  REQUIRE(error_of("set: [server.nics]\n") ==
          "one.yaml:3:7: set[0]: expected KEY=VALUE, found \"server.nics\"");
  REQUIRE(error_of("graph_file: none.xml\n") ==
          "one.yaml:3:13: graph_file: expected a file, relative to the case file, found "
          "\"none.xml\"");
  REQUIRE(error_of("exclude_rows: [{from: 4, to: 2, reason: r}]\n") ==
          "one.yaml:3:30: exclude_rows[0].to: expected at least 4B, found \"2\"");
  REQUIRE(error_of("exclude_rows: [{from: 4}]\n").find("reason") != std::string::npos);
}

TEST_CASE("a cluster is looked for beside the case, in the project, among the shipped ones") {
  const CaseFolder folder;
  const auto cluster_of = [&](const std::string& cluster) {
    const std::filesystem::path file = folder.cases() / "one.yaml";
    (void)folder.add("one", "");
    std::ofstream(file) << "reference: table.txt\ncluster: " << cluster << "\n";
    return load_validation_case(file, kCaseRoot).item.cluster;
  };
  REQUIRE(cluster_of("configs/clusters/dgx-a100.yaml") ==
          kCaseRoot / "configs/clusters/dgx-a100.yaml");
  REQUIRE(cluster_of("table.txt") == folder.cases() / "table.txt");
  REQUIRE_THROWS_WITH(
      cluster_of("none.yaml"),
      Catch::Matchers::Contains("one.yaml:2:10: cluster: expected a cluster file, relative to the "
                                "project or to the case file, found \"none.yaml\""));
}

TEST_CASE("a folder without cases is an error") {
  const CaseFolder folder;
  REQUIRE_THROWS_WITH(
      validation_case_files(folder.cases()),
      folder.cases().string() + ": expected a folder of validation cases (*.yaml), found none");
  REQUIRE_THROWS_AS(validation_case_files(folder.folder() / "nowhere"), ConfigError);
}

// The names of the shipped cases, each held against its table.
std::set<std::string> shipped_cases() {
  std::set<std::string> names;
  for (const auto& file : validation_case_files(kCaseRoot / "validation/cases/nccl")) {
    CAPTURE(file.string());
    const LoadedCase loaded = load_validation_case(file, kCaseRoot);
    REQUIRE(loaded.item.name == loaded.table.name);
    REQUIRE(loaded.item.system_class != "unclassified");
    REQUIRE(loaded.item.system != loaded.item.name);
    for (const ExcludedRows& rows : loaded.item.excluded) {
      REQUIRE(rows.reason.size() > 10);
    }
    names.insert(loaded.item.name);
  }
  return names;
}

TEST_CASE("every measured table is one shipped case") {
  std::set<std::string> tables;
  for (const auto& entry : std::filesystem::directory_iterator(kCaseRoot / "validation/nccl")) {
    tables.insert(entry.path().stem().string());
  }
  REQUIRE(shipped_cases() == tables);
  REQUIRE(tables.size() >= 180);
}

}  // namespace
}  // namespace trainyard
