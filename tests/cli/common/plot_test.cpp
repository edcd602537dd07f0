// SPDX-License-Identifier: Apache-2.0
// Pictures, where Python has matplotlib; otherwise that its absence is one line.
#include "support/catch.h"

#include "cli/common/plot.h"

#include <filesystem>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string check(const std::string& file) {
  try {
    check_plot(file);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("only formats that can be drawn are accepted") {
  REQUIRE(check("a.gif") ==
          "--plot: expected a file that ends in .svg, .png or .pdf, found \"a.gif\"");
  REQUIRE(check("svg") == "--plot: expected a file that ends in .svg, .png or .pdf, found \"svg\"");
}

TEST_CASE("a report is drawn, or one line says what is missing") {
  const ScratchFolder folder;
  const std::string picture = (folder.path() / "a.svg").string();
  const ProgramResult result = run_program(
      {"collective", "all_gather", "--cluster", "dgx-a100", "--runtime", "plain", "--nodes", "1",
       "-b", "1M", "-e", "4M", "--algo", "ring,bruck", "--compare", "--plot", picture},
      source_dir());
  const std::string missing = check("a.svg");
  if (!missing.empty()) {
    REQUIRE(missing.find("matplotlib") != std::string::npos);
    REQUIRE(missing.find('\n') == std::string::npos);
    REQUIRE(result.status == 2);
    REQUIRE(result.error == "trainyard: " + missing + "\n");
    REQUIRE(result.output.empty());
    return;
  }
  REQUIRE(result.error.empty());
  REQUIRE(result.status == 0);
  REQUIRE(std::filesystem::file_size(picture) > 1000);
}

// The status of tools/plot, and what it says.
ProgramResult plot(const std::string& arguments, const std::string& input) {
  const ScratchFolder folder;
  folder.write("input", input);
  std::filesystem::create_directory_symlink(source_dir() / "tools", folder.path() / "tools");
  ProgramResult result =
      run_shell("tools/plot out.svg " + arguments + " <input && test -s out.svg", folder.path());
  return result;
}

constexpr const char* kSweep =
    "nodes,algo,size_bytes,time_us,error\n"
    "1,ring,8,10,\n1,tree,8,8,\n1,ring,1024,20,\n1,tree,1024,25,\n"
    "2,ring,8,,does not fit\n2,tree,8,9,\n2,ring,1024,22,\n2,tree,1024,26,\n";
constexpr const char* kMeasured =
    R"({"operation": "all_reduce", "ranks": 8, "cluster": "c", "rows": [)"
    R"({"size_bytes": 8, "algorithm": "Ring", "busbw_gb_per_s": 1, "time_us": 4,)"
    R"( "time_low_us": 3, "time_high_us": 6, "measured_time_us": 5, "measured_busbw_gb_per_s": 2},)"
    R"({"size_bytes": 16, "algorithm": "Ring", "busbw_gb_per_s": 1, "time_us": 4,)"
    R"( "time_low_us": 3, "time_high_us": 6, "measured_time_us": null}]})";
constexpr const char* kTrace =
    R"({"traceEvents": [{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 0"}},)"
    R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"passes of chunk 0"}},)"
    R"({"ph":"X","pid":1,"tid":1,"name":"forward of micro-batch 0","ts":0,"dur":5}]})";
constexpr const char* kLinks =
    R"({"traffic": "t", "cluster": "c", "links":)"
    R"( [{"link": "a -> b", "rate_gbit_per_s": 98, "utilisation": 0.5}]})";
constexpr const char* kSamples =
    "time_us,kind,from,to,connection,queue_bytes,paused,limit_gbit_per_s,sent_gbit_per_s\n"
    "1,queue,a,b,,100,false,,\n1,rate,c,d,0,,,100,99\n2,rate,c,d,0,,,50,40\n";
constexpr const char* kMemory =
    "rank,position,moment,weights_gib,activations_gib\n0,0,forward,4,1\n0,1,backward,4,2\n";

struct Drawing {
  const char* arguments;
  const char* input;
};

TEST_CASE("every kind of picture is drawn from what the commands write") {
  if (!check("a.svg").empty()) {
    return;  // No matplotlib, which the test above is about.
  }
  const Drawing drawings[] = {
      {"--kind lines --x nodes --y time_us --by algo --where size_bytes=8", kSweep},
      {"--kind bars --x nodes --y time_us --by algo,size_bytes --name algo=tree=Tree", kSweep},
      {"--kind heatmap --x size_bytes --y nodes --value time_us --where algo=ring", kSweep},
      {"--kind heatmap --x size_bytes --y nodes --value algo --where algo=ring", kSweep},
      {"--kind algorithms --by algo --where nodes=1", kSweep},
      {"", kMeasured},
      {"--kind measured", kMeasured},
      {"", kTrace},
      {"", kLinks},
      {"", kSamples},
      {"", kMemory},
      {"", "port,to,wire_bytes,paused_us\na,b,1000,3\n"},
      {"", "# title: a table\nx,y\n1,2\n3,4\n"},
      {"", "case,class,measured_us,predicted_us,low_us,high_us\na,pcie,3,4,2,6\nb,pcie,9,8,7,9\n"}};
  for (const Drawing& drawing : drawings) {
    INFO(drawing.arguments << "\n" << drawing.input);
    const ProgramResult result = plot(drawing.arguments, drawing.input);
    REQUIRE(result.error.empty());
    REQUIRE(result.status == 0);
  }
}

