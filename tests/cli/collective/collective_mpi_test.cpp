// SPDX-License-Identifier: Apache-2.0
// The runtimes mpi and gloo from arguments to output, in this process.
#include "support/catch.h"

#include "cli/collective/collective_mpi.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

nlohmann::json host_json(const std::string& runtime, const std::string& operation,
                         std::vector<std::string> more) {
  more.insert(more.begin(),
              {operation, "--cluster", "dgx-a100", "--runtime", runtime, "--format", "json"});
  std::ostringstream out;
  const int status = run_command(collective_command(), more, out);
  REQUIRE(status == 0);
  return nlohmann::json::parse(out.str());
}

nlohmann::json mpi_json(const std::string& operation, std::vector<std::string> more) {
  return host_json("mpi", operation, std::move(more));
}

}  // namespace

TEST_CASE("MPI's choices are columns of the table", "[cli][mpi]") {
  const auto host = mpi_json("all_reduce", {"--nodes", "1", "-b", "4K", "-e", "64K", "-f", "16"});
  REQUIRE(host["runtime"] == "mpi");
  REQUIRE(host["rows"][0]["algorithm"] == "recursive_doubling");
  REQUIRE(host["rows"][1]["algorithm"] == "rabenseifner");
  const auto two = mpi_json("all_reduce", {"--nodes", "2", "-b", "64K", "-e", "64K"});
  REQUIRE(two["rows"][0]["time_us"] > host["rows"][1]["time_us"]);
  const auto told = mpi_json("broadcast", {"--nodes", "1", "--root", "3", "-b", "1M", "-e", "1M",
                                           "--algo", "chain,knomial"});
  REQUIRE(told["rows"][0]["algorithm"] == "chain");
  REQUIRE(told["rows"][0]["time_us"] > told["rows"][1]["time_us"]);
}

TEST_CASE("sockets of TCP take the same bytes over the same links as flows", "[cli][mpi]") {
  std::vector<std::string> job{"--nodes", "2", "--gpus-per-node", "1", "-b", "64K", "-e", "64K"};
  const auto flows = mpi_json("all_reduce", job);
  job.insert(job.end(), {"--fidelity", "packet", "--transport", "tcp"});
  REQUIRE(mpi_json("all_reduce", job)["volumes"] == flows["volumes"]);
}

TEST_CASE("the rules of MPICH are others than those of Open MPI", "[cli][mpi]") {
  const auto mpich = mpi_json("all_reduce", {"--nodes", "2", "-b", "64", "-e", "64K", "-f", "1024",
                                             "--mpi-rules", "mpich-4.1"});
  REQUIRE(mpich["rows"][0]["algorithm"] == "reduce_scatter_allgather");
  REQUIRE(mpich["rows"][1]["algorithm"] == "reduce_scatter_allgather");
  REQUIRE(mpich["notes"].dump().find("MPICH 4.1 between host memories") != std::string::npos);
  REQUIRE(mpich["notes"].dump().find("MPIR_CVAR_DEVICE_COLLECTIVES=none") != std::string::npos);
  const auto few = mpi_json("reduce", {"--nodes", "2", "--gpus-per-node", "1", "-b", "4K", "-e",
                                       "4K", "--mpi-rules", "mpich-4.1", "--root", "1"});
  REQUIRE(few["rows"][0]["algorithm"] == "reduce_scatter_gather");
  REQUIRE(few["notes"].dump().find("several ranks of a host") == std::string::npos);
}

TEST_CASE("Gloo has its own algorithms, and copies tensors of GPUs", "[cli][mpi]") {
  const auto run = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--nodes", "2", "-b", "16M", "-e", "16M"});
    return host_json("gloo", "all_reduce", more);
  };
  const auto host = run({});
  REQUIRE(host["runtime"] == "gloo");
  REQUIRE(host["rows"][0]["algorithm"] == "ring");
  const auto named = run({"--algo", "bcube,halving_doubling,ring_chunked"});
  REQUIRE(named["rows"].size() == 3);
  REQUIRE(named["rows"][0]["time_us"] != host["rows"][0]["time_us"]);
  const auto copied = run({"--buffers", "gpu"});
  REQUIRE(copied["notes"].dump().find("tensors of GPUs") != std::string::npos);
  const double staged = copied["rows"][0]["time_us"];
  const double more = staged - host["rows"][0]["time_us"].get<double>();
  // 16 MiB to host memory and back, at the rate of PCIe 4.0 x16 (32 GB/s) or of a part of it.
  REQUIRE(more > 2 * 16.78e6 / 32e3);
  REQUIRE(more < 20 * 16.78e6 / 32e3);
}

