// SPDX-License-Identifier: Apache-2.0
#include "cli/common/html_output.h"

#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <filesystem>

#include "cli/common/common.h"
#include "report/formats/output.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr const char* kDebianFile = "/usr/share/javascript/d3/d3.min.js";
constexpr std::size_t kMaxLibraryBytes = std::size_t{4} << 20U;

std::string load_library() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program changes the environment.
  const char* const named = std::getenv("TRAINYARD_D3");
  const std::string file = named != nullptr ? named : kDebianFile;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    throw ConfigError(fmt::format(
        "--report: expected the charting library d3 (Debian package libjs-d3), found no {}", file));
  }
  std::string text = read_file(file, kMaxLibraryBytes);
  if (text.find("version:\"3.") == std::string::npos ||
      text.find("</script") != std::string::npos) {
    throw ConfigError(
        fmt::format("--report: expected version 3 of d3, minified, found {} of another", file));
  }
  return text;
}

}  // namespace

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

ResultTarget result_target(const OptionReader& reader) {
  ResultTarget target{.format = output_format(reader),
                      .output = output_file(reader, "output"),
                      .report = html_target(reader),
                      .kept = reader.kept()};
  check_distinct_files({{"output", target.output}, {"report", reader.text("report")}});
  return target;
}

void keep_result(KeptResult* kept, const Document& document) {
  if (kept != nullptr) {
    kept->rendered = [document](Format format) { return render(document, format); };
  }
}

void write_result(const ResultTarget& target, const Document& document, std::ostream& out,
                  const std::function<HtmlReport()>& make_page) {
  if (target.report) {
    write_html(*target.report, make_page ? make_page() : html_page(document));
  }
  keep_result(target.kept, document);
  write_output(target.output, render(document, target.format), out);
}

}  // namespace trainyard
