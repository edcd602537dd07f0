// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {
namespace {

// The names of options in conditions such as "a|b fidelity=flow|packet".
std::vector<std::string> named_in(std::string_view conditions) {
  std::vector<std::string> names(1);
  bool is_value = false;
  for (const char character : conditions) {
    is_value = character != ' ' && (is_value || character == '=');
    if (character == ' ' || (character == '|' && !is_value)) {
      names.emplace_back();
    } else if (!is_value) {
      names.back() += character;
    }
  }
  std::erase(names, "");
  return names;
}

void require_sound(const Command& command) {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (const Option& option : joined({command.arguments, command.options})) {
    INFO(command.form << ": --" << option.name);
    REQUIRE(names.insert(option.name).second);
    const OptionTraits& traits = option.traits;
    REQUIRE((traits.letter == '\0' || letters.insert(traits.letter).second));
    for (const std::string_view conditions : {traits.needs, traits.excludes, traits.other_if}) {
      for (const std::string& other : named_in(conditions)) {
        INFO(other);
        const Option* const row = command.find(other);
        REQUIRE(row != nullptr);
        const bool has_value = conditions.find(other + "=") != std::string_view::npos;
        // Without a value it is meant to be given at all, as a verb is, which has no default.
        REQUIRE((!has_value || !row->traits.choices.empty()));
      }
    }
  }
  REQUIRE((command.run == nullptr) != command.parts.empty());
  for (const Command& part : command.parts) {
    require_sound(part);
  }
}

}  // namespace

TEST_CASE("conditions of all commands name options that they have", "[option-table]") {
  REQUIRE(named_in("a|b fidelity=flow|packet c") ==
          std::vector<std::string>{"a", "b", "fidelity", "c"});
  for (const Command& command : all_commands()) {
    require_sound(command);
    REQUIRE(command.form.starts_with(command.name));
    REQUIRE(command.usage.starts_with(command.name));
    REQUIRE_FALSE(command.summary.empty());
  }
}

}  // namespace trainyard
