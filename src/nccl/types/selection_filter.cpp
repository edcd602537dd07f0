// SPDX-License-Identifier: Apache-2.0
#include "nccl/types/selection_filter.h"

#include <cstddef>
#include <vector>

#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard::nccl {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

template <typename Value>
std::string names_of(const Value& values) {
  std::string names;
  for (const auto value : values) {
    names += (names.empty() ? "" : ", ") + std::string(to_string(value));
  }
  return names;
}

// One comma list of `names`, "^" before it for all but these.
template <std::size_t Count, typename Parse>
std::array<bool, Count> parse_list(std::string_view variable, std::string_view list,
                                   const std::string& names, Parse parse) {
  const bool negated = !list.empty() && list.front() == '^';
  if (negated) {
    list.remove_prefix(1);
  }
  std::array<bool, Count> allowed = {};
  allowed.fill(negated);
  for (const std::string_view name : split(list, ',')) {
    const auto value = parse(name);
    if (!value) {
      throw ConfigError(std::string(variable) + ": expected names out of " + names + ", found " +
                        in_quotes(name));
    }
    allowed[static_cast<std::size_t>(*value)] = !negated;
  }
  return allowed;
}

template <std::size_t Count, typename Parse>
void parse_lists(std::string_view variable, std::string_view text, const std::string& names,
                 Parse parse, std::array<std::optional<std::array<bool, Count>>, 5>& lists) {
  lists = {};
  bool first = true;
  for (const std::string_view part : split(text, ';')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) {
      if (!first) {
        throw ConfigError(std::string(variable) +
                          ": expected FUNCTION:LIST behind the first \";\"" + ", found " +
                          in_quotes(part));
      }
      lists.fill(parse_list<Count>(variable, part, names, parse));
    } else {
      const auto function = parse_function(part.substr(0, colon));
      if (!function) {
        throw ConfigError(std::string(variable) + ": expected a function out of " +
                          names_of(kFunctions) + ", found " + in_quotes(part.substr(0, colon)));
      }
      lists[static_cast<std::size_t>(*function)] =
          parse_list<Count>(variable, part.substr(colon + 1), names, parse);
    }
    first = false;
  }
}

}  // namespace

void SelectionFilter::set_algorithms(std::string_view text) {
  parse_lists<7>("NCCL_ALGO", text, names_of(kAlgorithms), parse_algorithm, algorithms_);
  algorithms_text_ = text;
}

void SelectionFilter::set_protocols(std::string_view text) {
  parse_lists<3>("NCCL_PROTO", text, names_of(kProtocols), parse_protocol, protocols_);
  protocols_text_ = text;
}

bool SelectionFilter::allows(Function function, Algorithm algorithm) const {
  const auto& list = algorithms_[static_cast<std::size_t>(function)];
  return !list || (*list)[static_cast<std::size_t>(algorithm)];
}

bool SelectionFilter::allows(Function function, Protocol protocol) const {
  const auto& list = protocols_[static_cast<std::size_t>(function)];
  return !list || (*list)[static_cast<std::size_t>(protocol)];
}

bool SelectionFilter::forces(Function function, Protocol protocol) const {
  const auto& list = protocols_[static_cast<std::size_t>(function)];
  return list && (*list)[static_cast<std::size_t>(protocol)];
}

std::string SelectionFilter::text() const {
  std::string text;
  if (!algorithms_text_.empty()) {
    text = "NCCL_ALGO=" + algorithms_text_;
  }
  if (!protocols_text_.empty()) {
    text += (text.empty() ? "" : " ") + ("NCCL_PROTO=" + protocols_text_);
  }
  return text;
}

}  // namespace trainyard::nccl
