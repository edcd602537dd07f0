// SPDX-License-Identifier: Apache-2.0
#include "calibrate/result_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "calibrate/result_json.h"
#include "calibrate/text.h"
#include "sim/config_error.h"

namespace trainyard::calibrate {
namespace {

constexpr std::string_view kFormat = "trainyard-measurements";
constexpr int kResultSetVersion = 1;

constexpr std::array<std::pair<Status, std::string_view>, 4> kStatuses = {{
    {Status::Measured, "measured"},
    {Status::NotMeasured, "not measured"},
    {Status::Failed, "failed"},
    {Status::TimedOut, "timed out"},
}};

// What libraries and drivers wrote need not be UTF-8.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Result& result) {
  Json samples = Json::array();
  for (const Sample& sample : result.samples) {
    samples.push_back(to_json(sample));
  }
  Json records = Json::array();
  for (const Record& record : result.records) {
    records.push_back(to_json(record));
  }
  return {{"id", result.id},
          {"status", to_string(result.status)},
          {"reason", result.reason},
          {"seconds", result.seconds},
          {"samples", std::move(samples)},
          {"records", std::move(records)}};
}

Json to_json(const ResultSet& set) {
  Json results = Json::array();
  for (const Result& result : set.results) {
    results.push_back(to_json(result));
  }
  return {{"format", kFormat},
          {"version", kResultSetVersion},
          {"backend", set.backend},
          {"started", set.started},
          {"updated", set.updated},
          {"complete", set.complete},
          {"options",
           {{"repetitions", set.repetitions},
            {"warmup", set.warmup},
            {"ranks", set.ranks},
            {"only", set.only}}},
          {"machine", to_json(set.machine)},
          {"measurements", std::move(results)}};
}

Result read_result(const Json& json, const std::string& place) {
  const ObjectReader reader(json, place,
                            {"id", "status", "reason", "seconds", "samples", "records"});
  Result result;
  result.id = reader.text("id");
  result.reason = reader.text("reason");
  result.seconds = reader.number("seconds");
  const std::string status = reader.text("status");
  const auto* const found =
      std::find_if(kStatuses.begin(), kStatuses.end(),
                   [&status](const auto& each) { return each.second == status; });
  if (found == kStatuses.end()) {
    reader.fail("status", "measured, not measured, failed or timed out");
  }
  result.status = found->first;
  if (result.id.empty()) {
    reader.fail("id", "an identifier");
  }
  if (result.reason.empty() != (result.status == Status::Measured)) {
    reader.fail("reason", "a reason where, and only where, it is not measured");
  }
  for (const Json& sample : reader.array("samples")) {
    result.samples.push_back(
        read_sample(sample, fmt::format("{}.samples[{}]", place, result.samples.size())));
  }
  for (const Json& record : reader.array("records")) {
    result.records.push_back(
        read_record(record, fmt::format("{}.records[{}]", place, result.records.size())));
  }
  if (result.status == Status::Measured && result.samples.empty()) {
    reader.fail("samples", "at least one of a measurement that was taken");
  }
  return result;
}

void read_options(const Json& json, ResultSet& set) {
  const ObjectReader reader(json, "options", {"repetitions", "warmup", "ranks", "only"});
  set.repetitions = static_cast<int>(reader.integer("repetitions", 30));
  set.warmup = static_cast<int>(reader.integer("warmup", 1));
  set.ranks = static_cast<int>(reader.integer("ranks", 1));
  for (const Json& pattern : reader.array("only")) {
    if (!pattern.is_string()) {
      reader.fail("only", "texts");
    }
    set.only.push_back(pattern.get<std::string>());
  }
}

ResultSet read_set(const Json& json) {
  const ObjectReader reader(json, "measurement set",
                            {"format", "version", "backend", "started", "updated", "complete",
                             "options", "machine", "measurements"});
  if (reader.text("format") != kFormat) {
    reader.fail("format", fmt::format("\"{}\"", kFormat));
  }
  if (reader.integer("version", 1) != kResultSetVersion) {
    reader.fail("version", fmt::format("{}", kResultSetVersion));
  }
  ResultSet set;
  set.backend = reader.text("backend");
  set.started = reader.text("started");
  set.updated = reader.text("updated");
  set.complete = reader.boolean("complete");
  read_options(reader.value("options"), set);
  set.machine = read_machine(reader.value("machine"), "machine");
  for (const Json& result : reader.array("measurements")) {
    Result read = read_result(result, fmt::format("measurements[{}]", set.results.size()));
    for (const Result& before : set.results) {
      if (before.id == read.id) {
        throw std::runtime_error(
            fmt::format("measurements[{}].id: expected each once, found {} again",
                        set.results.size(), in_quotes(read.id)));
      }
    }
    set.results.push_back(std::move(read));
  }
  return set;
}

[[noreturn]] void fail_write(const std::filesystem::path& file, const std::string& temporary) {
  const std::string why = std::strerror(errno);
  (void)::unlink(temporary.c_str());
  throw ConfigError(fmt::format("{}: cannot be written: {}", one_line(file.string()), why));
}

std::string different(std::string_view what, const std::string& old, const std::string& now) {
  return old == now ? ""
                    : fmt::format("expected {} {}, found {}", what, in_quotes(now), in_quotes(old));
}

std::string devices(const Machine& machine) {
  std::string all;
  for (const Gpu& gpu : machine.gpus) {
    all += (all.empty() ? "" : " ") + gpu.uuid;
  }
  return all;
}

}  // namespace