TEST_CASE("the runtime gloo refuses what it does not have", "[cli][mpi]") {
  const auto refuses = [](const std::string& operation, std::vector<std::string> more,
                          const std::string& start) {
    REQUIRE_THROWS_WITH(host_json("gloo", operation, std::move(more)),
                        Catch::Matchers::StartsWith(start));
  };
  refuses("reduce_scatter", {}, "--runtime gloo: expected an operation with rules");
  refuses("all_reduce", {"--channels", "2"}, "--channels: expected without --runtime gloo");
  refuses("all_reduce", {"--compare"}, "--compare: expected without --runtime gloo");
  refuses("all_reduce", {"--algo", "tree"}, "--algo: expected auto alone, or some of ring, bcube");
  refuses("all_reduce", {"--ranks", "6", "--algo", "halving_doubling"},
          "--algo: expected an algorithm that has a schedule for all_reduce of 6 ranks");
  refuses("all_reduce", {"--mpi-rules", "mpich-4.1"}, "--mpi-rules: expected");
  REQUIRE_THROWS_WITH(mpi_json("all_reduce", {"--buffers", "gpu"}),
                      Catch::Matchers::StartsWith("--buffers: expected"));
}

TEST_CASE("the runtime mpi refuses what it does not have", "[cli][mpi]") {
  const auto refuses = [](const std::string& operation, std::vector<std::string> more,
                          const std::string& start) {
    REQUIRE_THROWS_WITH(mpi_json(operation, std::move(more)), Catch::Matchers::StartsWith(start));
  };
  refuses("all_reduce", {"--channels", "2"}, "--channels: expected without --runtime mpi");
  refuses("all_reduce", {"--compare"}, "--compare: expected without --runtime mpi");
  refuses("all_reduce", {"--algo", "tree"}, "--algo: expected auto alone, or some of basic_linear");
  refuses("all_reduce", {"--algo", "ring,ring"}, "--algo: expected every algorithm once");
  refuses("sendrecv", {}, "--runtime mpi: expected an operation with rules, found sendrecv");
  refuses("broadcast", {"--algo", "scatter_allgather_ring", "-b", "1M"},
          "--algo: expected an algorithm that has a schedule");
  REQUIRE_THROWS_AS(mpi_json("all_reduce", {"--env", "NCCL_ALGO=Ring"}), ConfigError);
}

// Measured by validation/box/measure; the model had not seen it.
TEST_CASE("a broadcast between hosts in a box takes what Open MPI took", "[cli][mpi]") {
  for (const auto& [cluster, hosts] : {std::pair("star", "6"), std::pair("tree", "8")}) {
    const std::string folder = (source_dir() / "validation/box").string() + "/";
    std::ostringstream out;
    const std::vector<std::string> arguments{
        "broadcast",
        "--cluster",
        folder + cluster + ".yaml",
        "--runtime",
        "mpi",
        "--against",
        folder + "run-1/" + cluster + "-" + hosts + "-broadcast.yaml",
        "--format",
        "json"};
    REQUIRE(run_command(collective_command(), arguments, out) == 0);
    const auto rows = nlohmann::json::parse(out.str())["rows"];
    REQUIRE(rows.size() == 11);
    for (const auto& row : rows) {
      if (row["size_bytes"] >= 32768) {  // A cable's bucket of two frames decides below.
        REQUIRE(std::abs(row["error_percent"].get<double>()) < 1.0);
      }
    }
  }
}

TEST_CASE("a seed is a draw of the packets that a collective loses", "[cli][mpi]") {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{
        "alltoall",  "--cluster",   (source_dir() / "validation/box/star.yaml").string(),
        "--runtime", "mpi",         "-b",
        "64K",       "-e",          "64K",
        "--format",  "json",        "--fidelity",
        "packet",    "--transport", "tcp",
        "--control", "reno",        "--bit-errors",
        "8.2e-7"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out;
    REQUIRE(run_command(collective_command(), arguments, out) == 0);
    return nlohmann::json::parse(out.str());
  };
  const auto first = run({});
  const auto again = run({"--seed", "1"});
  const auto other = run({"--seed", "2"});
  REQUIRE(first["rows"][0]["time_us"] == again["rows"][0]["time_us"]);
  REQUIRE(first["rows"][0]["time_us"] != other["rows"][0]["time_us"]);
  REQUIRE(other["notes"].dump().find("--seed did not influence") == std::string::npos);
}

// Recorded by validation/box/choices.
TEST_CASE("the rules of MPI choose what Open MPI called", "[cli][mpi]") {
  const std::string folder = (source_dir() / "validation/box").string() + "/";
  std::ifstream recorded(folder + "choices.csv");
  std::string line;
  std::getline(recorded, line);
  REQUIRE(line == "operation,ranks,bytes,called,chosen");
  int count = 0;
  for (; std::getline(recorded, line); ++count) {
    INFO(line);
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) {
      row.push_back(cell);
    }
    std::ostringstream out;
    const std::vector<std::string> arguments{row[0],    "--cluster", folder + "star.yaml",
                                             "--nodes", row[1],      "--runtime",
                                             "mpi",     "-b",        row[2],
                                             "-e",      row[2],      "--format",
                                             "json"};
    REQUIRE(run_command(collective_command(), arguments, out) == 0);
    REQUIRE(nlohmann::json::parse(out.str())["rows"][0]["algorithm"] == row[3]);
  }
  REQUIRE(count == 90);
}

}  // namespace trainyard
