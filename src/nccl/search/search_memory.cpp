// SPDX-License-Identifier: Apache-2.0
#include "nccl/search/search_memory.h"

#include <algorithm>
#include <utility>

#include "nccl/search/search.h"

namespace trainyard::nccl {

std::vector<SearchedNode> search_nodes(const std::vector<NcclSystem>& files,
                                       const SearchOptions& options) {
  std::vector<SearchedNode> nodes;
  for (MachinePart& part : make_machines(files, options)) {
    GraphSet graphs = search_graphs(part.machine);
    nodes.push_back({std::move(part), std::move(graphs)});
  }
  return nodes;
}

const SearchMemory::Entry* SearchMemory::find(const std::vector<NcclSystem>& files,
                                              const SearchOptions& options) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.options == options && entry.files == files;
  });
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<SearchedNode> SearchMemory::nodes(const std::vector<NcclSystem>& files,
                                              const SearchOptions& options) {
  {
    const std::lock_guard lock(mutex_);
    if (const Entry* const known = find(files, options)) {
      return known->nodes;
    }
  }
  std::vector<SearchedNode> nodes = search_nodes(files, options);
  const std::lock_guard lock(mutex_);
  if (find(files, options) == nullptr) {
    entries_.push_back({.files = files, .options = options, .nodes = nodes});
  }
  return nodes;
}

std::size_t SearchMemory::known() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace trainyard::nccl