std::string why_another_run(const ResultSet& old, const ResultSet& now) {
  for (const std::string& reason : {
           different("the backend", old.backend, now.backend),
           different("the host", old.machine.hostname, now.machine.hostname),
           different("the GPUs", devices(old.machine), devices(now.machine)),
           different("the driver", old.machine.driver, now.machine.driver),
           different("the CUDA runtime", old.machine.cuda_runtime, now.machine.cuda_runtime),
           different("NCCL", old.machine.nccl, now.machine.nccl),
           different("cuBLASLt", old.machine.cublaslt, now.machine.cublaslt),
           different("--repetitions", std::to_string(old.repetitions),
                     std::to_string(now.repetitions)),
           different("--warmup", std::to_string(old.warmup), std::to_string(now.warmup)),
           different("--ranks", std::to_string(old.ranks), std::to_string(now.ranks)),
           different("--only", fmt::format("{}", fmt::join(old.only, ",")),
                     fmt::format("{}", fmt::join(now.only, ","))),
       }) {
    if (!reason.empty()) {
      return reason;
    }
  }
  return "";
}

void write_result_set(const std::filesystem::path& file, const ResultSet& set) {
  const std::string text = dumped(to_json(set), 1) + "\n";
  const std::string temporary = fmt::format("{}.{}.partial", file.string(), ::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (descriptor < 0) {
    fail_write(file, temporary);
  }
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) {
      (void)::close(descriptor);
      fail_write(file, temporary);
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  // Before the rename, so that a machine that stops finds the old file or the new one.
  const bool stored = ::fsync(descriptor) == 0;
  if (::close(descriptor) != 0 || !stored ||
      ::rename(temporary.c_str(), file.string().c_str()) != 0) {
    fail_write(file, temporary);
  }
}

ResultSet parse_result_set(const std::string& text, const std::string& name) {
  try {
    return read_set(Json::parse(text));
  } catch (const std::exception& error) {
    throw ConfigError(fmt::format("{}: {}", one_line(name), one_line(error.what())));
  }
}

ResultSet read_result_set(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code error;
  if (!stream || std::filesystem::is_directory(file, error)) {
    throw ConfigError(fmt::format("{}: expected a measurement set, found no file that can be read",
                                  one_line(file.string())));
  }
  return parse_result_set(std::string(std::istreambuf_iterator<char>(stream), {}), file.string());
}

std::string machine_line(const Machine& machine) {
  return dumped({{"machine", to_json(machine)}}, -1) + "\n";
}

std::string sample_line(const Sample& sample) {
  return dumped({{"sample", to_json(sample)}}, -1) + "\n";
}

std::string record_line(const Record& record) {
  return dumped({{"record", to_json(record)}}, -1) + "\n";
}

std::string not_measured_line(const std::string& reason) {
  return dumped({{"not measured", reason}}, -1) + "\n";
}

std::string end_line() {
  return "{\"end\":true}\n";
}

ChildReport parse_child_output(std::string_view output) {
  ChildReport report;
  while (!output.empty()) {
    const std::size_t end = output.find('\n');
    if (end == std::string_view::npos) {
      break;  // It was killed in the middle of a line.
    }
    const Json json = Json::parse(output.substr(0, end), nullptr, false);
    output.remove_prefix(end + 1);
    if (!json.is_object()) {
      throw std::runtime_error("expected JSON, found other lines");
    }
    if (json.contains("sample")) {
      report.samples.push_back(read_sample(json["sample"], "sample"));
    } else if (json.contains("record")) {
      report.records.push_back(read_record(json["record"], "record"));
    } else if (json.contains("machine")) {
      report.machine.push_back(read_machine(json["machine"], "machine"));
    } else if (json.contains("not measured")) {
      report.not_measured = json["not measured"].get<std::string>();
    } else if (json.contains("end")) {
      report.ended = true;
    } else {
      throw std::runtime_error("expected a sample, found " + one_line(json.dump(), 60));
    }
  }
  return report;
}

std::string_view to_string(Status status) {
  for (const auto& [each, name] : kStatuses) {
    if (each == status) {
      return name;
    }
  }
  return "";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace trainyard::calibrate
