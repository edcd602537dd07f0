// SPDX-License-Identifier: Apache-2.0
// The public header on top of one call (api/call.h): options as words, results by their paths.
#include <trainyard/trainyard.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>

#include "api/call.h"
#include "sim/config_error.h"
#include "sim/host/run_host.h"

namespace trainyard {
inline namespace v0 {
namespace {

using Json = nlohmann::ordered_json;

// "--nodes" of "--nodes: expected a whole number, found "x"". Places may have colons themselves.
std::string place_in(std::string_view line) {
  constexpr std::string_view kExpected = ": expected ";
  if (line.starts_with(kExpected.substr(2))) {
    return "";
  }
  const std::size_t expected = line.find(kExpected);
  const std::size_t end = expected != std::string_view::npos ? expected : line.find(": ");
  return std::string(line.substr(0, end == std::string_view::npos ? 0 : end));
}

Value value_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
      return {};
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return json.get<std::int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get<std::string>();
    case Json::value_t::object:
    case Json::value_t::array:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      return json.dump();
  }
  return {};
}

std::string shortest(double value) {
  std::array<char, 32> text{};  // The longest shortest form of a double has 24 characters.
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

// The part of `json` at a path, or nothing.
const Json* find_at(const Json& json, std::string_view path) {
  const Json* at = &json;
  while (!path.empty() && at != nullptr) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const std::string_view key = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (at->is_array()) {
      std::size_t index = 0;
      const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool is_there =
          error == std::errc() && rest == key.data() + key.size() && index < at->size();
      at = is_there ? &(*at)[index] : nullptr;
    } else {
      const auto found = at->find(std::string(key));
      at = at->is_object() && found != at->end() ? &*found : nullptr;
    }
  }
  return at;
}

FlowSignal signal_of(const ControlEvent& event) {
  constexpr std::array kKinds{FlowSignal::Kind::Start, FlowSignal::Kind::Ack,
                              FlowSignal::Kind::Loss, FlowSignal::Kind::Timeout};
  return {.kind = kKinds.at(static_cast<std::size_t>(event.kind)),
          .flow = event.flow,
          .now_ps = event.now_ps,
          .line_bits_per_second = event.line_bits_per_second,
          .base_rtt_ps = event.base_rtt_ps,
          .packet_bytes = event.packet_bytes,
          .rtt_ps = event.rtt_ps,
          .acked = event.acked,
          .next = event.next,
          .size_bytes = event.size_bytes,
          .is_marked = event.is_marked};
}

CallWatch watch_of(const Watch& watch) {
  CallWatch made{.stop = watch.stop, .progress = watch.progress, .control = {}};
  if (watch.control) {
    made.control = [&control = watch.control](const ControlEvent& event) {
      const FlowPace pace = control(signal_of(event));
      return ControlPace{.window_bytes = std::max<std::int64_t>(0, pace.window_bytes),
                         .bits_per_second = std::max<std::int64_t>(0, pace.bits_per_second)};
    };
  }
  return made;
}

}  // namespace

struct Result::Content {
  CallOutcome outcome;
  std::string command;
  mutable std::once_flag is_parsed = {};
  mutable Json json = {};

  [[nodiscard]] std::string in_form(std::string_view form) const {
    if (!outcome.rendered) {
      throw Error(command + ": expected a command with --format " + std::string(form) +
                  ", found one without");
    }
    return outcome.rendered(form);
  }
  [[nodiscard]] const Json& at(std::string_view path) const {
    std::call_once(is_parsed, [this] { json = Json::parse(in_form("json")); });
    const Json* const found = find_at(json, path);
    if (found == nullptr) {
      throw Error(std::string(path) + ": expected a path in the result of " + command +
                  ", found none of that name");
    }
    return *found;
  }
};

Error::Error(const std::string& line) : std::runtime_error(line), place_(place_in(line)) {}
Error::~Error() = default;
Cancelled::Cancelled() : std::runtime_error("cancelled") {}
Cancelled::~Cancelled() = default;

Option::Option(std::string name) : word_("--" + std::move(name)) {}
Option::Option(std::string name, std::string value)
    : word_("--" + std::move(name) + "=" + std::move(value)) {}
Option::Option(std::string name, const char* value) : Option(std::move(name), std::string(value)) {}
Option::Option(std::string name, std::int64_t value)
    : Option(std::move(name), std::to_string(value)) {}
Option::Option(std::string name, int value) : Option(std::move(name), std::int64_t{value}) {}
Option::Option(std::string name, double value) : Option(std::move(name), shortest(value)) {}

