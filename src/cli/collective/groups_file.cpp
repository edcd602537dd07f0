// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/groups_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "cli/common/options.h"
#include "sim/numbers.h"

namespace trainyard {
namespace {

template <typename Values>
auto words_of_values(const Values& values) {
  std::array<std::string_view, std::tuple_size_v<Values>> words;
  std::ranges::transform(values, words.begin(), [](const auto value) { return to_string(value); });
  return words;
}

void group_fields(Fields& fields, GroupSpec& group) {
  static const auto kOperationWords = words_of_values(kOperations);
  static const auto kAlgorithmWords = words_of_values(kAlgorithms);
  fields.optional("name", group.name, Text{}, "Name in results; its place in the list if missing.");
  const auto ranks = [](const ConfigNode& node) {
    std::vector<int> list = rising_ranks(node.as_string());
    if (list.size() < 2) {
      node.fail("two or more ranks that rise, such as 0-7, 0,8,16 or 0-63:8", node.found());
    }
    return list;
  };
  fields.required("ranks", group.ranks, Via{Text{}, ranks},
                  "Ranks of the cluster: `0-7`, `0,8,16` or `0-63:8`.");
  const auto operation = [](const ConfigNode& node) {
    const Operation read = kOperations.at(node.as_choice(kOperationWords));
    if (read == Operation::AllToAllV) {
      node.fail("an operation without a matrix", node.found());
    }
    return read;
  };
  fields.optional("operation", group.operation, Via{Choice{kOperationWords}, operation},
                  "Instead of that of the command line.");
  fields.optional("size", group.size, SomeAmount{}, "Instead of the sizes of the command line.");
  const auto algorithm = [](const ConfigNode& node) {
    return kAlgorithms.at(node.as_choice(kAlgorithmWords));
  };
  fields.optional("algorithm", group.algorithm, Via{Choice{kAlgorithmWords}, algorithm},
                  "Instead of that of the command line.");
  fields.optional("start", group.start, Duration{}, "When it begins: at 0.");
}

std::vector<GroupSpec> equal_groups(const std::string& text, int ranks) {
  const bool is_strided = text.starts_with(':');
  const std::optional<int> number = parse_number<int>(text.substr(is_strided ? 1 : 0));
  const bool divides = number && *number > 0 && ranks % *number == 0;
  if (!divides || (is_strided ? ranks / *number : *number) < 2) {
    fail_option("groups",
                fmt::format("N, groups of N of the {0} ranks, :N, N groups of every Nth, where N "
                            "divides {0} and a group has two or more; or a file",
                            ranks),
                text);
  }
  const int groups = is_strided ? *number : ranks / *number;
  std::vector<GroupSpec> all(static_cast<std::size_t>(groups));
  for (int rank = 0; rank < ranks; ++rank) {
    const int group = is_strided ? rank % groups : rank / *number;
    all[static_cast<std::size_t>(group)].ranks.push_back(rank);
  }
  return all;
}

std::vector<GroupSpec> groups_of_file(const std::string& name, int ranks) {
  ConfigDocument document = ConfigDocument::load(name);
  GroupsFile file;
  read_fields(document.root(), file, groups_fields);
  document.finish();
  const std::vector<ConfigNode> nodes = document.root().required("groups").items();
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const int last = file.groups[index].ranks.back();
    if (last >= ranks) {
      nodes[index].required("ranks").fail(fmt::format("ranks from 0 to {}", ranks - 1),
                                          std::to_string(last));
    }
  }
  return file.groups;
}

}  // namespace

void groups_fields(Fields& fields, GroupsFile& file) {
  fields.required("groups", file.groups, List{Group{group_fields}},
                  "The communicators, one or more.");
  fields.check([&](const ConfigNode& node) {
    if (file.groups.empty()) {
      node.required("groups").fail("one group or more", "none");
    }
  });
}

std::vector<GroupSpec> read_groups(const std::string& text, int ranks) {
  const bool is_number = text.find_first_not_of(":0123456789") == std::string::npos;
  std::vector<GroupSpec> groups =
      is_number ? equal_groups(text, ranks) : groups_of_file(text, ranks);
  for (std::size_t index = 0; index < groups.size(); ++index) {
    if (groups[index].name.empty()) {
      groups[index].name = std::to_string(index);
    }
  }
  return groups;
}

std::vector<int> rising_ranks(const std::string& text) {
  std::vector<int> ranks = index_list(text);
  const bool rises = std::ranges::adjacent_find(ranks, std::greater_equal()) == ranks.end();
  return rises ? ranks : std::vector<int>();
}

// Takes the longest run of equal steps from each rank on; two ranks are a run only as neighbours.
std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ranks.size();) {
    const int step = first + 1 < ranks.size() ? ranks[first + 1] - ranks[first] : 1;
    std::size_t end = first + 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == step) {
      ++end;
    }
    const bool is_run = end - first > 2 || (end - first == 2 && step == 1);
    end = is_run ? end : first + 1;
    parts.push_back(!is_run     ? std::to_string(ranks[first])
                    : step == 1 ? fmt::format("{}-{}", ranks[first], ranks[end - 1])
                                : fmt::format("{}-{}:{}", ranks[first], ranks[end - 1], step));
    first = end;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace trainyard
