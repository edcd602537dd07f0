// SPDX-License-Identifier: Apache-2.0
// Names what bounds a predicted time.
//
// A time t of the event model is of first degree in all of its times and inverse rates u, so that
// by Euler's theorem the shares u_k / t dt/du_k of all constants add up to one. The share of a
// group of constants is seen by making all of it slower by a tenth; what is left is that of the
// links whose rates are not in the profile: NVLink, those between sockets, and the fabric.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "calibration/predict/nccl_prediction.h"
#include "nccl/timing/profile.h"

namespace trainyard {

enum class TimeLimit { Launch, Latency, Blocks, Network, Pcie, Links };
inline constexpr std::array kTimeLimits{TimeLimit::Launch,  TimeLimit::Latency, TimeLimit::Blocks,
                                        TimeLimit::Network, TimeLimit::Pcie,    TimeLimit::Links};
// "launch": of kernels by the host; "latency": waiting, flags, kernels, messages; "thread blocks":
// that copy and reduce; "network": NICs and their plugin; "pcie": PCIe and host memory; "links".
[[nodiscard]] std::string_view to_string(TimeLimit limit);

// The profile with the constants of a group slower by this factor; as it is for Links.
[[nodiscard]] nccl::Profile slowed(const nccl::Profile& profile, TimeLimit limit, double factor);

struct LimitShare {
  TimeLimit limit = TimeLimit::Links;
  double share = 0.0;  // Share of the time, 0 to 1.
};

// The largest share for each row of the session, which is left with `profile`.
[[nodiscard]] std::vector<LimitShare> largest_limits(NcclSession& session,
                                                     const nccl::Profile& profile);

}  // namespace trainyard
