// SPDX-License-Identifier: Apache-2.0
// Decides what links lose: packets that are on a cable when it fails or are sent there later, and
// packets of which a bit flips.
//
// With a bit error rate e a packet of n bits is lost with 1 - (1 - e)^n. That is computed by
// doubling, p(2n) = p(n) (2 - p(n)) and p(n+1) = p(n) + e - p(n) e, which keeps all digits for
// small e and needs no library function, whose last bit may differ. Each link draws from a stream
// of its own, once for each packet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "network/packet_parts/packet_port.h"
#include "sim/ids.h"
#include "sim/random.h"

namespace trainyard {

// The chance that one of so many bits flips.
[[nodiscard]] double packet_error_rate(double bit_error_rate, std::int64_t bits);

class PacketLosses {
 public:
  struct Tally {
    std::uint64_t bit_errors = 0;
    std::uint64_t link_down = 0;
  };

  explicit PacketLosses(std::uint64_t seed) : seed_(seed) {}

  // The rate, and `loss`, the share of packets that are lost beside, are at least 0 and below 1.
  void set_bit_error_rate(LinkId link, double rate, double loss = 0.0);
  // Makes the link fail; of several times the first counts.
  void fail(LinkId link, Picoseconds time);

  [[nodiscard]] bool is_active() const { return !links_.empty(); }
  [[nodiscard]] bool knows(LinkId link) const { return links_.contains(link.value()); }
  [[nodiscard]] bool has_bit_error_rate(LinkId link) const;
  // Returns the time at which the link fails; kNeverTime if it does not.
  [[nodiscard]] Picoseconds fails_at(LinkId link) const;
  // Returns whether the link loses a packet of so many bytes that can flip, the last bit of which
  // is at its end at `arrival`. To be asked once for each packet, in the order of the link.
  [[nodiscard]] bool loses(LinkId link, std::int64_t bytes, Picoseconds arrival);

  // Replaces what was counted of a link that it knows: another process has counted it.
  void set_tally(LinkId link, const Tally& tally) { links_.at(link.value()).tally = tally; }
  [[nodiscard]] Tally tally(LinkId link) const;
  [[nodiscard]] Tally tally() const;  // Returns the sum over all links.

 private:
  struct Lossy {
    Picoseconds fails_at = kNeverTime;
    double bit_error_rate = 0.0;
    double loss = 0.0;
    std::optional<RandomStream> stream = {};
    std::int64_t last_bytes = -1;  // Most packets are as large as the one before,
    double last_rate = 0.0;        // and are lost with the same chance.
    Tally tally = {};
  };

  std::uint64_t seed_;
  // Links by number; those that lose nothing are not here.
  std::map<std::uint32_t, Lossy> links_;
};

}  // namespace trainyard
