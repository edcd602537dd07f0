// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/profile_basis.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "sim/config.h"

namespace trainyard::nccl {
namespace {

Operation read_operation(const ConfigNode& node) {
  const std::string name = node.as_string();
  const std::optional<Operation> operation = parse_operation(name);
  if (!operation) {
    node.fail(operation_names(), node.found());
  }
  return *operation;
}

ProfileBasis::Rows read_rows(const ConfigNode& node) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  ProfileBasis::Rows rows{
      .operation = read_operation(node.required("operation")),
      .ranks = static_cast<int>(node.required("ranks").as_integer(1, kMost)),
      .least = node.required("from").as_bytes(),
      .most = node.required("to").as_bytes(),
      .count = static_cast<std::size_t>(node.required("count").as_integer(1, kMost))};
  if (rows.most < rows.least) {
    node.required("to").fail("at least the size of `from`", node.required("to").found());
  }
  return rows;
}

}  // namespace

ProfileBasis ProfileBasis::read(const ConfigNode& node) {
  ProfileBasis basis;
  node.required("cluster").skip();
  node.required("files").skip();
  const ConfigNode machine = node.required("machine");
  basis.machine = {.gpu = machine.required("gpu").as_string(),
                   .scale_up = machine.required("scale_up").as_string(),
                   .network = machine.required("network").as_string()};
  const ConfigNode rows = node.required("rows");
  for (const ConfigNode& item : rows.items()) {
    basis.rows.push_back(read_rows(item));
  }
  if (basis.rows.empty()) {
    rows.fail("at least one entry", "none");
  }
  return basis;
}

std::optional<std::string> ProfileBasis::beyond(const MachineKind& of, Operation operation,
                                                int ranks, Bytes size) const {
  if (of != machine) {
    return fmt::format("measured was {}, not {}", to_string(machine), to_string(of));
  }
  std::vector<int> others;
  for (const Rows& one : rows) {
    if (one.operation != operation) {
      continue;
    }
    if (one.ranks != ranks) {
      others.push_back(one.ranks);
      continue;
    }
    if (one.least <= size && size <= one.most) {
      return std::nullopt;
    }
    return fmt::format("rows of {} from {} to {}", to_string(operation), to_string(one.least),
                       to_string(one.most));
  }
  if (others.empty()) {
    return fmt::format("no row of {}", to_string(operation));
  }
  std::sort(others.begin(), others.end());
  return fmt::format("rows of {} with {} ranks, not {}", to_string(operation),
                     fmt::join(others, ", "), ranks);
}

}  // namespace trainyard::nccl
