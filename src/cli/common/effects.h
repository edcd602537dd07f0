// SPDX-License-Identifier: Apache-2.0
// --effects: which of the options, keys and variables given did not change the result. With `on`,
// each is left out of a run of its own, and the results are compared, so that no model has to know
// what does nothing where. With `auto`, what equals its default is named without a run, where the
// command read no more of it than its choice, so that it cannot have changed anything; the others
// are left out of runs where these are few and small by count, so that no clock has a say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "report/formats/document.h"

namespace trainyard {

// `needs`: the forms that have notes, where others have none.
[[nodiscard]] Option effects_option(std::string_view needs = "");

// Counts what a run did, in numbers that are the same in every run of it.
struct RunCounts {
  std::size_t gpus = 0;           // GPUs of the cluster.
  std::size_t communicators = 0;  // Groups whose channels NCCL's twin searched for.
  std::size_t rank_calls = 0;     // Ranks of all calls that its event model timed.
  std::size_t events = 0;         // Events and operations of simulations, messages, transfers.
};
// Returns about the time that such a run takes on one core, in microseconds.
[[nodiscard]] std::uint64_t microseconds_of(const RunCounts& counts);

// Returns the document with one note on all things given that did not change it, as far as
// --effects asks for that; CSV, which has no notes, has that of `on` as a warning. Commands render
// what this returns. In a run that is looked at, it hands the result to the one who looks, and where
// the reader keeps results, it keeps the document. Without `counts`, the run is too large for `auto`
// to add others.
[[nodiscard]] Document with_effects(const OptionReader& reader, Document document,
                                    const std::optional<RunCounts>& counts = std::nullopt);

// Keeps the document where the reader keeps results (options.h): for commands without effects.
void keep_result(const OptionReader& reader, const Document& document);

// Returns the things given beside arguments, each as it is written: "--set server.nics=4". Left out
// are where results go, and what never changes one. `reader` is that of a run.
struct GivenThing {
  std::string text;
  std::string option;
  OptionValues others;  // The values of a run without it.
};
[[nodiscard]] std::vector<GivenThing> given_things(const OptionReader& reader);

}  // namespace trainyard
