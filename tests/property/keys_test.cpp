// SPDX-License-Identifier: Apache-2.0
// Every option, every key of clusters, servers, models, workloads and traffic, and every variable
// of NCCL that is modelled changes a result: keys.runs, beside this file, has a scenario and
// another value for each. Options, keys and variables come from their tables, so that a new one
// needs a line there. keys.runs says how its lines read.
#include "support/catch.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/commands.h"
#include "cli/common/common.h"
#include "cli/common/options.h"
#include "cli/common/runtime.h"
#include "nccl/types/environment.h"
#include "network/traffic/traffic_spec.h"
#include "parallelism/workload/convolutional_workload.h"
#include "parallelism/workload/recommender_workload.h"
#include "parallelism/workload/workload.h"
#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/schema_text.h"
#include "topology/cluster/cluster_keys.h"
#include "topology/server/server_keys.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string>;

struct Change {
  std::string key;
  Words base;
  Words changed;
};

// Holds the lines of keys.runs on one kind of file, or on options or variables.
struct Audit {
  std::vector<Change> changes;
  std::set<std::string> without_result;  // Names and sources, and what is checked or refused.
};

// Words between blanks; what is in single quotes is one.
Words words_of(const std::string& line) {
  static const std::regex kWord("'([^']*)'|([^ ']+)");
  Words words;
  for (std::sregex_iterator at(line.begin(), line.end(), kWord), end; at != end; ++at) {
    const std::string word = (*at)[1].matched ? (*at)[1].str() : (*at)[2].str();
    words.push_back(word.starts_with("@") ? (source_dir() / word.substr(1)).string() : word);
  }
  return words;
}

Words changed(Words words, const std::string& kind, const std::string& key,
              const std::string& change) {
  if (change.starts_with("--")) {
    const Words more = words_of(change);
    words.insert(words.end(), more.begin(), more.end());
  } else if (kind == "variables") {
    words.insert(words.end(), {"--env", key + "=" + change});
  } else {
    words.insert(words.end(), {kind == "traffic" ? "--set-traffic" : "--set", change});
  }
  return words;
}

std::map<std::string, Audit> read_audits() {
  std::ifstream file(source_dir() / "tests/property/keys.runs");
  std::map<std::string, Audit> audits;
  std::string kind;
  Words base;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    const std::string first = line.substr(0, line.find(' '));
    const std::string rest = line.substr(std::min(first.size() + 1, line.size()));
    if (line.starts_with("  ")) {
      const std::string key = line.substr(2, colon - 2);
      audits[kind].changes.push_back({key, base, changed(base, kind, key, line.substr(colon + 2))});
    } else if (first == "kind") {
      kind = rest;
    } else if (first == "run") {
      base = words_of(rest);
    } else if (first == "text" || first == "checked" || first == "elsewhere") {
      const Words keys = words_of(rest.substr(0, rest.find(':')));
      audits[kind].without_result.insert(keys.begin(), keys.end());
    } else {
      INFO(line);
      REQUIRE((line.empty() || first == "#"));
    }
  }
  return audits;
}

struct AuditRun {
  std::string result;
  std::optional<std::string> error;
};

AuditRun audit_run(Words words) {
  const std::vector<Command> commands = all_commands();
  const Command command = *std::ranges::find(commands, words.front(), &Command::name);
  words.erase(words.begin());
  if (command.find("log-level") != nullptr) {
    words.insert(words.end(), {"--log-level", "off"});
  }
  AuditRun outcome;
  std::ostringstream out;
  try {
    OptionReader reader(command, parse_options(command, words).values(), &outcome.result);
    assume_runtime(reader);
    (void)command.run(reader, out);
  } catch (const ConfigError& error) {
    outcome.error = error.what();
  }
  if (outcome.result.empty()) {
    outcome.result = out.str();
  }
  return outcome;
}

// Runs each line once.
std::map<Words, AuditRun> audit_runs(const std::map<std::string, Audit>& audits) {
  std::map<Words, AuditRun> outcomes;
  for (const auto& [kind, audit] : audits) {
    for (const Change& change : audit.changes) {
      outcomes[change.base];
      outcomes[change.changed];
    }
  }
  std::vector<std::pair<const Words, AuditRun>*> runs;
  for (auto& run : outcomes) {
    runs.push_back(&run);
  }
  run_tasks(runs.size(), 0, "",
            [&](std::size_t index) { runs[index]->second = audit_run(runs[index]->first); });
  return outcomes;
}

