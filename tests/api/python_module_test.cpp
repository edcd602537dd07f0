// SPDX-License-Identifier: Apache-2.0
// The Python module and its wheel, from Python.
#include "support/catch.h"

#include <filesystem>
#include <string>

#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

#ifdef TRAINYARD_PYTHON

std::string in_python(const std::string& words) {
  const ScratchFolder folder;
  const std::filesystem::path build =
      std::filesystem::path(program_path()).parent_path().parent_path();
  const ProgramResult result = run_shell(
      "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" + (build / "python").string() +
          " " TRAINYARD_PYTHON " " + (source_dir() / "tests/api/python_module.py").string() + " " +
          program_path() + " " + words + " 2>&1",
      folder.path());
  INFO(result.output);
  REQUIRE(result.status == 0);
  return result.output;
}

TEST_CASE("Python gives the figures of the command line, its errors and its warnings") {
  const std::string output = in_python(
      "8 Module.test_figures_are_those_of_the_command_line "
      "Module.test_a_cluster_has_the_commands_as_methods "
      "Module.test_errors_have_a_place_and_warnings_are_warnings "
      "Module.test_functions_are_those_of_the_tables");
  REQUIRE(output.find("Ran 4 tests") != std::string::npos);
}

TEST_CASE("algorithms and controls of Python are proved, timed and equal to the built-in ones") {
  const std::string output = in_python("0 -k test_own");
  REQUIRE(output.find("Ran 4 tests") != std::string::npos);
}

TEST_CASE(
    "Python gives the figures of the command line in drawn runs, on threads as well, and "
    "Ctrl-C ends a run",
    "[long]") {
  REQUIRE(in_python("60").find("of 60 runs compared") != std::string::npos);
}

TEST_CASE("a wheel works in a fresh virtual environment, without a network", "[long]") {
  const ScratchFolder folder;
  const std::filesystem::path build =
      std::filesystem::path(program_path()).parent_path().parent_path();
  const ProgramResult result =
      run_shell(TRAINYARD_PYTHON " " + (source_dir() / "python/tools/wheel.py").string() + " " +
                    build.string() +
                    " . >wheel.txt && " TRAINYARD_PYTHON
                    " -m venv fresh && fresh/bin/pip install -q --no-index "
                    "--disable-pip-version-check trainyard-*.whl && cd fresh && "
                    "bin/python -c 'import trainyard; print(trainyard.__file__); "
                    "print(trainyard.topology(cluster=\"dgx-h100\").text, end=\"\")'",
                folder.path());
  INFO(result.output << result.error);
  REQUIRE(result.status == 0);
  const std::size_t end = result.output.find('\n');
  REQUIRE(result.output.substr(0, end).find("fresh/lib/") != std::string::npos);
  REQUIRE(result.output.substr(end + 1) ==
          run_program({"topology", "--cluster", "dgx-h100"}, folder.path()).output);
}

#endif

}  // namespace
}  // namespace trainyard
