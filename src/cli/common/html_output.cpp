// SPDX-License-Identifier: Apache-2.0
#include "cli/common/html_output.h"

#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "cli/common/common.h"
#include "report/formats/output.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr const char* kDebianFile = "/usr/share/javascript/d3/d3.min.js";
constexpr std::size_t kMostLibraryBytes = std::size_t{4} << 20U;

std::string load_library() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program changes the environment.
  const char* const named = std::getenv("TRAINYARD_D3");
  const std::string file = named != nullptr ? named : kDebianFile;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    throw ConfigError(fmt::format(
        "--report: expected the charting library d3 (Debian package libjs-d3), found no {}", file));
  }
  std::string text = read_file(file, kMostLibraryBytes);
  if (text.find("version:\"3.") == std::string::npos ||
      text.find("</script") != std::string::npos) {
    throw ConfigError(
        fmt::format("--report: expected version 3 of d3, minified, found {} of another", file));
  }
  return text;
}

}  // namespace

Options report_options() {
  return {{"report", "FILE.html",
           "the result as a page that opens without a network; needs libjs-d3", kResult}};
}

std::optional<HtmlTarget> html_target(const OptionReader& reader) {
  const std::optional<std::string> file = output_file(reader, "report");
  if (!file) {
    return std::nullopt;
  }
  return HtmlTarget{.file = *file, .library = load_library()};
}

void write_html(const HtmlTarget& target, const HtmlReport& report) {
  write_file(target.file, render_html(report, target.library));
}

HtmlTable html_inputs(const RunInputs& inputs) {
  Table table({{.name = "key", .key = "key", .align = Align::Left},
               {.name = "value", .key = "value", .align = Align::Left}});
  for (const std::string& setting : inputs.settings) {
    const std::size_t sign = setting.find('=');
    table.add_row({Cell::of("--set " + setting.substr(0, sign)),
                   Cell::of(sign == std::string::npos ? "" : setting.substr(sign + 1))});
  }
  for (const auto& [option, value] : inputs.options) {
    table.add_row({Cell::of(option), Cell::of(value)});
  }
  for (const auto& [resource, value] : inputs.resources) {
    table.add_row({Cell::of(resource), Cell::of(value)});
  }
  return {.title = "Inputs",
          .note = "What was set, and the rates of the machine's links in each direction.",
          .table = std::move(table)};
}

HtmlTable html_estimates(const Cluster& cluster) {
  Table table({{.name = "part", .key = "part", .align = Align::Left},
               {.name = "value", .key = "value", .align = Align::Left},
               {.name = "source", .key = "source", .align = Align::Left}});
  for (const std::string& line : cluster.estimates) {  // "PART: KEY = VALUE: SOURCE"
    const std::size_t first = line.find(": ");
    const std::size_t second = line.find(": ", first + 2);
    table.add_row({Cell::of(line.substr(0, first)),
                   Cell::of(line.substr(first + 2, second - first - 2)),
                   Cell::of(second == std::string::npos ? "" : line.substr(second + 2))});
  }
  return {.title = "Estimates",
          .note =
              "Values of the cluster that nobody has measured or published. All others are from "
              "datasheets and measurements; trainyard topology --format json has every source.",
          .table = std::move(table)};
}

std::string short_time(SimTime time) {
  const double seconds = time.seconds();
  return seconds >= 0.1    ? fmt::format("{:.4g} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.4g} ms", seconds * 1e3)
                           : fmt::format("{:.4g} us", seconds * 1e6);
}

}  // namespace trainyard
