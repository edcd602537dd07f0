// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/mpi_start.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/mpi.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

// For as long as it lives.
class EnvironmentValue {
 public:
  EnvironmentValue(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  EnvironmentValue(const EnvironmentValue&) = delete;
  EnvironmentValue& operator=(const EnvironmentValue&) = delete;
  ~EnvironmentValue() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a process is one of several if its launcher says so", "[sweep]") {
  REQUIRE_FALSE(is_one_of_several());
  {
    const EnvironmentValue one("OMPI_COMM_WORLD_SIZE", "1");
    const EnvironmentValue rank("PMIX_RANK", "0");
    REQUIRE_FALSE(is_one_of_several());
  }
  {
    const EnvironmentValue four("OMPI_COMM_WORLD_SIZE", "4");
    REQUIRE(is_one_of_several());
  }
  const EnvironmentValue slurm("PMIX_RANK", "0");
  REQUIRE(is_one_of_several());
}

#ifdef TRAINYARD_HAS_MPI
TEST_CASE("processes of mpirun write what one process writes", "[sweep]") {
  const ScratchFolder folder;
  folder.write("sweep.yaml", R"(title: t
command: collective
options:
  operation: all_reduce
  runtime: plain
  cluster: dgx-h100
  algo: ring
  minbytes: 1M
  maxbytes: 1M
vary:
  nodes: [1, 2, 0, 3, 4]
  channels: [1, 2]
)");
  if (!mpirun_starts(folder.path())) {
    WARN(kNoMpirun);
    return;
  }
  const std::string trainyard = mpirun(3, program_path());
  const ProgramResult one =
      run_program({"sweep", "sweep.yaml", "--format", "csv", "--output", "one"}, folder.path());
  REQUIRE(one.status == 1);
  const ProgramResult several =
      run_shell(trainyard + "sweep sweep.yaml --format csv --output several", folder.path());
  INFO(several.error);
  REQUIRE(several.status == 1);
  REQUIRE(read_text_file(folder.path() / "several") == read_text_file(folder.path() / "one"));
  REQUIRE_FALSE(std::filesystem::exists(folder.path() / "several.partial.1"));

  const ProgramResult wrong = run_shell(trainyard + "sweep none", folder.path());
  REQUIRE(wrong.status == 2);
  REQUIRE(wrong.error.find("trainyard: expected a file or one of the sweeps") != std::string::npos);
  const ProgramResult other = run_shell(trainyard + "topology", folder.path());
  REQUIRE(other.error.find("trainyard: expected a command for several processes (collective, jobs, "
                           "search, step, sweep, traffic), found \"topology\"") !=
          std::string::npos);

  const std::string words =
      "traffic permutation --cluster fat-tree-k8-100g --nodes 16 --fidelity packet --format json";
  const ProgramResult packets = run_shell(trainyard + words, folder.path());
  INFO(packets.error);
  REQUIRE(packets.status == 0);
  REQUIRE(packets.output == run_shell("'" + program_path() + "' " + words, folder.path()).output);
  const ProgramResult refused =
      run_shell(trainyard + words + " --fast-forward exact", folder.path());
  REQUIRE(refused.status == 2);
  REQUIRE(refused.error.find("expected no fast-forward where several processes work together") !=
          std::string::npos);
}
#endif

}  // namespace trainyard
