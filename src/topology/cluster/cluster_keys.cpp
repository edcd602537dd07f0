// SPDX-License-Identifier: Apache-2.0
#include "topology/cluster/cluster_keys.h"

#include <spdlog/fmt/fmt.h>

#include <tuple>

namespace trainyard {
namespace {

constexpr std::size_t kMaxKinds = 1'000;

// A server, whose keys the docs list by themselves.
template <typename Rows>
struct ServerKind : Composed<Rows> {
  template <typename Value>
  void describe(Schema& schema, Value& value) const {
    Composed<Rows>::describe(schema, value);
    schema.is_cited = true;
  }
};
template <typename Rows>
ServerKind(Composed<Rows>) -> ServerKind<Rows>;

void group_fields(Fields& fields, ServerGroupKeys& keys, Catalogue* catalogue) {
  const auto server = [&](Fields& inner, ServerKeys& own) {
    own.catalogue = catalogue;
    server_fields(inner, own);
  };
  fields.check([&](const ConfigNode& node) { keys.node = node; });
  fields.required("nodes", keys.count, Whole{1, kMaxServers}, "Servers that are alike.");
  fields.required("server", keys.server, ServerKind{Composed{server}},
                  "What is in each of them: a mapping of a server's keys, or its file.");
}

// Parts of the user's own, by kind and name.
struct OwnParts {
  Catalogue* catalogue;
  template <typename Value>
  void read(const Fields& /*parent*/, const ConfigNode& node, Value& /*value*/) const {
    catalogue->add(node);
  }
  template <typename Value>
  void describe(Schema& schema, Value& /*value*/) const {
    describe_own_parts(schema);
    schema.is_cited = true;
  }
};

void check_groups(const ConfigNode& node, const ClusterKeys& keys) {
  for (const std::string_view key : {"nodes", "server"}) {
    if (const auto other = node.optional(key)) {
      other->fail("servers says this already; leave it out");
    }
  }
  if (keys.groups.empty() || keys.groups.size() > kMaxKinds) {
    keys.size->fail(fmt::format("1 to {} kinds of server", kMaxKinds),
                    std::to_string(keys.groups.size()));
  }
}

}  // namespace

void cluster_fields(Fields& fields, ClusterKeys& keys) {
  const auto group = [&](Fields& inner, ServerGroupKeys& own) {
    group_fields(inner, own, keys.catalogue);
  };
  const auto fabric = [&](Fields& inner, FabricKeys& own) {
    own.catalogue = keys.catalogue;
    fabric_fields(inner, own);
  };
  fields.required("name", keys.name, Text{}, "Name for people.");
  fields.required("source", std::ignore, Unread{}, "Where the facts are from.");
  fields.optional("parts", std::ignore, OwnParts{keys.catalogue},
                  "Parts of your own, which all that names parts may name.");
  const bool has_kinds = fields.optional("servers", keys.groups, List{Group{group}},
                                         "Servers of several kinds, instead of the next two.");
  fields.where(!has_kinds, [&] { group(fields, keys.groups.emplace_back()); });
  fields.check([&](const ConfigNode& node) {
    keys.size = node.required(has_kinds ? "servers" : "nodes");
    if (has_kinds) {
      check_groups(node, keys);
    }
  });
  fields.optional("fabric", keys.fabric, Group{fabric}, "What joins the servers.");
  fields.optional("faults", keys.faults, List{FaultKind{}},
                  "What is broken: a node, the two ends of links, or a mapping.");
}

}  // namespace trainyard