// The keys of a schema that have no others below them.
std::set<std::string> leaves_of(const Schema& schema) {
  static const std::regex kRow("\\| `([^`]+)` \\|");
  const std::string rows = to_markdown(schema);
  std::vector<std::string> keys;
  for (std::sregex_iterator at(rows.begin(), rows.end(), kRow), end; at != end; ++at) {
    keys.push_back((*at)[1]);
  }
  std::set<std::string> leaves;
  for (const std::string& key : keys) {
    const bool has_more = std::ranges::any_of(keys, [&](const std::string& other) {
      return other.starts_with(key + ".") || other.starts_with(key + "[");
    });
    if (!has_more) {
      leaves.insert(key);
    }
  }
  return leaves;
}

// The keys of a workload but for those of its model.
std::set<std::string> own_keys_of(const Schema& workload) {
  std::set<std::string> keys = leaves_of(workload);
  std::erase_if(keys, [](const std::string& key) { return key.starts_with("model."); });
  keys.insert("model");
  return keys;
}

// The options of all commands that look for what has no effect, without those of results and of
// effort.
std::set<std::string> looked_at_options() {
  std::set<std::string> names;
  for (const Command& command : all_commands()) {
    for (const Command& part : command.parts.empty() ? std::vector{command} : command.parts) {
      for (const Option& row : part.options) {
        const bool is_effort = row.name == "threads" || row.name == "log-level";
        if (part.find("effects") != nullptr && row.traits.role != Role::Result && !is_effort) {
          names.insert("--" + std::string(row.name));
        }
      }
    }
  }
  return names;
}

// The variables that the table of environment.cpp calls modelled.
std::set<std::string> modelled_variables() {
  static const std::regex kRow("    modelled\\(\"(NCCL_\\w+)\"");
  const std::string text = read_text_file(source_dir() / "src/nccl/types/environment.cpp");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kRow), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

// The variables of that table that no time follows.
std::vector<std::string> unmodelled_variables() {
  static const std::regex kRow("(?:not_modelled|timeless)\\(\\s*\"(NCCL_\\w+)\"");
  const std::string text = read_text_file(source_dir() / "src/nccl/types/environment.cpp");
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kRow), end; at != end; ++at) {
    names.push_back((*at)[1]);
  }
  return names;
}

}  // namespace

TEST_CASE("every option, key and variable has a line with another value, or says why it has none") {
  const std::map<std::string, Audit> audits = read_audits();
  const std::map<std::string, std::set<std::string>> all{
      {"cluster", leaves_of(schema_of<ClusterKeys>(cluster_fields))},
      {"server", leaves_of(schema_of<ServerKeys>(server_file_fields))},
      {"model", leaves_of(schema_of<Model>(model_fields))},
      {"workload", own_keys_of(schema_of<Workload>(workload_fields))},
      {"recommender", leaves_of(schema_of<RecommenderModel>(recommender_fields))},
      {"recommender-workload",
       own_keys_of(schema_of<RecommenderWorkload>(recommender_workload_fields))},
      {"convolutional", leaves_of(schema_of<ConvolutionalModel>(convolutional_fields))},
      {"convolutional-workload",
       own_keys_of(schema_of<ConvolutionalWorkload>(convolutional_workload_fields))},
      {"traffic", leaves_of(schema_of<TrafficSpec>(traffic_fields))},
      {"options", looked_at_options()},
      {"variables", modelled_variables()}};
  for (const auto& [kind, keys] : all) {
    std::set<std::string> known = audits.at(kind).without_result;
    for (const Change& change : audits.at(kind).changes) {
      known.insert(change.key);
    }
    for (const std::string& key : keys) {
      INFO(kind << ": " << key);
      REQUIRE(known.contains(key));
    }
    UNSCOPED_INFO(keys.size() << " of " << kind << ", without result "
                              << audits.at(kind).without_result.size());
  }
  REQUIRE(audits.size() == all.size());
}

TEST_CASE("every option, key and variable changes a result", "[effects][long]") {
  const std::map<std::string, Audit> audits = read_audits();
  const std::map<Words, AuditRun> outcomes = audit_runs(audits);
  for (const auto& [kind, audit] : audits) {
    for (const Change& change : audit.changes) {
      const AuditRun& before = outcomes.at(change.base);
      const AuditRun& after = outcomes.at(change.changed);
      INFO(kind << ": " << change.key << ": " << change.changed.back());
      REQUIRE(before.error.value_or("") == "");
      REQUIRE(after.error.value_or("") == "");
      REQUIRE((before.result != after.result));
    }
  }
}

TEST_CASE("every variable that no time follows is said to have no effect", "[effects]") {
  const std::vector<std::string> names = unmodelled_variables();
  REQUIRE(names.size() > 40);
  for (const std::string& name : names) {
    INFO(name);
    const Words one{name + "=1"};
    const Words other{name + "=0"};
    const std::size_t remarks = nccl::Environment::parse(one).remarks.size() +
                                nccl::Environment::parse(other).remarks.size();
    REQUIRE(remarks > 0);
  }
}

}  // namespace trainyard
