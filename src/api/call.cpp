// SPDX-License-Identifier: Apache-2.0
#include "api/call.h"

#include <spdlog/fmt/fmt.h>

#include <exception>
#include <mutex>
#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "cli/common/commands.h"
#include "cli/common/option_table.h"
#include "cli/common/options.h"
#include "cli/common/program_end.h"
#include "cli/program.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/crash_advice.h"
#include "sim/host/run_host.h"

namespace trainyard {
namespace {

class CallHost final : public RunHost, private ControlCallback {
 public:
  explicit CallHost(const CallWatch& watch) : watch_(watch) {}

  void log(std::string_view line) override {
    const std::scoped_lock lock(mutex_);
    lines_.emplace_back(line);
  }
  void show_progress(std::string_view line) override { watch_.progress(line); }
  [[nodiscard]] bool wants_progress() const override { return watch_.progress != nullptr; }
  [[nodiscard]] bool wants_end() const override { return watch_.stop.stop_requested(); }
  [[nodiscard]] ControlCallback* control() override {
    is_control_taken_ = true;
    return watch_.control ? this : nullptr;
  }
  [[nodiscard]] bool wants_one_thread() const override { return watch_.control != nullptr; }
  // Whether the run has asked for the control, where there is one.
  [[nodiscard]] bool is_control_taken() const { return is_control_taken_ || !watch_.control; }

  [[nodiscard]] std::vector<std::string> lines() && { return std::move(lines_); }

 private:
  ControlPace pace(const ControlEvent& event) override { return watch_.control(event); }

  const CallWatch& watch_;
  bool is_control_taken_ = false;
  std::mutex mutex_;  // Guards the lines.
  std::vector<std::string> lines_;
};

// Throws what the caller gets for what a command threw.
[[noreturn]] void fail(std::exception_ptr thrown) {
  if (const std::optional<std::string> line = user_mistake(thrown)) {
    throw ConfigError(one_line(*line));
  }
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const RunCancelled&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw std::logic_error(fmt::format("{}internal error: {}", crash_advice(), error.what()));
  }
}

void add_rows(const Options& rows, bool are_arguments, std::vector<CallOption>& options) {
  for (const Option& row : rows) {
    std::vector<std::string> choices;
    std::istringstream words{std::string(row.traits.choices)};
    for (std::string word; std::getline(words, word, '|');) {
      choices.push_back(word);
    }
    options.push_back({.name = std::string(row.name),
                       .value = std::string(row.value),
                       .help = std::string(row.help),
                       .choices = std::move(choices),
                       .is_argument = are_arguments,
                       .repeats = row.traits.repeats});
  }
}

CallCommand described(const Command& command, const std::string& name) {
  CallCommand row{.name = name, .summary = std::string(command.summary), .options = {}};
  add_rows(command.arguments, true, row.options);
  add_rows(command.options, false, row.options);
  return row;
}

}  // namespace

CallOutcome run_call(std::span<const std::string> words, const CallWatch& watch) {
  CallHost host(watch);
  const HostScope scope(&host);
  CallOutcome outcome;
  KeptResult kept;
  try {
    std::ostringstream out;
    end_if_cancelled();
    outcome.status = run_words(words, out, &kept);
    outcome.text = std::move(out).str();
    if (!host.is_control_taken()) {
      throw ConfigError(
          "--control: expected a file with \"algorithm: callback\" beside a control that is a "
          "function, found none");
    }
  } catch (...) {
    fail(std::current_exception());
  }
  if (kept.rendered) {
    outcome.rendered = [rendered = std::move(kept.rendered)](std::string_view form) {
      const std::optional<Format> format = parse_format(form);
      CHECK(format.has_value(), "forms are those of --format");
      return rendered(*format);
    };
  }
  outcome.log = std::move(host).lines();
  return outcome;
}

int run_whole_program(int argc, char** argv) {
  return run_process(argc, argv);
}

std::vector<CallCommand> call_commands() {
  std::vector<CallCommand> rows;
  for (const Command& command : all_commands()) {
    if (command.parts.empty()) {
      rows.push_back(described(command, std::string(command.name)));
    }
    for (const Command& part : command.parts) {
      rows.push_back(described(part, std::string(part.form)));
    }
  }
  return rows;
}

}  // namespace trainyard
