// SPDX-License-Identifier: Apache-2.0
#include "calibration/predict/profile_constants.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/check.h"
#include "sim/config.h"
#include "sim/text_file.h"

namespace trainyard {
namespace {

constexpr std::array<const char*, 3> kProtocols{"LL", "LL128", "Simple"};

double number(const ConfigNode& node, ConstantKind kind) {
  switch (kind) {
    case ConstantKind::Time:
      return node.as_time().seconds();
    case ConstantKind::Rate:
      return static_cast<double>(node.as_bandwidth().bits_per_second());
    case ConstantKind::Share:
      break;
  }
  return node.as_number(0.0, 10.0);
}

double positive(const ConfigNode& node, ConstantKind kind) {
  const double value = number(node, kind);
  if (value <= 0.0) {
    node.fail("more than zero", node.found());
  }
  return value;
}

ConstantKind kind_of(const std::string& text) {
  if (text.ends_with("/s")) {
    return ConstantKind::Rate;
  }
  return text.ends_with("s") ? ConstantKind::Time : ConstantKind::Share;
}

// A fitted value of the profile, or one of the three of a list.
struct Leaf {
  std::string name;  // Name of the value: "networks.rdma.latency".
  std::optional<std::size_t> item;
  ConfigNode node;
  bool is_estimate = false;
};

void collect(const ConfigNode& node, const std::string& name, std::vector<Leaf>& leaves) {
  if (!node.is_map()) {
    return;
  }
  if (const auto value = node.optional("value")) {
    const std::string evidence = node.required("evidence").as_string();
    const bool is_estimate = evidence == "estimate";
    if (!is_estimate && evidence != "measured") {
      return;
    }
    if (!value->is_sequence()) {
      leaves.push_back(
          {.name = name, .item = std::nullopt, .node = *value, .is_estimate = is_estimate});
      return;
    }
    const std::vector<ConfigNode> items = value->items();
    for (std::size_t item = 0; item < items.size(); ++item) {
      leaves.push_back(
          {.name = name, .item = item, .node = items[item], .is_estimate = is_estimate});
    }
    return;
  }
  for (const auto& [key, below] : node.entries()) {
    collect(below, name.empty() ? key : name + "." + key, leaves);
  }
}

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char letter : name) {
    if (letter == '.') {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& name) {
  return std::ranges::equal(pattern, name, [](const std::string& one, const std::string& other) {
    return one == "*" || one == other;
  });
}

// A node that is read once it is known what of: which kind of value, and how many.
struct Unparsed {
  static void read(const Fields& /*parent*/, const ConfigNode& node,
                   std::optional<ConfigNode>& kept) {
    kept = node;
  }
  static void describe(Schema& schema, std::optional<ConfigNode>& /*kept*/) {
    constexpr Either kValue{Text{}, Number{0.0, 10.0}};
    Either{kValue, List{kValue}}.describe(schema);
  }
};

struct Prior {
  std::vector<std::string> match;
  std::optional<ConfigNode> start;  // A value or three of them.
  std::optional<ConfigNode> min;
  std::optional<ConfigNode> max;
  double spread = 1.0;
};

constexpr Number kSpread{1.01, 1000.0};

void prior_fields(Fields& fields, Prior& prior) {
  const auto parts = [](const ConfigNode& node) { return parts_of(node.as_string()); };
  fields.required("match", prior.match, Via{Text{}, parts},
                  "Names of constants; `*` represents one part.");
  fields.required("start", prior.start, Unparsed{}, "What is assumed, of protocols a list.");
  fields.required("least", prior.min, Unparsed{}, "Lower limit of a fit.");
  fields.required("most", prior.max, Unparsed{}, "Upper limit of a fit.");
  fields.required("spread", prior.spread, kSpread,
                  "A factor, within which two thirds of such constants are.");
  fields.cited_source();
}

class Priors {
 public:
  Priors() = default;
  explicit Priors(ConfigDocument& document) : name_(document.name()) {
    read_fields(document.root(), *this,
                [](Fields& fields, Priors& priors) { priors.fields(fields); });
  }

  void fields(Fields& fields) {
    const auto generation_fields = [](Fields& inner, Priors& priors) {
      inner.required("order", priors.order_, List{Text{}}, "Generations, the oldest first.");
      inner.required("spread", priors.generation_spread_, kSpread,
                     "The same of a constant over that of the generation before.");
    };
    fields.cite_sources();
    fields.required("generations", *this, Group{generation_fields},
                    "What ties constants of generations of GPUs.");
    fields.required("counts", counts_, List{Text{}}, "Whole numbers, which are not fitted.");
    fields.required("constants", priors_, List{Group{prior_fields}},
                    "Of each constant the first entry that matches counts.");
  }

  // `place` is that of the value in the profile.
  [[nodiscard]] ProfileConstant constant(const Leaf& leaf) const {
    const std::vector<std::string> parts = parts_of(leaf.name);
    const auto prior = std::find_if(priors_.begin(), priors_.end(),
                                    [&](const Prior& one) { return matches(one.match, parts); });
    if (prior == priors_.end()) {
      leaf.node.fail(fmt::format("an entry for {} in {}", leaf.name, name_), "none");
    }
    ProfileConstant constant;
    constant.name = leaf.name;
    constant.path = leaf.name + ".value";
    ConfigNode start = *prior->start;
    if (leaf.item) {
      const std::vector<ConfigNode> starts = start.items();
      if (*leaf.item >= starts.size() || *leaf.item >= kProtocols.size()) {
        start.fail("as many values as in the profile", std::to_string(starts.size()));
      }
      start = starts[*leaf.item];
      constant.name += fmt::format(".{}", kProtocols[*leaf.item]);
      constant.path += fmt::format(".{}", *leaf.item);
    }
    constant.kind = kind_of(start.as_string());
    constant.in_file = number(leaf.node, constant.kind);
    constant.is_estimate = leaf.is_estimate;
    constant.start = positive(start, constant.kind);
    constant.min = positive(*prior->min, constant.kind);
    constant.max = positive(*prior->max, constant.kind);
    if (constant.start < constant.min || constant.start > constant.max) {
      start.fail("a value between `least` and `most`", start.found());
    }
    constant.spread = prior->spread;
    return constant;
  }

  // A count has no derivative: it stays as it is in the profile.
  [[nodiscard]] bool is_count(const Leaf& leaf) const {
    return std::find(counts_.begin(), counts_.end(), leaf.name) != counts_.end();
  }

  // Ties `constant` to that of the generation before, if it is of a generation.
  void tie(ProfileConstant& constant, const std::vector<ProfileConstant>& all) const {
    std::vector<std::string> parts = parts_of(constant.name);
    const auto place =
        parts.size() < 3 ? order_.end() : std::find(order_.begin(), order_.end(), parts[1]);
    if (parts[0] != "gpus" || place == order_.end()) {
      return;
    }
    for (auto before = place; before != order_.begin() && !constant.neighbour;) {
      --before;
      const std::string name = "gpus." + *before + constant.name.substr(5 + parts[1].size());
      for (std::size_t index = 0; index < all.size(); ++index) {
        if (all[index].name == name) {
          constant.neighbour = index;
          constant.neighbour_spread = generation_spread_;
        }
      }
    }
  }

 private:
  std::string name_;
  std::vector<std::string> order_;
  double generation_spread_ = 1.0;
  std::vector<Prior> priors_;
  std::vector<std::string> counts_;
};

// Writes a value as exactly as the profile can have it.
std::string exact_text(ConstantKind kind, double value) {
  switch (kind) {
    case ConstantKind::Time:
      return fmt::format("{} ps", std::llround(value * 1e12));
    case ConstantKind::Rate:
      return fmt::format("{} b/s", std::llround(value));
    case ConstantKind::Share:
      break;
  }
  return fmt::format("{:.12f}", value);
}

}  // namespace

void prior_file_fields(Fields& fields) {
  Priors().fields(fields);
}

ProfileConstants::ProfileConstants(const std::filesystem::path& profile,
                                   const std::filesystem::path& priors)
    : name_(profile.string()) {
  static_cast<void>(nccl::Profile::load(profile));  // Refuses what is wrong with it.
  text_ = read_whole_file(profile, profile.string(), kMaxTextBytes);
  ConfigDocument document = ConfigDocument::parse(text_, name_);
  ConfigDocument assumed = ConfigDocument::load(priors);
  const Priors reader(assumed);
  assumed.finish();
  std::vector<Leaf> leaves;
  collect(document.root(), "", leaves);
  for (const Leaf& leaf : leaves) {
    if (!reader.is_count(leaf)) {
      constants_.push_back(reader.constant(leaf));
    }
  }
  for (ProfileConstant& constant : constants_) {
    reader.tie(constant, constants_);
  }
}

nccl::Profile ProfileConstants::profile(std::span<const double> values) const {
  CHECK(values.size() == constants_.size(), "one value for each constant");
  ConfigDocument document = ConfigDocument::parse(text_, name_);
  for (std::size_t index = 0; index < values.size(); ++index) {
    const ProfileConstant& constant = constants_[index];
    document.set(constant.path, exact_text(constant.kind, values[index]), constant.name);
  }
  return nccl::Profile::read(document);
}

std::string constant_text(ConstantKind kind, double value, int digits) {
  switch (kind) {
    case ConstantKind::Time:
      return value < 1e-6   ? fmt::format("{:.{}g} ns", value * 1e9, digits)
             : value < 1e-3 ? fmt::format("{:.{}g} us", value * 1e6, digits)
                            : fmt::format("{:.{}g} ms", value * 1e3, digits);
    case ConstantKind::Rate:
      return fmt::format("{:.{}g} GB/s", value / 8e9, digits);
    case ConstantKind::Share:
      break;
  }
  return fmt::format("{:.{}g}", value, digits);
}

}  // namespace trainyard
