// SPDX-License-Identifier: Apache-2.0
// --effects: which of the options, keys and variables given did not change the result. With `on`,
// each is left out of a run of its own, and the results are compared, so that no model has to know
// what does nothing where. With `auto`, no run is added: named is what equals its default where the
// command read no more of it than its choice, so that it cannot have changed anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "report/formats/document.h"

namespace trainyard {

// `needs`: the forms that have notes, where others have none.
[[nodiscard]] Option effects_option(std::string_view needs = "");

// Returns the document with one note on all things given that did not change it, as far as
// --effects asks for that; CSV, which has no notes, has that of `on` as a warning. Commands render
// what this returns. In a run that is looked at, it hands the result to the one who looks.
[[nodiscard]] Document with_effects(const OptionReader& reader, Document document);

// Returns the things given beside arguments, each as it is written: "--set server.nics=4". Left out
// are where results go, and what never changes one. `reader` is that of a run.
struct GivenThing {
  std::string text;
  std::string option;
  OptionValues others;  // The values of a run without it.
};
[[nodiscard]] std::vector<GivenThing> given_things(const OptionReader& reader);

}  // namespace trainyard
