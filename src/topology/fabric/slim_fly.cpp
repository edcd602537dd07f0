// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/slim_fly.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

// Routes keep a field for each switch that is a target: half a gigabyte for 8,192 switches.
constexpr std::int64_t kMaxSlimFlyOrder = 64;
constexpr std::int64_t kMaxEndpointsOfSwitch = 4096;

// The only prime that divides q; zero if there are several.
int prime_of(int q) {
  int prime = 2;
  while (q % prime != 0) {
    ++prime;
  }
  while (q % prime == 0) {
    q /= prime;
  }
  return q == 1 ? prime : 0;
}

// Elements are numbers below q, whose digits in base p are the coefficients of a polynomial in xi.
// xi is a root of x^n - r, where the polynomial r is the first for which the powers of xi are all
// elements but zero; for a prime q, xi is r.
class GaloisField {
 public:
  explicit GaloisField(int q) : p_(prime_of(q)), q_(q), logs_(static_cast<std::size_t>(q)) {
    for (int rest = 1; rest < q && !generate(rest); ++rest) {
    }
    CHECK(static_cast<int>(powers_.size()) == q - 1, "no generator of a finite field");
    for (int exponent = 0; exponent < q - 1; ++exponent) {
      logs_[static_cast<std::size_t>(power(exponent))] = exponent;
    }
  }

  // Returns a power of xi.
  [[nodiscard]] int power(int exponent) const {
    return powers_[static_cast<std::size_t>(exponent) % powers_.size()];
  }
  // a + factor b, where the factor is below p.
  [[nodiscard]] int add(int a, int b, int factor = 1) const {
    int sum = 0;
    for (int place = 1; place < q_; place *= p_) {
      sum += (a / place + factor * (b / place % p_)) % p_ * place;
    }
    return sum;
  }
  [[nodiscard]] int multiply(int a, int b) const {
    return a == 0 || b == 0 ? 0 : power(log(a) + log(b));
  }

 private:
  [[nodiscard]] int log(int value) const { return logs_[static_cast<std::size_t>(value)]; }

  // Whether the powers of a root of x^n - rest are all elements but zero.
  bool generate(int rest) {
    powers_.assign(1, 1);
    for (;;) {
      const int shifted = powers_.back() * p_;
      const int next = add(shifted % q_, rest, shifted / q_);
      const bool is_full = static_cast<int>(powers_.size()) == q_ - 1;
      if (next <= 1 || is_full) {
        return next == 1 && is_full;
      }
      powers_.push_back(next);
    }
  }

  int p_;
  int q_;
  std::vector<int> powers_;  // Power of xi for each exponent.
  std::vector<int> logs_;    // Logarithm of each element; of zero without meaning.
};

int delta_of(int q) {
  return q % 4 == 3 ? -1 : q % 4;
}

// X. In that of delta -1 the second half of the exponents is odd, so that it too has -a for each a.
std::vector<int> generators(const GaloisField& field, int q) {
  const int delta = delta_of(q);
  std::vector<int> set;
  for (int index = 0; index < (q - delta) / 2; ++index) {
    const bool is_odd = delta == -1 && index >= (q - delta) / 4;
    set.push_back(field.power(2 * index - (is_odd ? 1 : 0)));
  }
  return set;
}

// Joins switches of `half` 0 or 1 that differ in their last number alone, by `step`.
void join_in_half(const GaloisField& field, int q, int half, int step,
                  std::vector<SlimFlyCable>& cables) {
  for (int place = 0; place < q; ++place) {
    const int other = field.add(place, step);
    for (int rack = 0; rack < q && place < other; ++rack) {
      const int first = (half * q + rack) * q;
      cables.push_back({.from = first + place, .to = first + other});
    }
  }
}

std::vector<SlimFlyCable> join_switches(int q) {
  const GaloisField field(q);
  std::vector<SlimFlyCable> cables;
  for (const int step : generators(field, q)) {
    join_in_half(field, q, 0, step, cables);
    join_in_half(field, q, 1, field.multiply(step, field.power(1)), cables);
  }
  for (int x = 0; x < q; ++x) {
    for (int m = 0; m < q; ++m) {
      for (int c = 0; c < q; ++c) {
        const int y = field.add(field.multiply(m, x), c);
        cables.push_back({.from = x * q + y, .to = (q + m) * q + c});
      }
    }
  }
  return cables;
}

