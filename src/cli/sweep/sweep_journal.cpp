// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep/sweep_journal.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "report/formats/output.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string first_line(std::uint64_t sweep) {
  return Json{{"sweep", sweep}}.dump() + "\n";
}

std::string checksum_of(std::string_view text) {
  boost::crc_32_type checksum;
  checksum.process_bytes(text.data(), text.size());
  return fmt::format("{:08x}", checksum.checksum());
}

std::string line_of(std::size_t point, const SweepResult& result) {
  // Names of files may be no UTF-8, which JSON is.
  constexpr auto kReplace = Json::error_handler_t::replace;
  Json json{{"point", point}, {"csv", result.csv}, {"error", result.error}};
  json["checksum"] = checksum_of(json.dump(-1, ' ', false, kReplace));
  return json.dump(-1, ' ', false, kReplace) + "\n";
}

// False where the line is damaged: another one than would be written of what it says.
bool add_line(const std::string& line, SweepResults& results) {
  try {
    const Json json = Json::parse(line);
    const auto point = json.at("point").get<std::size_t>();
    SweepResult result{.csv = json.at("csv").get<std::string>(),
                       .error = json.at("error").get<std::string>()};
    if (line_of(point, result) != line + "\n") {
      return false;
    }
    results[point] = std::move(result);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

// Whole lines; what a run that was cut off left of the last one is not a line.
std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    lines.push_back(line);
  }
  return lines;
}

fs::path journal_of(const std::string& output, std::size_t process) {
  return output + ".partial" + (process == 0 ? "" : fmt::format(".{}", process));
}

// Those that are there, by name.
std::vector<fs::path> journals_of(const std::string& output) {
  const fs::path first = journal_of(output, 0);
  const std::string name = first.filename().string();
  std::vector<fs::path> files;
  const fs::path folder = first.has_parent_path() ? first.parent_path() : ".";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string other = entry.path().filename().string();
    const std::string_view rest =
        other.starts_with(name) ? std::string_view(other).substr(name.size()) : "-";
    const bool is_numbered = rest.size() > 1 && rest.front() == '.' &&
                             rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
    if (rest.empty() || is_numbered) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string to_text(const SweepResults& results) {
  std::string text;
  for (const auto& [point, result] : results) {
    text += line_of(point, result);
  }
  return text;
}

SweepResults results_from(const std::string& text) {
  SweepResults results;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    CHECK(add_line(text.substr(begin, end - begin), results), "another process's text is damaged");
    begin = end + 1;
  }
  return results;
}

SweepResults read_journals(const std::string& output, std::uint64_t sweep, bool resumes) {
  SweepResults results;
  for (const fs::path& file : journals_of(output)) {
    if (!resumes) {
      throw ConfigError(
          fmt::format("{}: expected no results of a sweep that was cut off, found some; --resume "
                      "continues with "
                      "them, or remove the file",
                      file.string()));
    }
    const std::vector<std::string> lines = lines_of(file);
    if (!lines.empty() && lines.front() + "\n" != first_line(sweep)) {
      throw ConfigError(fmt::format(
          "{}:1: expected results of this sweep, found those of another one, or of one with other "
          "files; remove the file to begin anew",
          file.string()));
    }
    for (std::size_t index = 1; index < lines.size(); ++index) {
      if (!add_line(lines[index], results)) {
        throw ConfigError(fmt::format(
            "{}:{}: expected the result of a point with its checksum, found {}; remove the line to "
            "run the point again",
            file.string(), index + 1, in_quotes(lines[index])));
      }
    }
  }
  return results;
}

void remove_journals(const std::string& output) {
  for (const fs::path& file : journals_of(output)) {
    fs::remove(file);
  }
}

SweepJournal::SweepJournal(const std::string& output, std::size_t process, std::uint64_t sweep)
    : file_(journal_of(output, process)) {
  const std::vector<std::string> lines = lines_of(file_);
  std::string text = lines.empty() ? first_line(sweep) : "";
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  write_file(file_, text);
  out_.open(file_, std::ios::binary | std::ios::app);
}

void SweepJournal::add(std::size_t point, const SweepResult& result) {
  const std::lock_guard lock(mutex_);
  out_ << line_of(point, result) << std::flush;
  if (!out_) {
    throw ConfigError(fmt::format("{}: cannot be written", file_.string()));
  }
}

}  // namespace trainyard
