// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kLogs = source_dir().string() + "/tests/golden/calibrate/";

std::string run_calibration(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--log-level", "off"});
  std::ostringstream out;
  REQUIRE(run_command(calibrate_command(), arguments, out) == 0);
  return out.str();
}

std::string calibration_mistake(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(calibrate_command(), arguments, out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// A measurement set of one GPU on which products of 16 bits reach 0.8 of the peak of an H100 and
// each kernel takes 5 us more, and memory 0.9 of its rate.
std::string kernels_of_one_gpu() {
  nlohmann::json samples = nlohmann::json::array();
  const auto add = [&](const char* quantity, const char* unit, double median,
                       nlohmann::json parameters) {
    samples.push_back({{"quantity", quantity},
                       {"unit", unit},
                       {"parameters", std::move(parameters)},
                       {"median", median},
                       {"p10", median},
                       {"p90", median}});
  };
  // Multiples of what 132 multiprocessors do at once, with the start of a tile as shipped.
  for (const int k : {256, 512, 1024, 2048, 4096, 8192, 16384, 32768}) {
    const double operations = 2.0 * 256 * 12 * 128 * 11 * (k + 135.0);
    add("matrix product time", "us", operations / (0.8 * 989e12) * 1e6 + 5.0,
        {{"type", "bf16"}, {"m", 256 * 12}, {"n", 128 * 11}, {"k", k}});
  }
  nlohmann::json products = {{"id", "gpu.gemm.bf16"}, {"status", "measured"}, {"samples", samples}};
  samples.clear();
  for (const int ctas : {1, 132, 264}) {
    add("read bandwidth", "GB/s", std::min(20.0 * ctas, 0.9 * 3350.0), {{"ctas", ctas}});
    add("copy bandwidth", "GB/s", std::min(10.0 * ctas, 0.9 * 3350.0 / 2), {{"ctas", ctas}});
    add("write bandwidth", "GB/s", std::min(20.0 * ctas, 0.9 * 3350.0), {{"ctas", ctas}});
  }
  nlohmann::json memory = {{"id", "gpu.memory"}, {"status", "measured"}, {"samples", samples}};
  samples.clear();
  add("host copy bandwidth", "GB/s", 55.0,
      {{"bytes", 1 << 28}, {"direction", "to GPU"}, {"memory", "pinned"}});
  nlohmann::json copies = {{"id", "gpu.host-link"}, {"status", "measured"}, {"samples", samples}};
  return nlohmann::json{{"format", "trainyard-measurements"},
                        {"version", 1},
                        {"backend", "cuda"},
                        {"options", {{"repetitions", 30}, {"warmup", 5}}},
                        {"complete", true},
                        {"machine", {{"nccl", ""}, {"gpus", {{{"name", "NVIDIA H100"}}}}}},
                        {"measurements", {products, memory, copies}}}
      .dump();
}

}  // namespace

TEST_CASE("calibrate fits rates of kernels to a measurement set, which step takes") {
  const ScratchFolder folder;
  const std::string set = folder.write("set.json", kernels_of_one_gpu()).string();
  const std::string rates = (folder.path() / "rates.yaml").string();
  const auto json = nlohmann::json::parse(run_calibration(
      {set, "--cluster", "dgx-h100", "--gpu-rates-out", rates, "--format", "json"}));
  REQUIRE(json["gpu_rates"]["gpu"] == "H100-SXM");
  std::map<std::string, double> fitted;
  for (const auto& rate : json["gpu_rates"]["rates"]) {
    fitted[rate["rate"].get<std::string>()] = rate["value"].get<double>();
  }
  REQUIRE(fitted.at("hopper.gemm") == Approx(0.8).epsilon(0.01));
  REQUIRE(fitted.at("hopper.gemm_start") == Approx(5e-6).epsilon(0.1));
  REQUIRE(fitted.at("hopper.memory") == Approx(0.9).epsilon(0.01));
  REQUIRE(json["links"][0]["test"] == "host_to_device_memcpy_ce");
  REQUIRE(json["links"][0]["ratio"].get<double>() == Approx(1.0).epsilon(0.1));
  const auto step_time = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--cluster",   "dgx-h100",   "--nodes",  "1",
                                       "--workload",  "llama-3-8b", "--format", "json",
                                       "--log-level", "off"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out;
    REQUIRE(run_command(step_command(), arguments, out) == 0);
    return nlohmann::json::parse(out.str())["step_time_ps"].get<double>();
  };
  REQUIRE(step_time({"--gpu-rates", rates}) < step_time({}));
  REQUIRE(calibration_mistake({kLogs + "all_reduce.log", "--cluster", "dgx-h100", "--gpu-rates-out",
                               rates + "2", "--log-level", "off"}) ==
          "--gpu-rates-out: expected a measurement set with kernels of a GPU (gpu.*), found none");
  REQUIRE(!std::filesystem::exists(rates + "2"));
}