TEST_CASE("JSON and CSV of every command are drawn without an option", "[long]") {
  if (!check("a.svg").empty()) {
    return;
  }
  const ScratchFolder folder;
  const std::string a = (folder.path() / "a.json").string();
  const std::vector<std::vector<std::string>> commands{
      {"step", "--cluster", "dgx-h100", "--nodes", "1", "--workload", "llama-3-8b"},
      {"collective", "all_reduce", "--cluster", "dgx-h100", "--nodes", "1", "-b", "1M", "-e", "2M"},
      {"collective", "all_reduce", "--cluster", "dgx-h100", "--nodes", "2", "-b", "1M", "-e", "1M",
       "--groups", "4"},
      {"explain", "collective", "all_reduce", "--cluster", "dgx-h100", "--nodes", "1", "-b", "1M",
       "-e", "1M"},
      {"traffic", "incast", "--cluster", "fat-tree-k8-100g"},
      {"compare", a, a},
      {"cost", "--cluster", "dgx-h100"},
      {"transfer", "--cluster", "dgx-h100", "--from", "server0/gpu0", "--to", "server0/gpu1"}};
  std::vector<std::string> first = commands[1];
  first.insert(first.end(), {"--format", "json", "--output", a});
  REQUIRE(run_program(first, source_dir()).status == 0);
  for (std::vector<std::string> command : commands) {
    for (const char* const format : {"json", "csv"}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--format", format});
      INFO(command[0] << " " << format);
      const ProgramResult written = run_program(arguments, source_dir());
      REQUIRE(written.status == 0);
      const ProgramResult drawn = plot("", written.output);
      REQUIRE(drawn.error.empty());
      REQUIRE(drawn.status == 0);
    }
  }
}

TEST_CASE("what cannot be drawn is one line and status 2") {
  if (!check("a.svg").empty()) {
    return;
  }
  const auto error_of = [](const std::string& arguments, const std::string& input) {
    const ProgramResult result = plot(arguments, input);
    REQUIRE(result.status == 2);
    REQUIRE(result.output.empty());
    return result.error;
  };
  REQUIRE(error_of("", "") ==
          "tools/plot: input: expected a JSON object or a CSV table, found nothing\n");
  REQUIRE(error_of("", "{\n\"a\": }").rfind("tools/plot: line 2: expected JSON, found ", 0) == 0);
  REQUIRE(error_of("", "x,y\n1,2\n3\n") == "tools/plot: line 3: expected 2 cells, found 1\n");
  REQUIRE(error_of("--kind lines --x x --y y", "x,y\n1,two\n") ==
          "tools/plot: line 2: expected a number as \"y\", found \"two\"\n");
  REQUIRE(error_of("--kind lines --x nodes --y times", kSweep)
              .rfind("tools/plot: header: expected a column \"times\", found \"nodes\"", 0) == 0);
  REQUIRE(error_of("--kind lines --x nodes --y time_us", kSweep)
              .rfind("tools/plot: line 3: expected one row for \"nodes\" 1", 0) == 0);
  REQUIRE(error_of("--kind lines --x nodes --y time_us --where algo=star", kSweep) ==
          "tools/plot: no row is left by \"algo\"\n");
  REQUIRE(error_of("--kind pie", kSweep).find("invalid choice: 'pie'") != std::string::npos);
  REQUIRE(error_of("--tracks memory", kTrace).rfind("tools/plot: --tracks: expected", 0) == 0);
}

TEST_CASE("a table to read is made of one of many columns") {
  const ScratchFolder folder;
  folder.write("input", kSweep);
  std::filesystem::create_directory_symlink(source_dir() / "tools", folder.path() / "tools");
  const ProgramResult table = run_shell(
      "tools/pivot input --rows algo,nodes --columns size_bytes --values time_us --digits 3 "
      "--name algo=algorithm --relative first",
      folder.path());
  REQUIRE(table.error.empty());
  REQUIRE(table.output ==
          "algorithm  nodes   8 B  1 KiB\n"
          "ring       1      1.00   2.00\n"
          "tree       1      1.00   3.12\n"
          "ring       2         -      -\n"
          "tree       2      1.00   2.89\n");
  const ProgramResult twice = run_shell(
      "tools/pivot input --rows algo --columns size_bytes --values time_us", folder.path());
  REQUIRE(twice.status == 2);
  REQUIRE(
      twice.error ==
      "tools/pivot: line 6: expected one row of the input for each cell (--where), found two\n");
}

}  // namespace
}  // namespace trainyard