void check_size(const FabricContext& context, const SlimFlySpec& spec) {
  const int ports = spec.degree + spec.endpoints_per_switch;
  if (ports > spec.part.ports) {
    context.node().required("switch").fail(fmt::format(
        "{} has {} ports, and {} are needed: {} for endpoints, {} for other switches",
        spec.part.name, spec.part.ports, ports, spec.endpoints_per_switch, spec.degree));
  }
  const int max = spec.switches() * spec.endpoints_per_switch;
  if (static_cast<int>(spec.host_links.size()) > max) {
    context.nodes.fail(
        fmt::format("at most {} NICs fit {} switches of {}, found {}: lower nodes or enlarge "
                    "fabric.q",
                    max, spec.switches(), spec.endpoints_per_switch, spec.host_links.size()));
  }
}

class SlimFly final : public Fabric {
 public:
  SlimFly(RoutingOptions routing, SlimFlySpec spec)
      : Fabric(std::move(routing)), spec_(std::move(spec)) {}

  void add_to(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) override {
    std::vector<NodeId> nodes;
    for (int at = 0; at < spec_.switches(); ++at) {
      nodes.push_back(add_switch(
          builder, spec_.part,
          fmt::format("s{},{},{}", at / spec_.q / spec_.q, spec_.rack(at), at % spec_.q)));
    }
    const auto node = [&](int at) { return nodes[static_cast<std::size_t>(at)]; };
    int endpoint = 0;
    for (const ServerNodes& server : servers) {
      for (const NodeId nic : server.nics) {
        builder.add_duplex_link(nic, node(endpoint / spec_.endpoints_per_switch),
                                spec_.host_links[static_cast<std::size_t>(endpoint)]);
        ++endpoint;
      }
    }
    for (const SlimFlyCable& cable : spec_.cables) {
      const bool is_local = spec_.rack(cable.from) == spec_.rack(cable.to);
      builder.add_duplex_link(node(cable.from), node(cable.to),
                              is_local ? spec_.local_link : spec_.global_link);
    }
    routing_.fabric.first_switch = nodes.front();
    routing_.fabric.switches = static_cast<std::uint32_t>(nodes.size());
    routing_.fabric.group_size = routing_.fabric.switches / 2;
  }

 private:
  SlimFlySpec spec_;
};

}  // namespace

void slim_fly_fields(Fields& fields, FabricKeys& keys) {
  fields.required("q", keys.q, Whole{3, kMaxSlimFlyOrder},
                  "Of a slim fly: a prime or a power of one, for 2 q^2 switches.");
  fields.check([&](const ConfigNode& node) {
    if (prime_of(keys.q) == 0) {
      const ConfigNode q = node.required("q");
      q.fail("a prime or a power of one, such as 5, 7, 8, 9, 11 or 13", q.found());
    }
  });
  fields.optional("endpoints_per_switch", keys.endpoints_per_switch,
                  Whole{1, kMaxEndpointsOfSwitch}, "");
  add_group_fields(fields, keys);
}

std::unique_ptr<Fabric> read_slim_fly(const FabricContext& context) {
  SlimFlySpec spec{read_group_links(context)};
  spec.q = context.keys.q;
  spec.degree = (3 * spec.q - delta_of(spec.q)) / 2;
  spec.cables = join_switches(spec.q);
  spec.endpoints_per_switch = context.keys.endpoints_per_switch.value_or((spec.degree + 1) / 2);
  check_size(context, spec);
  RoutingOptions routing = context.keys.routing;
  // One for each cable between switches of the longest path (topology/routing/general_router.h).
  routing.fabric.virtual_channels = context.keys.virtual_channels.value_or(2);
  return std::make_unique<SlimFly>(std::move(routing), std::move(spec));
}

}  // namespace trainyard
