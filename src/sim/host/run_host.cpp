// SPDX-License-Identifier: Apache-2.0
#include "sim/host/run_host.h"

#include <utility>

namespace trainyard {
namespace {

RunHost*& host_of_thread() {
  thread_local RunHost* host = nullptr;
  return host;
}

}  // namespace

RunHost* run_host() {
  return host_of_thread();
}

HostScope::HostScope(RunHost* host) : outer_(std::exchange(host_of_thread(), host)) {}

HostScope::~HostScope() {
  host_of_thread() = outer_;
}

void end_if_cancelled() {
  const RunHost* const host = run_host();
  if (host != nullptr && host->wants_end()) {
    throw RunCancelled();
  }
}

}  // namespace trainyard