TEST_CASE("calibrate writes a profile that collective takes, and says what is beyond it") {
  const ScratchFolder folder;
  const std::string profile = (folder.path() / "mine.yaml").string();
  const auto json = nlohmann::json::parse(
      run_calibration({kLogs + "all_reduce.log", kLogs + "alltoall.log", "--cluster", "dgx-h100",
                       "--profile-out", profile, "--format", "json"}));
  REQUIRE(json["tables"].size() == 2);
  std::ostringstream out;
  REQUIRE(run_command(collective_command(),
                      std::vector<std::string>{"all_reduce", "--cluster", "dgx-h100", "--nodes",
                                               "1", "--runtime", "nccl", "-b", "512K", "-e", "8G",
                                               "--profile", profile, "--log-level", "off"},
                      out) == 0);
  const std::string text = out.str();
  REQUIRE(text.find("hosts in " + profile) != std::string::npos);
  REQUIRE(text.find("beyond what the profile was fitted to (rows of all_reduce from 1KiB to "
                    "1GiB): sizes 2GiB to 8GiB") != std::string::npos);
}

TEST_CASE("calibrate has one line for what it cannot use, and writes nothing then") {
  const ScratchFolder folder;
  const std::string profile = (folder.path() / "mine.yaml").string();
  const std::string junk = folder.write("junk.log", "no table here\n").string();
  REQUIRE(calibration_mistake({"--cluster", "dgx-h100"}) ==
          "calibrate: expected a file of measurements, found none");
  REQUIRE(calibration_mistake({junk, "--cluster", "dgx-h100", "--profile-out", profile})
              .find(junk + ": expected output of nccl-tests") == 0);
  REQUIRE(calibration_mistake({kLogs + "all_reduce.log"})
              .find("calibrate: expected --cluster, found none") == 0);
  REQUIRE(calibration_mistake({kLogs + "all_reduce.log", "--cluster", "dgx-h100", "--widest", "x"})
              .find("--widest: expected a number from 1.01 to 100, found \"x\"") == 0);
  REQUIRE(calibration_mistake({kLogs + "all_reduce.log", "--cluster", "dgx-h100", "--op", "x"})
              .find("--op: expected all_reduce, ") == 0);
  REQUIRE(calibration_mistake(
              {kLogs + "all_reduce.log", "--cluster", "dgx-h100", "--gpus-per-process", "8"}) ==
          "--gpus-per-process: expected 1, as in " + kLogs + "all_reduce.log, found \"8\"");
  REQUIRE(calibration_mistake({junk, "--cluster", "dgx-h100", "-o", profile})
              .find("--output: expected a file for the report (--profile-out FILE writes") == 0);
  REQUIRE(calibration_mistake({junk, "--cluster", "dgx-h100", "--profile", profile}) ==
          "calibrate: unknown option \"--profile\"; did you mean \"--profile-out\"?");
  REQUIRE(!std::filesystem::exists(profile));
}

TEST_CASE("calibrate keeps no rows out of any fit where it is asked to", "[cli][calibrate]") {
  const ScratchFolder folder;
  const std::string host = source_dir().string() + "/validation/hosts/epyc-one-core.yaml";
  const std::string kernels = folder.write("gpu.json", kernels_of_one_gpu()).string();
  const auto kept_out = [](std::vector<std::string> arguments, const std::string& table) {
    arguments.insert(arguments.end(), {"--format", "json"});
    const auto report = nlohmann::json::parse(run_calibration(arguments));
    for (const nlohmann::json& row : report.at(nlohmann::json::json_pointer(table))) {
      // The first such row counts: hosts have one, kernels have one for each measurement.
      if (row.value("rows", row.value("use", "")) == "kept out") {
        return row["count"].get<int>();
      }
    }
    return 0;
  };
  const auto of_host = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {host, "--cluster", "dgx-a100"});
    return kept_out(more, "/host_errors");
  };
  REQUIRE(of_host({}) > 10);
  REQUIRE(of_host({"--all-rows"}) == 0);
  const auto of_kernels = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {kernels, "--cluster", "dgx-h100"});
    return kept_out(more, "/gpu_rates/errors");
  };
  REQUIRE(of_kernels({}) > 0);
  REQUIRE(of_kernels({"--all-rows"}) == 0);
}

TEST_CASE("a profile of MPI is fitted to a measured host and used", "[cli][calibrate][mpi]") {
  const ScratchFolder folder;
  const std::string host = source_dir().string() + "/validation/hosts/epyc-one-core.yaml";
  const std::string profile = (folder.path() / "mpi.yaml").string();
  const std::string report = run_calibration(
      {host, "--cluster", "dgx-a100", "--mpi-profile-out", profile, "--format", "json"});
  REQUIRE(report.find("host_constants") != std::string::npos);
  const auto time = [&](const std::string& more) {
    return run_shell(
        "trainyard collective all_reduce --cluster dgx-a100 --nodes 1 --runtime mpi "
        "-b 64K -e 64K --format csv --log-level off " +
            more,
        folder.path());
  };
  const ProgramResult own = time("--mpi-profile mpi.yaml");
  INFO(own.error);
  REQUIRE(own.status == 0);
  REQUIRE(own.output != time("").output);
  REQUIRE(time("--mpi-profile none.yaml").status == 2);
  REQUIRE(calibration_mistake(
              {kLogs + "all_reduce.log", "--cluster", "dgx-h100", "--mpi-profile-out", profile}) ==
          "--mpi-profile-out: expected a file of trainyard-calibrate-hosts, found none");
  REQUIRE(calibration_mistake({host, host, "--cluster", "dgx-a100"})
              .find("expected measurements of one host") != std::string::npos);
}

}  // namespace trainyard