Result::Result(std::unique_ptr<const Content> content) : content_(std::move(content)) {}
Result::Result(Result&& other) noexcept = default;
Result& Result::operator=(Result&& other) noexcept = default;
Result::~Result() = default;

int Result::status() const {
  return content_->outcome.status;
}
const std::string& Result::text() const {
  return content_->outcome.text;
}
std::string Result::csv() const {
  return content_->in_form("csv");
}
std::string Result::json() const {
  return content_->in_form("json");
}
bool Result::has_json() const {
  return content_->outcome.rendered != nullptr;
}
const std::vector<std::string>& Result::log() const {
  return content_->outcome.log;
}

double Result::number(std::string_view path) const {
  const Json& found = content_->at(path);
  if (!found.is_number()) {
    throw Error(std::string(path) + ": expected a number, found " + found.dump());
  }
  return found.get<double>();
}

Value Result::value(std::string_view path) const {
  return value_of(content_->at(path));
}

Table Result::table(std::string_view path) const {
  const Json& found = content_->at(path);
  Table table;
  std::map<std::string, std::size_t> positions;
  for (const Json& item : found) {
    if (!found.is_array() || !item.is_object()) {
      throw Error((path.empty() ? "the result" : std::string(path)) +
                  ": expected an array of objects, found another value");
    }
    for (const auto& [key, value] : item.items()) {
      if (positions.try_emplace(key, table.columns.size()).second) {
        table.columns.push_back(key);
      }
    }
  }
  for (const Json& item : found) {
    std::vector<Value> row(table.columns.size());
    for (const auto& [key, value] : item.items()) {
      row[positions.at(key)] = value_of(value);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Result run(const std::vector<std::string>& words, const Watch& watch) {
  try {
    auto content = std::make_unique<Result::Content>();
    content->outcome = run_call(words, watch_of(watch));
    content->command = words.empty() ? "trainyard" : words.front();
    return Result(std::move(content));
  } catch (const ConfigError& error) {
    throw Error(error.what());
  } catch (const RunCancelled&) {
    throw Cancelled();
  }
}

Result run(const std::string& command, const std::vector<std::string>& arguments,
           const OptionList& options, const Watch& watch) {
  std::vector<std::string> words;
  std::istringstream parts(command);
  for (std::string part; parts >> part;) {
    words.push_back(part);
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (const Option& option : options) {
    words.push_back(option.word());
  }
  return run(words, watch);
}

Cluster::Cluster(std::string name_or_file, int nodes, std::vector<std::string> settings) {
  options_.emplace_back("cluster", std::move(name_or_file));
  if (nodes != 0) {
    options_.emplace_back("nodes", nodes);
  }
  for (std::string& setting : settings) {
    options_.emplace_back("set", std::move(setting));
  }
}

Result Cluster::collective(const std::string& operation, const OptionList& options,
                           const Watch& watch) const {
  return run("collective", {operation}, options, watch);
}
Result Cluster::step(const std::string& workload, const OptionList& options,
                     const Watch& watch) const {
  OptionList all{{"workload", workload}};
  all.insert(all.end(), options.begin(), options.end());
  return run("step", {}, all, watch);
}
Result Cluster::search(const std::string& workload, const OptionList& options,
                       const Watch& watch) const {
  OptionList all{{"workload", workload}};
  all.insert(all.end(), options.begin(), options.end());
  return run("search", {}, all, watch);
}
Result Cluster::traffic(const std::string& file, const OptionList& options,
                        const Watch& watch) const {
  return run("traffic", {file}, options, watch);
}
Result Cluster::run(const std::string& command, const std::vector<std::string>& arguments,
                    const OptionList& options, const Watch& watch) const {
  OptionList all = options_;
  all.insert(all.end(), options.begin(), options.end());
  return v0::run(command, arguments, all, watch);
}

int run_program(int argc, char** argv) {
  return run_whole_program(argc, argv);
}

std::vector<CommandRow> commands() {
  std::vector<CommandRow> rows;
  for (CallCommand& command : call_commands()) {
    CommandRow row{.name = std::move(command.name), .summary = std::move(command.summary)};
    for (CallOption& option : command.options) {
      row.options.push_back({.name = std::move(option.name),
                             .value = std::move(option.value),
                             .help = std::move(option.help),
                             .choices = std::move(option.choices),
                             .is_argument = option.is_argument,
                             .repeats = option.repeats});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace v0
}  // namespace trainyard
