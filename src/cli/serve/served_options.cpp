// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/served_options.h"

#include <array>
#include <string_view>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/option_table.h"
#include "cli/serve/run_request.h"
#include "report/formats/json.h"
#include "sim/yaml_names.h"

namespace trainyard {
namespace {

// Options whose values are names of files, and the folder of configs that has these. The argument
// of `traffic` is called a file.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNamed{
    {{"cluster", "clusters"},
     {"workload", "workloads"},
     {"model", "workloads/models"},
     {"transport", "transport"},
     {"control", "transport/control"},
     {"file", "traffic"}}};

Json json_of(const Options& rows) {
  Json json = Json::array();
  for (const Option& row : rows) {
    if (!is_served(row)) {
      continue;
    }
    std::vector<std::string> choices = split_words(row.traits.choices, '|');
    for (std::string& other : split_words(row.traits.other_choices, '|')) {
      if (std::ranges::find(choices, other) == choices.end()) {
        choices.push_back(std::move(other));
      }
    }
    json.push_back({{"name", row.name},
                    {"value", row.value},
                    {"help", row.help},
                    {"repeats", row.traits.repeats},
                    {"needs", row.traits.needs},
                    {"choices", std::move(choices)}});
  }
  return json;
}

// The words that people say for settings, "tensor=plan.tensor=N": each key once.
Json settings_of(const Options& rows) {
  Json json = Json::array();
  std::vector<std::string> known;
  for (const Option& row : rows) {
    for (const std::string& synonym :
         split_words(row.name == "set" ? row.traits.synonyms : "", ' ')) {
      const std::vector<std::string> parts = split_words(synonym, '=');
      if (std::ranges::find(known, parts[1]) == known.end()) {
        known.push_back(parts[1]);
        json.push_back({{"key", parts[1]}, {"value", parts[2]}});
      }
    }
  }
  return json;
}

}  // namespace

std::string served_options(const std::vector<std::string>& files) {
  Json json{{"commands", Json::array()}, {"names", Json::object()}, {"files", files}};
  for (const Command& command : served_commands()) {
    json["commands"].push_back({{"name", command.name},
                                {"summary", command.summary},
                                {"arguments", json_of(command.arguments)},
                                {"options", json_of(command.options)},
                                {"settings", settings_of(command.options)},
                                {"reports", command.find("report") != nullptr},
                                {"swept", command.is_swept}});
  }
  for (const auto& [option, folder] : kNamed) {
    json["names"][std::string(option)] = yaml_names_in(configs_folder() / folder);
  }
  return to_text(json);
}

}  // namespace trainyard
