// SPDX-License-Identifier: Apache-2.0
// Cases of training rows: their reader, and that the shipped ones account for every shipped row.
#include "calibration/training/training_case.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "calibration/predict/validation_case.h"
#include "sim/config_error.h"
#include "support/catch.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kCaseRoot = source_dir();
const std::filesystem::path kTables = kCaseRoot / "validation" / "training";

ModelFolder shipped_models() {
  return ModelFolder(kCaseRoot / "configs" / "workloads" / "models");
}

std::vector<LoadedTrainingCase> shipped_cases() {
  ModelFolder models = shipped_models();
  std::vector<LoadedTrainingCase> cases;
  for (const auto& file : validation_case_files(kCaseRoot / "validation" / "cases" / "training")) {
    cases.push_back(load_training_case(file, kCaseRoot, models));
  }
  return cases;
}

constexpr const char* kTable = R"(
source: {title: T, url: U}
defaults:
  model: {layers: 4, hidden: 64, heads: 4, ffn_hidden: 256, vocab: 100, seq: 32}
  cluster: {gpu: A100-SXM-80GB, gpus: 4, gpus_per_node: 8}
  parallel: {tp: 1, pp: 1, global_batch: 8, recompute: none}
rows:
  - id: one-a
    model: {name: Small GPT}
    parallel: {cp: 1, zero: 1, micro_batch: 1, precision: bf16}
    measured: {step_time_s: 1}
  - {id: one-b, model: {name: Small GPT}, parallel: {micro_batch: 2}, measured: {step_time_s: 2}}
  - {id: two-a, model: {name: Other}, parallel: {dp: 8}, measured: {step_time_s: 3}}
  - {id: two-h, cluster: {gpu: H100-SXM}, measured: {step_time_s: 3}}
  - {id: pass, kind: pass times, measured: {t_comm_ms: 3}}
)";

