// SPDX-License-Identifier: Apache-2.0
// Keeps what searches found, for many communicators: the same files of hosts, with the same
// options, are searched once. The search is what costs most of a communicator.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "nccl/machine/machine.h"
#include "nccl/search/graph.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

// One node of the hosts of one NVLink domain: mostly there is one (make_machines).
struct SearchedNode : MachinePart {
  GraphSet graphs;
};

// Throws what make_machines throws.
[[nodiscard]] std::vector<SearchedNode> search_nodes(const std::vector<NcclSystem>& files,
                                                     const SearchOptions& options);

class SearchMemory {
 public:
  // Returns what search_nodes() returns. Any thread may call it; two that ask for the same at once
  // may both search.
  [[nodiscard]] std::vector<SearchedNode> nodes(const std::vector<NcclSystem>& files,
                                                const SearchOptions& options);
  // Different ones.
  [[nodiscard]] std::size_t known() const;

 private:
  struct Entry {
    std::vector<NcclSystem> files;
    SearchOptions options;
    std::vector<SearchedNode> nodes;
  };
  [[nodiscard]] const Entry* find(const std::vector<NcclSystem>& files,
                                  const SearchOptions& options) const;

  mutable std::mutex mutex_;  // Guards the entries.
  std::vector<Entry> entries_;
};

}  // namespace trainyard::nccl
