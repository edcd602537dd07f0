// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/hosts/host_set.h"

#include <filesystem>

#include "sim/config_error.h"
#include "support/mpi.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kHead = R"(format: trainyard-hosts-1
source: {program: trainyard-calibrate-hosts, date: 2026-11-28, note: ""}
system: {cpu: "some CPU", cores: 2, kernel: "Linux", mpi: "Open MPI v4.1.4"}
rows:
)";

std::string mistake_of(const std::string& rows) {
  try {
    (void)parse_host_set(kHead + rows, "host.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("what was measured on a host is read, of several passes the least",
          "[calibration][mpi]") {
  const HostSet set = parse_host_set(
      kHead +
          "  - {test: ping-pong, path: shared, ranks: 2, bytes: 8, least_us: 0.34, "
          "median_us: 0.4, repeats: 400}\n"
          "  - {test: socket-stream, path: tcp, ranks: 2, bytes: 1024, least_us: 4.3, "
          "median_us: 7.8, repeats: 7, cpu_us: 2}\n"
          "  - {test: ping-pong, path: shared, ranks: 2, bytes: 8, least_us: 0.35, "
          "median_us: 0.37, repeats: 400}\n",
      "host.yaml");
  REQUIRE(set.cpu == "some CPU");
  REQUIRE(set.cores == 2);
  REQUIRE(set.rows.size() == 2);
  REQUIRE(set.rows[0].size == Bytes(8));
  REQUIRE(set.rows[0].least == 0.34);  // The least of two passes.
  REQUIRE(set.rows[0].median == 0.37);
  REQUIRE(set.rows[0].cpu == 0.0);
  REQUIRE(set.rows[1].cpu == 2.0);
  REQUIRE(is_host_set(kHead));
  REQUIRE_FALSE(is_host_set("source: {}\nrows: []\n"));
}

TEST_CASE("a row of a host that says something else is refused with its place",
          "[calibration][mpi]") {
  REQUIRE(mistake_of("  - {test: pong, path: shared, ranks: 2, bytes: 8, least_us: 0.3, "
                     "median_us: 0.4, repeats: 4}\n")
              .starts_with("host.yaml:5:12: rows[0].test: expected one of copy, "));
  REQUIRE(mistake_of("  - {test: copy, path: memory, ranks: 1, bytes: 8, least_us: 0, "
                     "median_us: 0.4, repeats: 4}\n")
              .find("rows[0].least_us") != std::string::npos);
}

#ifdef TRAINYARD_HAS_MPI
TEST_CASE("what trainyard-calibrate-hosts writes is read", "[calibration][mpi][long]") {
  const std::filesystem::path harness =
      std::filesystem::path(program_path()).replace_filename("trainyard-calibrate-hosts");
  const ScratchFolder folder;
  if (!mpirun_starts(folder.path())) {
    WARN(kNoMpirun);
    return;
  }
  const ProgramResult run = run_shell(
      "'" + harness.string() + "' -o host.yaml --quick --passes 2 --note test", folder.path());
  INFO(run.error);
  REQUIRE(run.status == 0);
  const HostSet set = parse_host_set(read_text_file(folder.path() / "host.yaml"), "host.yaml");
  for (const char* const test :
       {"copy", "sum", "rewrite-copy", "rewrite-sum", "ping-pong", "sends", "exchange", "written",
        "returned", "socket-stream", "all_reduce", "alltoall"}) {
    INFO(test);
    REQUIRE(std::ranges::any_of(set.rows, [&](const HostRow& row) { return row.test == test; }));
  }
  const ProgramResult wrong = run_shell("'" + harness.string() + "' --ranks 1", folder.path());
  REQUIRE(wrong.status == 2);
  REQUIRE(wrong.error.find("--ranks: expected 2 or more, found 1") != std::string::npos);
}
#endif

}  // namespace trainyard
