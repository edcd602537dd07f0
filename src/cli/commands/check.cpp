// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/html_output.h"
#include "cli/common/options.h"
#include "report/formats/document.h"
#include "report/formats/output.h"
#include "sim/config.h"
#include "sim/printable.h"
#include "topology/cluster/cluster.h"
#include "topology/lint/lint.h"

namespace trainyard {
namespace {

constexpr std::string_view kCheckExample = R"(
A file is a cluster, a server or a part of the hardware catalogue, which its keys tell; or give the
name of a cluster in configs/clusters. Without any, all of configs is checked. What is found is a
line each:
FILE: SEVERITY: CODE: MESSAGE (docs/commands/check.md explains the codes). Notes and warnings are
no failure.
Exit status: 0, 1 if there is an error (with --strict, a warning), 2 if a file cannot be read.

Examples:
  trainyard check
  trainyard check my-cluster.yaml --strict
  trainyard check dgx-h100 --nodes 64 --pull leaf0,spine1
)";

// The folders of configs whose files are checked, which name the kinds of these.
constexpr std::array<std::string_view, 3> kKinds{"clusters", "hardware", "servers"};

class Findings {
 public:
  void add(std::string_view place, Severity severity, std::string_view code,
           std::string_view message) {
    text_ += fmt::format("{}: {}: {}: {}\n", escaped(place), to_string(severity), code,
                         escaped(message));
    table_.add_row({Cell::of(escaped(place)), Cell::of(to_string(severity)), Cell::of(code),
                    Cell::of(escaped(message))});
    ++counts_.at(static_cast<std::size_t>(severity));
  }
  // A mistake with its place in front, "FILE:LINE:COLUMN: MESSAGE", or without.
  void add_mistake(const std::string& file, std::string_view text) {
    std::size_t end = 0;
    if (text.starts_with(file + ":")) {
      end = text.find(": ", file.size());
    }
    if (end == 0 || end == std::string_view::npos) {
      add(file, Severity::Error, "config", text);
    } else {
      add(text.substr(0, end), Severity::Error, "config", text.substr(end + 2));
    }
  }
  [[nodiscard]] int count(Severity severity) const {
    return counts_.at(static_cast<std::size_t>(severity));
  }
  // A line for each, and the counts.
  [[nodiscard]] std::string text(int files) const {
    return text_ + fmt::format("{} checked: {}, {}, {}\n", counted(files, "file"),
                               counted(count(Severity::Error), "error"),
                               counted(count(Severity::Warning), "warning"),
                               counted(count(Severity::Note), "note"));
  }
  [[nodiscard]] Document document(int files) const {
    Document document{.title = "Check", .subtitle = counted(files, "file")};
    document.add_table("", table_, Shown::All, "findings");
    const auto add = [&](std::string key, std::string label, int value) {
      document.add(Figure{.key = std::move(key),
                          .cell = Cell::count(value),
                          .label = std::move(label),
                          .shown = Shown::Json | Shown::Page});
    };
    add("files", "files", files);
    add("errors", "errors", count(Severity::Error));
    add("warnings", "warnings", count(Severity::Warning));
    add("notes_found", "notes", count(Severity::Note));
    return document;
  }

