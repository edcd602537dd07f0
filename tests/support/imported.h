// SPDX-License-Identifier: Apache-2.0
// What the tests of both imports of a server share.
#pragma once

#include <string>

#include "sim/config_error.h"
#include "support/catch.h"
#include "support/shipped.h"
#include "topology/exchange/import_parts.h"

namespace trainyard {

// What `import` complains about.
template <typename Import>
std::string complaint(const Import& import) {
  try {
    (void)import();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// The server as the lines of its tree.
inline std::string tree_of(const ImportedServer& server) {
  const std::string yaml =
      to_cluster_yaml(server.tree, shipped_catalogue(), {.name = "", .source = ""});
  return yaml.substr(yaml.find("  tree:\n") + 8);
}

inline std::string with(std::string text, const std::string& old, const std::string& replacement) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), replacement);
}

}  // namespace trainyard
