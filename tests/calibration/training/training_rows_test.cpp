// SPDX-License-Identifier: Apache-2.0
// Tables of measured steps: the strict reader, and that every shipped table is read whole.
#include "support/catch.h"

#include <filesystem>
#include <map>
#include <string>

#include "calibration/predict/validation_case.h"
#include "calibration/training/training_rows.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kRowsTables = source_dir() / "validation" / "training";

const std::string kSource = "source: {title: T, url: U, date: \"2024\", note: N}\n";

TrainingTable table_of(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(kSource + text, "t.yaml");
  return read_training_table(document);
}

std::string error_of_rows(const std::string& text) {
  try {
    static_cast<void>(table_of(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

const TrainingRow& row_of(const TrainingTable& table, const std::string& id) {
  for (const TrainingRow& row : table.rows) {
    if (row.id == id) {
      return row;
    }
  }
  FAIL("no row " << id);
  return table.rows.front();
}

}  // namespace

TEST_CASE("a row takes what it lacks from the defaults of its table", "[training]") {
  const TrainingTable table = table_of(
      "defaults:\n  model: {seq: 2048, vocab: 32000}\n  parallel: {recompute: full}\n"
      "  flops_convention: model\n"
      "rows:\n"
      "  - {id: a, model: {seq: 4096}, measured: {step_time_s: 1.5, memory_gib: 2}}\n"
      "  - {id: b, parallel: {recompute: \"norm, act\"}, flops_convention: in our own way, "
      "measured: {tflops_per_gpu: 140, memory_gb: 3, oom: true}}\n");
  REQUIRE(table.rows[0].fields.model.sequence == 4096);
  REQUIRE(table.rows[0].fields.model.vocabulary == 32000);
  REQUIRE(table.rows[0].fields.plan.recompute == Recompute::Full);
  REQUIRE(table.rows[0].measured.step_time_s == 1.5);
  REQUIRE(table.rows[0].measured.convention == FlopsConvention::Model);
  REQUIRE(table.rows[0].measured.memory == gib(2));
  REQUIRE(table.rows[1].fields.model.sequence == 2048);
  REQUIRE_FALSE(table.rows[1].fields.plan.recompute.has_value());
  REQUIRE_FALSE(table.rows[1].measured.convention.has_value());
  REQUIRE(table.rows[1].measured.memory == Bytes(3'000'000'000));
  REQUIRE(table.rows[1].measured.out_of_memory);
}

TEST_CASE("figures of a row that is no step are not read", "[training]") {
  const TrainingTable table =
      table_of("rows:\n  - {id: a, kind: pass times, measured: {t_forward_ms: 1}}\n");
  REQUIRE(table.rows[0].kind == "pass times");
  REQUIRE_FALSE(table.rows[0].measured.step_time_s.has_value());
}

TEST_CASE("mistakes in tables of training rows have their place", "[training]") {
  REQUIRE(error_of_rows("rows:\n  - {id: a, measured: {step_time_s: 0}}\n").find("t.yaml:3:") == 0);
  REQUIRE(
      error_of_rows("rows:\n  - {id: a, measured: {step_times: 1}}\n") ==
      "t.yaml:3:24: rows[0].measured: unknown key \"step_times\"; did you mean \"step_time_s\"?");
  REQUIRE(error_of_rows("rows:\n  - {id: a, measured: {step_time_s: 1}}\n"
                        "  - {id: a, measured: {step_time_s: 1}}\n")
              .find("t.yaml:4:10: rows[1].id: expected an id that no row above has") == 0);
  REQUIRE(error_of_rows("rows:\n  - {id: a, measured: {memory_gb: 1, memory_gib: 1}}\n")
              .find("found both") != std::string::npos);
  REQUIRE(error_of_rows("rows:\n  - {id: a}\n").find("measured") != std::string::npos);
}

TEST_CASE("every table of training rows is read whole", "[training]") {
  std::map<std::string, std::size_t> rows;
  std::size_t total = 0;
  for (const std::filesystem::path& file : validation_case_files(kRowsTables)) {
    CAPTURE(file.string());
    const TrainingTable table = load_training_table(file);
    REQUIRE(table.name == file.stem().string());
    REQUIRE_FALSE(table.title.empty());
    REQUIRE((table.url.starts_with("https://") || table.url.starts_with("validation/harness/")));
    rows[table.name] = table.rows.size();
    total += table.rows.size();
  }
  REQUIRE(rows.size() == 31);
  REQUIRE(total == 2251);
  REQUIRE(rows["vtrain_single_node"] == 960);
  REQUIRE(rows["mosaicml_llm_foundry"] == 163);
}

TEST_CASE("shipped rows hold the figures of their sources", "[training]") {
  const TrainingTable korthikanti = load_training_table(kRowsTables / "korthikanti_2022.yaml");
  // arXiv 2205.05198, table 5.
  const TrainingRow& small = row_of(korthikanti, "table5-22b-selective-sp");
  REQUIRE(small.measured.step_time_s == 1.1);
  REQUIRE(small.measured.mfu_percent == 41.5);
  REQUIRE(small.measured.convention == FlopsConvention::Model);
  REQUIRE(small.fields.plan.tensor == 8);
  REQUIRE(small.fields.plan.sequence_parallelism == true);
  REQUIRE(small.fields.plan.recompute == Recompute::Selective);
  REQUIRE(small.fields.software.precision == Precision::Fp16);
  const TrainingTable sc21 = load_training_table(kRowsTables / "megatron_sc21.yaml");
  // arXiv 2104.04473, table 1: 1,008 B on 3,072 GPUs, 163 TFLOP/s.
  const TrainingRow& largest = row_of(sc21, "table1-1008.0b");
  REQUIRE(largest.fields.machine.gpus == 3072);
  REQUIRE(largest.measured.tflops_per_gpu == 163.0);
  REQUIRE(largest.measured.convention == FlopsConvention::HardwareFullRecompute);
}

}  // namespace trainyard