 private:
  std::string text_;
  Table table_{{column("place", "place", Align::Left), column("severity", "severity", Align::Left),
                column("code", "code", Align::Left), column("message", "message", Align::Left)}};
  std::array<int, 3> counts_ = {};
};

// Tells the kind by the folder or, elsewhere, by a key that only files of one kind have; empty if
// there is none.
std::string_view kind_of(const std::filesystem::path& file) {
  const std::string folder = std::filesystem::absolute(file).parent_path().filename().string();
  if (const auto kind = std::ranges::find(kKinds, folder); kind != kKinds.end()) {
    return *kind;
  }
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  const auto has = [&](std::string_view key) { return root.is_map() && root.optional(key); };
  if (has("server") || has("servers") || has("nodes")) {
    return "clusters";
  }
  for (const std::string_view key : {"gpus", "links", "nics", "switches", "cpus"}) {
    if (has(key) && root.required(key).is_map()) {
      return "hardware";
    }
  }
  return has("template") ? "servers" : "";
}

void require_readable(const std::filesystem::path& file) {
  std::error_code error;  // Ignored: a path that fails here is refused below.
  if (std::filesystem::is_directory(file, error)) {
    throw ConfigError(fmt::format("{}: expected a file, found a directory", file.string()));
  }
  if (!std::ifstream(file)) {
    throw ConfigError(fmt::format("{}: cannot be read", file.string()));
  }
}

// One of it, which no fabric joins to others.
Cluster cluster_of_server(const std::filesystem::path& file, const Catalogue& catalogue) {
  const std::string name = nlohmann::json(std::filesystem::absolute(file).string()).dump();
  ConfigDocument document = ConfigDocument::parse(
      fmt::format("name: check\nsource: the file\nnodes: 1\nserver: {}\n", name), file.string());
  return build_cluster(document, catalogue, {});
}

void report(const std::filesystem::path& file, const Cluster& cluster, Findings& findings) {
  for (const std::string_view warning : cluster.warnings) {
    constexpr std::string_view kFaults = "faults: ";
    const bool is_fault = warning.starts_with(kFaults);
    findings.add(file.string(), Severity::Warning, is_fault ? "fault" : "cluster",
                 is_fault ? warning.substr(kFaults.size()) : warning);
  }
  for (const Finding& finding : lint(cluster)) {
    findings.add(file.string(), finding.severity, finding.code, finding.message);
  }
}

void check_file(const std::filesystem::path& file, const Catalogue& catalogue,
                const ClusterOverrides& overrides, Findings& findings) {
  try {
    const std::string_view kind = kind_of(file);
    if (kind == "clusters") {
      report(file, load_cluster(file, catalogue, overrides), findings);
    } else if (kind == "servers") {
      report(file, cluster_of_server(file, catalogue), findings);
    } else if (kind == "hardware") {  // Its parts name those of its neighbours.
      (void)Catalogue::load(file.parent_path());
    } else {
      findings.add(file.string(), Severity::Error, "config",
                   "expected a cluster (with the key server), a server (template) or a part of "
                   "the catalogue (gpus, links, nics, switches), found none of them");
    }
  } catch (const ConfigError& error) {
    findings.add_mistake(file.string(), error.what());
  }
}

std::vector<std::filesystem::path> shipped_files() {
  std::vector<std::filesystem::path> files;
  for (const std::string_view folder : kKinds) {
    if (!std::filesystem::is_directory(configs_folder() / folder)) {
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(configs_folder() / folder)) {
      if (entry.path().extension() == ".yaml") {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files);
  return files;
}

int run_check(const OptionReader& reader, std::ostream& out) {
  const ResultTarget target = result_target(reader);
  const ClusterOverrides overrides = cluster_overrides(reader);
  const std::vector<std::string> named = reader.texts("file");
  std::vector<std::filesystem::path> files;
  for (const std::string& name : named) {
    files.push_back(find_config("clusters", name));
  }
  if (named.empty() || reader.given("all")) {
    const std::vector<std::filesystem::path> shipped = shipped_files();
    files.insert(files.end(), shipped.begin(), shipped.end());
  }
  for (const std::filesystem::path& file : files) {
    require_readable(file);
  }
  const Catalogue& catalogue = load_default_catalogue();
  Findings findings;
  for (const std::filesystem::path& file : files) {
    check_file(file, catalogue, overrides, findings);
  }
  const int count = static_cast<int>(files.size());
  const Document document = findings.document(count);
  if (target.report) {
    write_html(*target.report, html_page(document));
  }
  keep_result(target.kept, document);
  write_output(
      target.output,
      target.format == Format::Table ? findings.text(count) : render(document, target.format), out);
  const bool failed = findings.count(Severity::Error) > 0 ||
                      (reader.given("strict") && findings.count(Severity::Warning) > 0);
  return failed ? 1 : 0;
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .form = "check FILE...",
          .summary = "what is wrong, or likely to be, with files of clusters and parts",
          .usage = "check [NAME|FILE...] [options]",
          .arguments = {{.name = "file",
                         .traits = {.repeats = true, .role = Role::Input, .names = "clusters"}}},
          .options = joined({Options{{"all", "", "all of configs, beside the files that are named"},
                                     {"strict", "", "warnings are failures"}},
                             override_options(), without("effects", output_options())}),
          .example = kCheckExample,
          .run = run_check};
}

}  // namespace trainyard
