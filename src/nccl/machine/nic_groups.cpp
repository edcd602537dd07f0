// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/nic_groups.h"

#include <algorithm>
#include <cstddef>

namespace trainyard::nccl {
namespace {

// The GPUs and NICs that a part of the server leaves to what is above it.
struct Rest {
  int gpus = 0;  // Without a NIC so far.
  std::vector<int> nics = {};
  bool has_nic = false;

  void add(const Rest& below) {
    gpus += below.gpus;
    nics.insert(nics.end(), below.nics.begin(), below.nics.end());
    has_nic = has_nic || below.has_nic;
  }
};

class Grouping {
 public:
  std::vector<std::vector<int>> take(const ServerOutline& server) {
    Rest rest;
    for (const std::vector<OutlineBranch>& socket : server.sockets) {
      rest.add(below(socket));
    }
    divide(rest);
    for (const int nic : rest.nics) {
      groups_.push_back({nic});
    }
    std::sort(groups_.begin(), groups_.end());
    return std::move(groups_);
  }

 private:
  Rest below(const std::vector<OutlineBranch>& branches) {
    Rest rest;
    for (const OutlineBranch& branch : branches) {
      if (branch.kind == NodeKind::Gpu) {
        ++rest.gpus;
      } else if (branch.kind == NodeKind::Nic) {
        rest.nics.push_back(branch.index);
        rest.has_nic = true;
      } else {
        rest.add(below(branch.children));
      }
    }
    divide(rest);
    return rest;
  }

  void divide(Rest& rest) {
    if (!rest.has_nic || rest.gpus == 0) {
      return;
    }
    const std::size_t devices = std::min(rest.nics.size(), static_cast<std::size_t>(rest.gpus));
    auto next = rest.nics.begin();
    for (std::size_t device = 0; device < devices; ++device) {
      const std::size_t larger = device < rest.nics.size() % devices ? 1 : 0;
      const auto size = static_cast<std::ptrdiff_t>(rest.nics.size() / devices + larger);
      groups_.emplace_back(next, next + size);
      next += size;
    }
    rest.nics.clear();
    rest.gpus = 0;
  }

  std::vector<std::vector<int>> groups_;
};

}  // namespace

std::vector<std::vector<int>> nic_groups(const ServerOutline& server) {
  return Grouping().take(server);
}

}  // namespace trainyard::nccl
