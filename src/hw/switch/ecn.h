// SPDX-License-Identifier: Apache-2.0
// ECN marking by queue length (RED; Floyd and Jacobson, 1993, without averaging, as for
// DCQCN):
//   q <= Kmin         never
//   Kmin < q <= Kmax  with probability Pmax (q - Kmin) / (Kmax - Kmin)
//   q > Kmax          always
// q are the bytes of the egress queue behind the packet when it leaves (mark at dequeue, what
// Broadcom chips and the ns-3 and htsim models do), or those before it when it comes.
//
// A draw is an integer compared with an integer, so that no rounding depends on the machine.
#pragma once

#include <cmath>
#include <cstdint>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

enum class MarkAt : std::uint8_t { Dequeue, Enqueue };

struct RedProfile {
  Bytes kmin{};
  Bytes kmax{};  // At least kmin; equal to it for a step, as DCTCP wants it.
  double pmax = 1.0;

  // Returns the profile for a link that is `rate` over `reference` as fast.
  [[nodiscard]] RedProfile scaled(Bandwidth rate, Bandwidth reference) const {
    const double factor = static_cast<double>(rate.bits_per_second()) /
                          static_cast<double>(reference.bits_per_second());
    const auto times = [factor](Bytes size) {
      return Bytes(std::llround(static_cast<double>(size.count()) * factor));
    };
    return {.kmin = times(kmin), .kmax = times(kmax), .pmax = pmax};
  }
};

class RedMarker {
 public:
  explicit RedMarker(const RedProfile& profile)
      : kmin_(profile.kmin.count()), kmax_(profile.kmax.count()) {
    constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;  // Products stay within 64 bits.
    CHECK(kmin_ >= 0 && kmin_ <= kmax_ && kmax_ <= kMaxBytes, "not 0 <= Kmin <= Kmax <= 2 GiB");
    CHECK(profile.pmax >= 0.0 && profile.pmax <= 1.0, "Pmax is no probability");
    constexpr double kOne = 4294967296.0;  // 2^32
    pmax_ = static_cast<std::uint64_t>(std::llround(profile.pmax * kOne));
  }

  // `draw` is one of 2^32 equally likely numbers.
  [[nodiscard]] bool marks(Bytes queue, std::uint32_t draw) const {
    const std::int64_t q = queue.count();
    if (q <= kmin_) {
      return false;
    }
    if (q > kmax_) {
      return true;
    }
    // draw / 2^32 < pmax (q - kmin) / (kmax - kmin)
    return draw * static_cast<std::uint64_t>(kmax_ - kmin_) <
           pmax_ * static_cast<std::uint64_t>(q - kmin_);
  }

 private:
  std::int64_t kmin_;
  std::int64_t kmax_;
  std::uint64_t pmax_ = 0;  // In 2^-32.
};

}  // namespace trainyard
