// SPDX-License-Identifier: Apache-2.0
#include "calibration/predict/profile_yaml.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace trainyard {
namespace {

constexpr std::string_view kSource = "calibration";

std::string list(const std::vector<std::string>& texts) {
  std::vector<std::string> scalars;
  for (const std::string& text : texts) {
    scalars.push_back(yaml_scalar(text));
  }
  return fmt::format("[{}]", fmt::join(scalars, ", "));
}

void write(const ConfigNode& node, const std::string& path, int indent, const LeafText& leaf,
           std::string& text) {
  for (const auto& [key, below] : node.entries()) {
    text += fmt::format("{:{}}{}:", "", indent, yaml_scalar(key));
    const std::string name = path.empty() ? key : path + "." + key;
    if (below.is_sequence()) {
      std::vector<std::string> items;
      for (const ConfigNode& item : below.items()) {
        items.push_back(yaml_scalar(item.as_string()));
      }
      text += fmt::format(" [{}]\n", fmt::join(items, ", "));
    } else if (!below.is_map()) {
      text += " " + yaml_scalar(below.as_string()) + "\n";
    } else if (const auto written = leaf(below, name)) {
      text += " " + *written + "\n";
    } else {
      text += "\n";
      write(below, name, indent + 2, leaf, text);
    }
  }
}

class Writer {
 public:
  Writer(const std::vector<FittedText>& fitted, const std::vector<ProfileConstant>& constants) {
    for (const FittedText& one : fitted) {
      for (const ProfileConstant& constant : constants) {
        if (constant.name == one.name) {
          // "gpus.hopper.ll_cost.value", "networks.rdma.latency.value.2".
          by_path_.emplace(constant.path, &one);
        }
      }
    }
  }

  // {value: ..., evidence: ..., source: ..., note: ..., fit: ...}
  [[nodiscard]] std::string value(const ConfigNode& node, const std::string& name) const {
    const ConfigNode value = node.required("value");
    std::string values;
    std::string fits;
    const std::string path = name + ".value";
    bool whole = true;
    if (value.is_sequence()) {
      static constexpr std::array<std::string_view, 3> kNames{"LL", "LL128", "Simple"};
      std::vector<std::string> items;
      std::vector<std::string> of_items;
      for (const ConfigNode& item : value.items()) {
        const FittedText* const one = fitted(fmt::format("{}.{}", path, items.size()));
        if (one != nullptr) {
          of_items.push_back(
              fmt::format("{}: {}", kNames[std::min<std::size_t>(items.size(), 2)], fit(*one)));
        }
        whole = whole && one != nullptr;
        items.push_back(one == nullptr ? item.as_string() : one->value);
      }
      values = list(items);
      fits = of_items.empty() ? "" : fmt::format("{{{}}}", fmt::join(of_items, ", "));
    } else {
      const FittedText* const one = fitted(path);
      values = yaml_scalar(one == nullptr ? value.as_string() : one->value);
      fits = one == nullptr ? "" : fit(*one);
    }
    std::string text = fmt::format("{{value: {}, evidence: ", values);
    if (fits.empty()) {
      text += node.required("evidence").as_string();
      text += ", source: " + yaml_scalar(node.required("source").as_string());
      const auto note = node.optional("note");
      return text + (note ? ", note: " + yaml_scalar(note->as_string()) : "") + "}";
    }
    text += fmt::format("measured, source: {}, ", kSource);
    if (!whole) {
      text +=
          fmt::format("note: {}, ", yaml_scalar(fmt::format("others of the list: {}, {}",
                                                            node.required("evidence").as_string(),
                                                            node.required("source").as_string())));
    }
    return text + "fit: " + fits + "}";
  }

 private:
  [[nodiscard]] const FittedText* fitted(const std::string& path) const {
    const auto found = by_path_.find(path);
    return found == by_path_.end() ? nullptr : found->second;
  }

  static std::string fit(const FittedText& one) {
    return fmt::format("{{low: {}, high: {}, rows: {}, files: {}}}", yaml_scalar(one.low),
                       yaml_scalar(one.high), one.rows, list(one.files));
  }

  std::map<std::string, const FittedText*> by_path_;
};

std::string calibration_section(const ProfileOrigin& origin) {
  const nccl::ProfileBasis& basis = origin.basis;
  std::string text = fmt::format(
      "\ncalibration:\n  cluster: {}\n  files: {}\n  machine: {{gpu: {}, scale_up: {}, network: "
      "{}}}\n  rows:\n",
      yaml_scalar(origin.cluster), list(origin.files), yaml_scalar(basis.machine.gpu),
      yaml_scalar(basis.machine.scale_up), yaml_scalar(basis.machine.network));
  for (const nccl::ProfileBasis::Rows& rows : basis.rows) {
    text += fmt::format("    - {{operation: {}, ranks: {}, from: {}, to: {}, count: {}}}\n",
                        to_string(rows.operation), rows.ranks, to_string(rows.min),
                        to_string(rows.max), rows.count);
  }
  return text;
}

}  // namespace

std::string yaml_scalar(const std::string& text) {
  const auto is_plain = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '/' ||
           letter == ' ' || letter == '-';
  };
  if (!text.empty() && text.front() != '-' && text.front() != ' ' && text.back() != ' ' &&
      std::all_of(text.begin(), text.end(), is_plain)) {
    return text;
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    } else {
      if (letter == '"' || letter == '\\') {
        quoted += '\\';
      }
      quoted += letter;
    }
  }
  return quoted + "\"";
}

std::optional<std::string> cited_text(const ConfigNode& node, const std::string& /*path*/) {
  if (!node.optional("evidence")) {
    return std::nullopt;
  }
  std::vector<std::string> parts;
  for (const auto& [key, value] : node.entries()) {
    parts.push_back(fmt::format("{}: {}", key, yaml_scalar(value.as_string())));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string rewritten(const ConfigNode& root, const std::string& source, const LeafText& leaf) {
  std::string body;
  write(root, "", 0, leaf, body);
  const std::string key = "sources:\n";
  const std::size_t place = body.find(key);
  if (place != std::string::npos) {
    body.insert(place + key.size(), fmt::format("  {}: {}\n", kSource, yaml_scalar(source)));
  }
  return body;
}

std::string calibrated_profile(const ProfileConstants& constants,
                               const std::vector<FittedText>& fitted, const ProfileOrigin& origin) {
  ConfigDocument document = ConfigDocument::parse(constants.text(), constants.name());
  const Writer writer(fitted, constants.all());
  const std::string body = rewritten(
      document.root(), "fitted by trainyard calibrate to the files below",
      [&](const ConfigNode& leaf, const std::string& path) {
        return leaf.optional("value") ? std::optional(writer.value(leaf, path)) : std::nullopt;
      });
  return "# Constants of the event model of NCCL, as trainyard calibrate fitted them to one "
         "machine.\n"
         "# docs/models/nccl-timing.md explains the keys, docs/commands/calibrate.md what `fit` "
         "says.\n\n" +
         body + calibration_section(origin);
}

}  // namespace trainyard