class TrainingCaseFiles {
 public:
  TrainingCaseFiles()
      : folder_(std::filesystem::temp_directory_path() /
                ("trainyard-training-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "table.yaml") << kTable;
  }
  ~TrainingCaseFiles() { std::filesystem::remove_all(folder_); }
  TrainingCaseFiles(const TrainingCaseFiles&) = delete;
  TrainingCaseFiles& operator=(const TrainingCaseFiles&) = delete;

  [[nodiscard]] LoadedTrainingCase load(const std::string& text) const {
    std::ofstream(folder_ / "case.yaml")
        << "reference: table.yaml\ncluster: configs/clusters/dgx-a100.yaml\n"
        << text;
    ModelFolder models = shipped_models();
    return load_training_case(folder_ / "case.yaml", kCaseRoot, models);
  }
  [[nodiscard]] std::string error(const std::string& text) const {
    try {
      static_cast<void>(load(text));
    } catch (const ConfigError& error) {
      const std::string what = error.what();
      return what.substr(what.find("case.yaml"));
    }
    return "";
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace

TEST_CASE("a case says what its source does not", "[training]") {
  const LoadedTrainingCase loaded = TrainingCaseFiles().load(
      "gpus: [A100-SXM-80GB]\nset: {server.nics: 4}\ngeneration: a100\nhalf: b\n"
      "models: [{name: ^Small, model: {form: gpt}}]\n"
      "assume:\n  - {parallel: {cp: 1, zero: 0, micro_batch: 1, precision: fp16}, reason: "
      "because}\n"
      "exclude_rows:\n  - {rows: \"^pass\", reason: no step}\n");
  REQUIRE(loaded.item.name == "case");
  REQUIRE(loaded.item.source == "table");
  REQUIRE(loaded.item.generation == "a100");
  REQUIRE(loaded.item.half == TrainingHalf::B);
  REQUIRE(loaded.item.settings == std::vector<std::string>{"server.nics=4"});
  REQUIRE(loaded.rows.size() == 4);
  REQUIRE(loaded.rows[3].status == TrainingRowStatus::Excluded);
  const TrainingCaseRow& complete = loaded.rows[0];
  REQUIRE(complete.status == TrainingRowStatus::Complete);
  REQUIRE(complete.run->precision == Precision::Bf16);
  const TrainingCaseRow& assumed = loaded.rows[1];
  REQUIRE(assumed.status == TrainingRowStatus::Assumed);
  REQUIRE(assumed.assumed ==
          std::vector<std::string>{"parallel.cp", "parallel.zero", "parallel.precision"});
  REQUIRE(assumed.run->plan.micro_batch == 2);
  const TrainingCaseRow& unknown = loaded.rows[2];
  REQUIRE(unknown.status == TrainingRowStatus::Missing);
  REQUIRE(unknown.missing == std::vector<std::string>{"model.form"});
}

TEST_CASE("rows of a case can be chosen, corrected and excluded", "[training]") {
  const LoadedTrainingCase loaded = TrainingCaseFiles().load(
      "rows: \"-a|pass\"\n"
      "correct:\n  - {rows: ^two, parallel: {dp: 2}, reason: as printed elsewhere}\n"
      "assume:\n  - {model: {form: gpt}, parallel: {cp: 1, zero: 0, micro_batch: 1, precision: "
      "fp16}, reason: because}\n"
      "exclude_rows:\n  - {rows: ^one, reason: a spike}\n");
  REQUIRE(loaded.rows.size() == 3);
  REQUIRE(loaded.rows[0].status == TrainingRowStatus::Excluded);
  REQUIRE(loaded.rows[0].reason == "a spike");
  REQUIRE_FALSE(loaded.rows[0].run.has_value());
  REQUIRE(loaded.rows[1].status == TrainingRowStatus::Clash);
  REQUIRE(loaded.rows[1].reason ==
          "expected tensor x context x pipeline x data to be the number of GPUs, found 1 x 1 x 1 x "
          "2 = 2 and 4");
  REQUIRE(loaded.rows[2].status == TrainingRowStatus::NoStep);
  REQUIRE(loaded.rows[2].reason == "pass times");
}

TEST_CASE("mistakes in cases of training rows have their place", "[training]") {
  const TrainingCaseFiles files;
  REQUIRE(files.error("rows: \"[\"\n").find("case.yaml:3:7: rows: expected a regular expression") ==
          0);
  REQUIRE(files.error("rows: nothing\n").find("expected rows of the table, found none") !=
          std::string::npos);
  REQUIRE(files.error("exclude_rows:\n  - {rows: three, reason: none}\n")
              .find("expected a part of the id of a row, found \"three\"") != std::string::npos);
  REQUIRE(files.error("assume:\n  - {rows: three, model: {form: gpt}, reason: none}\n")
              .find("expected rows of the case that this is for, found none") != std::string::npos);
  REQUIRE(files.error("assume:\n  - {model: {form: gpt}}\n").find("reason") != std::string::npos);
  REQUIRE(files.error("assumed: []\n").find("did you mean \"assume\"") != std::string::npos);
  REQUIRE(files.error("half: c\n").find("half") != std::string::npos);
}

TEST_CASE("a run takes as many servers as its GPUs need", "[training]") {
  TrainingCase item;
  item.settings = {"a=b"};
  TrainingRun run;
  run.gpus = 20;
  run.gpus_per_node = 8;
  REQUIRE(item.overrides(run).nodes == 3);
  REQUIRE(item.overrides(run).gpus_per_node == 8);
  run.gpus = 2;
  REQUIRE(item.overrides(run).nodes == 1);
  REQUIRE(item.overrides(run).gpus_per_node == 2);
}

TEST_CASE("every row of every table is in one case, with its reason where it has no plan",
          "[training]") {
  std::map<std::string, int> cases_of_row;
  std::map<TrainingRowStatus, int> status;
  for (const LoadedTrainingCase& loaded : shipped_cases()) {
    CAPTURE(loaded.item.name);
    for (const TrainingCaseRow& row : loaded.rows) {
      CAPTURE(row.id);
      ++cases_of_row[loaded.item.reference.stem().string() + "/" + row.id];
      ++status[row.status];
      REQUIRE(row.run.has_value() == (row.status == TrainingRowStatus::Complete ||
                                      row.status == TrainingRowStatus::Assumed));
      REQUIRE(row.missing.empty() == (row.status != TrainingRowStatus::Missing));
      if (row.run) {
        REQUIRE(row.run->software.profile.has_value());
      } else if (row.missing.empty()) {
        REQUIRE_FALSE(row.reason.empty());
      }
    }
  }
  for (const std::filesystem::path& file : validation_case_files(kTables)) {
    const TrainingTable table = load_training_table(file);
    for (const TrainingRow& row : table.rows) {
      CAPTURE(table.name, row.id);
      REQUIRE(cases_of_row[table.name + "/" + row.id] == 1);
    }
  }
  REQUIRE(cases_of_row.size() == 2251);
  // At least 85 % of the rows whose plan is known or assumed are not lost to clashes.
  const int with_plan = status[TrainingRowStatus::Complete] + status[TrainingRowStatus::Assumed];
  REQUIRE(with_plan >= 1800);
  REQUIRE(status[TrainingRowStatus::Clash] <= 13);
}

TEST_CASE("the clashes of shipped rows are known ones", "[training]") {
  for (const LoadedTrainingCase& loaded : shipped_cases()) {
    for (const TrainingCaseRow& row : loaded.rows) {
      if (row.status == TrainingRowStatus::Clash) {
        CAPTURE(loaded.item.name, row.id, row.reason);
        // Embedding and head take places of layers, which leaves stages with no layer.
        REQUIRE(row.reason.starts_with("expected at least one layer for each of "));
      }
    }
  }
}

TEST_CASE("step times from the FLOP/s of arXiv 2104.04473 are those of its formula", "[training]") {
  // 96 B s L h^2 (1 + s / (6 h) + V / (16 L h)) by the printed TFLOP/s, computed apart from this.
  const std::map<std::string, double> expected = {
      {"table1-1.7b", 3.528},
      {"table1-3.6b", 3.697},
      {"table1-7.5b", 3.696},
      {"table1-18.4b", 9.399},
      {"table1-76.1b", 16.058},
      {"table1-310.1b", 37.614},
      {"table1-1008.0b", 102.63},
      {"table2-zero-3-174.6b-384g", 81.579},
      {"table2-zero-3-174.6b-768g", 66.746},
      {"table2-zero-3-174.6b-1536g", 66.746},
      {"table2-zero-3-529.6b-640g", 255.532},
      {"table2-zero-3-529.6b-1120g", 179.915},
      {"table2-zero-3-529.6b-2240g", 183.664},
  };
  TrainingFields rest;
  rest.model.form = ModelForm::Gpt;
  rest.model.feed_forward_ratio = 4;
  rest.plan = {
      .sequence_parallelism = false, .context = 1, .chunks = 1, .zero_stage = 0, .micro_batch = 1};
  ModelFolder models = shipped_models();
  const TrainingTable table = load_training_table(kTables / "megatron_sc21.yaml");
  REQUIRE(table.rows.size() == expected.size());
  for (TrainingRow row : table.rows) {
    CAPTURE(row.id);
    fill_missing(row.fields, rest);
    const double measured = resolve(row, models).run.value().measured_s;
    REQUIRE(measured == Approx(expected.at(row.id)).epsilon(2e-4));
  }
}

TEST_CASE("models of rows with a published count have that many parameters", "[training]") {
  // The benchmarks of MPT: plain GPTs, biases and learned positions among them.
  ModelFolder models = shipped_models();
  const TrainingTable table = load_training_table(kTables / "mosaicml_llm_foundry.yaml");
  for (TrainingRow row : table.rows) {
    CAPTURE(row.id);
    row.fields.model.form = ModelForm::Gpt;
    const TrainingResolution result = resolve(row, models);
    REQUIRE(parameters_of(result.run.value().model).total() == *row.fields.model.parameters);
  }
}

TEST_CASE("step times agree with the throughput printed beside them", "[training]") {
  // Sources print both, or one was computed from the other with other roundings.
  ModelFolder models = shipped_models();
  int compared = 0;
  for (const LoadedTrainingCase& loaded : shipped_cases()) {
    const TrainingTable table = load_training_table(loaded.item.reference);
    for (const TrainingRow& row : table.rows) {
      for (const TrainingCaseRow& one : loaded.rows) {
        if (one.id != row.id || !one.run || !row.measured.step_time_s ||
            !row.measured.tokens_per_s_per_gpu) {
          continue;
        }
        CAPTURE(loaded.item.name, row.id);
        TrainingMeasurement tokens;
        tokens.tokens_per_s_per_gpu = row.measured.tokens_per_s_per_gpu;
        const double time =
            measured_seconds(tokens, one.run->model, one.run->plan, one.run->gpus).value();
        REQUIRE(time == Approx(*row.measured.step_time_s).epsilon(0.03));
        ++compared;
      }
    }
  }
  REQUIRE(compared > 200);
}

}  // namespace trainyard
