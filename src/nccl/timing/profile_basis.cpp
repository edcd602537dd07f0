// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/profile_basis.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/fields.h"

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

void row_fields(Fields& fields, ProfileBasis::Rows& rows) {
  constexpr Whole kCount{1, std::numeric_limits<int>::max()};
  fields.required("operation", rows.operation, Via{Text{}, read_operation}, "Collective.");
  fields.required("ranks", rows.ranks, kCount, "Ranks.");
  fields.required("from", rows.least, Amount{}, "Least message.");
  fields.required("to", rows.most, Amount{}, "Largest message.");
  fields.required("count", rows.count, kCount, "Rows of tables.");
  fields.check([&](const ConfigNode& node) {
    if (rows.most < rows.least) {
      node.required("to").fail("at least the size of `from`", node.required("to").found());
    }
  });
}

void machine_fields(Fields& fields, MachineKind& machine) {
  fields.required("gpu", machine.gpu, Text{}, "Part.");
  fields.required("scale_up", machine.scale_up, Text{}, "What joins the GPUs of a host.");
  fields.required("network", machine.network, Text{}, "What joins hosts.");
}

}  // namespace

void basis_fields(Fields& fields, ProfileBasis& basis) {
  fields.required("cluster", std::ignore, Unread{}, "The cluster file.");
  fields.required("files", std::ignore, Unread{}, "The measured tables.");
  fields.required("machine", basis.machine, Group{machine_fields}, "The machine.");
  fields.required("rows", basis.rows, List{Group{row_fields}}, "What was measured.");
  fields.check([&](const ConfigNode& node) {
    if (basis.rows.empty()) {
      node.required("rows").fail("at least one entry", "none");
    }
  });
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
