// SPDX-License-Identifier: Apache-2.0
// The golden script by the rule of the ns-3 model; the other rules by what must always hold:
// conservation, alternation of XOFF and XON, nothing lost within the headroom.
#include "support/catch.h"

#include <map>
#include <string>
#include <vector>

#include "hw/switch/shared_buffer.h"
#include "sim/random.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

constexpr Bytes kPacket{4178};

struct Stored {
  BufferPlace place;
  Bytes size;
};

// Limits that put all areas to use.
IngressLimits random_limits(RandomStream& random) {
  IngressLimits limits;
  limits.lossless = random.below(2) == 0;
  limits.reserve = Bytes(static_cast<std::int64_t>(random.below(5000)));
  limits.headroom = Bytes(limits.lossless ? static_cast<std::int64_t>(random.below(20'000)) : 0);
  if (random.below(3) == 0) {
    limits.alpha = std::nullopt;
  } else {
    limits.alpha = static_cast<int>(random.below(8)) - 4;
  }
  limits.resume_offset = Bytes(static_cast<std::int64_t>(random.below(4000)));
  return limits;
}

SharedBuffer random_buffer(RandomStream& random, std::uint32_t ports, std::uint32_t priorities) {
  SharedBufferSettings settings{.size = Bytes(400'000)};
  settings.rule = static_cast<AdmissionRule>(random.below(2));
  SharedBuffer buffer(settings, ports, priorities);
  for (std::uint32_t port = 0; port < ports; ++port) {
    for (std::uint32_t priority = 0; priority < priorities; ++priority) {
      buffer.set_ingress(port, priority, random_limits(random));
      if (random.below(2) == 0) {
        buffer.set_egress(port, priority, -1);
      }
    }
  }
  return buffer;
}

BufferPlace random_place(RandomStream& random) {
  BufferPlace place;
  place.in_port = static_cast<std::uint32_t>(random.below(4));
  place.out_port = static_cast<std::uint32_t>(random.below(4));
  place.priority = static_cast<std::uint32_t>(random.below(2));
  return place;
}

// Whether what groups of 4 ports and 2 priorities have comes to what is stored.
bool is_consistent(const SharedBuffer& buffer, Bytes stored) {
  Bytes sum;
  for (std::uint32_t port = 0; port < 4; ++port) {
    for (std::uint32_t priority = 0; priority < 2; ++priority) {
      sum += buffer.ingress_bytes(port, priority) + buffer.headroom_bytes(port, priority);
    }
  }
  return sum == stored && buffer.stored() == stored;
}

// One lossless group of 10 kB headroom that may take half of what is shared: 20 kB.
SharedBuffer small_buffer() {
  SharedBuffer buffer({.size = Bytes(50'000)}, 2, 1);
  buffer.set_ingress(
      0, 0,
      {.lossless = true, .headroom = Bytes(10'000), .alpha = 0, .resume_offset = Bytes(5'000)});
  return buffer;
}

}  // namespace

TEST_CASE("the golden script of admissions and releases is followed", "[transport]") {
  const ConfigNode section = transport_goldens("shared_buffer_pfc_script");
  const GoldenParams params(section);
  SharedBuffer buffer({.size = Bytes(params.integer("buffer_bytes")), .rule = AdmissionRule::Ns3},
                      static_cast<std::uint32_t>(params.integer("ports")), 1);
  for (std::uint32_t port = 0; port < 2; ++port) {
    buffer.set_ingress(port, 0,
                       {.lossless = true,
                        .reserve = Bytes(params.integer("reserve_bytes_per_port")),
                        .headroom = Bytes(params.integer("headroom_bytes_per_port")),
                        .alpha = -static_cast<int>(params.integer("alpha_shift")),
                        .resume_offset = Bytes(params.integer("resume_offset_bytes"))});
  }
  const GoldenTable table(section);
  REQUIRE(table.rows() == 24);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto port = static_cast<std::uint32_t>(table.integer(row, "port")) - 1;
    const BufferPlace place{.in_port = port, .out_port = 1 - port};
    const Bytes size(table.integer(row, "bytes"));
    std::string action;
    if (table.text(row, "op") == "in") {
      const Admission admission = buffer.admit(place, size);
      action = admission.xoff ? "XOFF" : "";
      action = admission.accepted ? action : "DROP";
    } else {
      action = buffer.release(place, size) ? "XON" : "";
    }
    REQUIRE(action == table.text(row, "action"));
    REQUIRE(buffer.ingress_bytes(port, 0).count() == table.integer(row, "ingress_bytes"));
    REQUIRE(buffer.headroom_bytes(port, 0).count() == table.integer(row, "headroom_bytes"));
    REQUIRE(buffer.shared_used().count() == table.integer(row, "shared_used"));
    REQUIRE(buffer.threshold(port, 0).count() == table.integer(row, "threshold_after"));
  }
  REQUIRE(buffer.stored() == Bytes(0));
}

TEST_CASE("bytes are conserved, and XOFF and XON alternate, under any limits", "[transport]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomStream random(seed, "buffer");
    SharedBuffer buffer = random_buffer(random, 4, 2);
    std::vector<Stored> stored;
    Bytes bytes;
    std::map<std::pair<std::uint32_t, std::uint32_t>, bool> paused;
    const auto group = [](const BufferPlace& place) {
      return std::pair(place.in_port, place.priority);
    };
    INFO("seed=" << seed);
    for (int step = 0; step < 600; ++step) {
      const bool filling = random.below(100) < (step < 300 ? 70 : 30);
      if (filling || stored.empty()) {
        const BufferPlace place = random_place(random);
        const Bytes size(static_cast<std::int64_t>(64 + random.below(4200)));
        const Admission admission = buffer.admit(place, size);
        if (admission.accepted) {
          stored.push_back({place, size});
          bytes += size;
        }
        REQUIRE(!(admission.xoff && paused[group(place)]));
        paused[group(place)] |= admission.xoff;
      } else {
        const std::size_t index = random.below(stored.size());
        const Stored packet = stored[index];
        stored[index] = stored.back();
        stored.pop_back();
        bytes = bytes - packet.size;
        const bool xon = buffer.release(packet.place, packet.size);
        REQUIRE(!(xon && !paused[group(packet.place)]));
        paused[group(packet.place)] &= !xon;
      }
      REQUIRE(is_consistent(buffer, bytes));
    }
    for (const Stored& packet : stored) {
      paused[group(packet.place)] &= !buffer.release(packet.place, packet.size);
    }
    REQUIRE(buffer.stored() == Bytes(0));
    REQUIRE(buffer.shared_used() == Bytes(0));
    for (std::uint32_t port = 0; port < 4; ++port) {
      REQUIRE(!paused[std::pair(port, 0U)]);  // An empty group is never left paused.
      REQUIRE(!paused[std::pair(port, 1U)]);
    }
  }
}

TEST_CASE("after XOFF nothing is lost within the headroom, and what follows is", "[transport]") {
  SharedBuffer buffer = small_buffer();
  const BufferPlace place{.in_port = 0, .out_port = 1};
  for (int i = 0; i < 19; ++i) {
    REQUIRE(!buffer.admit(place, Bytes(1000)).xoff);
  }
  REQUIRE(buffer.admit(place, Bytes(1000)).xoff);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(buffer.admit(place, Bytes(1000)).accepted);
  }
  REQUIRE(!buffer.admit(place, Bytes(1)).accepted);
  REQUIRE(buffer.headroom_bytes(0, 0) == Bytes(10'000));
  // XON at 17,000 B of 40,000, when the headroom is empty and the resume offset fits.
  int released = 0;
  while (!buffer.release(place, Bytes(1000))) {
    ++released;
  }
  REQUIRE(released == 12);
}

TEST_CASE("n greedy queues share by alpha: each has alpha S over 1 + n alpha", "[transport]") {
  constexpr std::int64_t kShared = 1'000'000;
  for (const int exponent : {-3, 0, 1}) {
    for (const std::uint32_t ports : {1U, 2U, 5U}) {
      SharedBuffer buffer({.size = Bytes(kShared)}, ports, 1);
      for (std::uint32_t port = 0; port < ports; ++port) {
        buffer.set_ingress(port, 0, {.alpha = exponent});
      }
      bool any = true;
      while (any) {
        any = false;
        for (std::uint32_t port = 0; port < ports; ++port) {
          any |= buffer.admit({.in_port = port, .out_port = 0}, Bytes(100)).accepted;
        }
      }
      const double alpha = exponent >= 0 ? 1 << exponent : 1.0 / (1 << -exponent);
      const double expected = alpha * kShared / (1.0 + ports * alpha);
      REQUIRE(static_cast<double>(buffer.ingress_bytes(0, 0).count()) ==
              Approx(expected).margin(300.0));
    }
  }
}

TEST_CASE("lossy traffic is lost at its egress limit and never pauses", "[transport]") {
  SharedBuffer buffer({.size = Bytes(100'000)}, 2, 2);
  buffer.set_egress(1, 0, -3);  // 12,500 B of all that is free, and less of what is left.
  const BufferPlace place{.in_port = 0, .out_port = 1};
  REQUIRE(buffer.admit(place, kPacket).accepted);
  REQUIRE(buffer.admit(place, kPacket).accepted);
  const Admission lost = buffer.admit(place, kPacket);
  REQUIRE(!lost.accepted);
  REQUIRE(!lost.xoff);
  REQUIRE(buffer.stored() == kPacket * 2);
  REQUIRE(buffer.admit({.in_port = 0, .out_port = 1, .priority = 1}, kPacket).accepted);
}

TEST_CASE("the reserve admits what the ns-3 rule loses", "[transport]") {
  for (const AdmissionRule rule : {AdmissionRule::Guaranteed, AdmissionRule::Ns3}) {
    SharedBuffer buffer({.size = Bytes(20'000), .rule = rule}, 2, 1);
    buffer.set_ingress(0, 0, {.lossless = true, .reserve = Bytes(10'000)});
    buffer.set_ingress(1, 0, {.alpha = std::nullopt});
    REQUIRE(buffer.admit({.in_port = 1, .out_port = 0}, Bytes(10'000)).accepted);
    REQUIRE(buffer.admit({.in_port = 0, .out_port = 0}, kPacket).accepted ==
            (rule == AdmissionRule::Guaranteed));
  }
}

}  // namespace trainyard
