// SPDX-License-Identifier: Apache-2.0
// Values of a document that stand in other files: names and bases.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config.h"
#include "sim/printable.h"
#include "sim/text_file.h"
#include "sim/yaml_names.h"
#include "sim/yaml_tree.h"

namespace trainyard {

namespace {

// Files on files; a base of a base of a base is hard enough to read.
constexpr std::size_t kMaxLevels = 8;
constexpr std::string_view kCitations = "sources";

class Composer {
 public:
  Composer(YamlTree& tree, const std::filesystem::path& folder) : tree_(tree), folder_(folder) {}

  void compose(YamlValue& value, const std::string& path) {
    if (value.kind == YamlValue::Kind::Scalar) {
      YamlValue base = load(value, path, path);
      value = std::move(base);
      value.composed = true;
      return;
    }
    if (value.kind != YamlValue::Kind::Mapping) {
      return;
    }
    const auto is_base = [](const YamlEntry& entry) { return entry.key == "base"; };
    const auto base_entry = std::ranges::find_if(value.entries, is_base);
    if (base_entry == value.entries.end()) {
      return;
    }
    if (value.composed) {
      tree_.fail(base_entry->place, path,
                 "the base is in place already; give another name for the whole instead");
    }
    YamlValue base = load(*base_entry->value, join_path(path, "base"), path);
    value.entries.erase(base_entry);
    overlay(base, value);
    value.entries = std::move(base.entries);
    value.composed = true;
  }

 private:
  // Keys of `over` replace those of `base`; new ones come last. Citations join those of the base,
  // whose values refer to them.
  static void overlay(YamlValue& base, const YamlValue& over) {
    for (const YamlEntry& entry : over.entries) {
      YamlEntry* const old = base.find(entry.key);
      if (old != nullptr && entry.key == kCitations &&
          old->value->kind == YamlValue::Kind::Mapping) {
        overlay(*old->value, *entry.value);
      } else if (old != nullptr) {
        *old = entry;
      } else {
        base.entries.push_back(entry);
      }
    }
  }

  // The mapping of the file that `name` at `path` names, without `source`, which it must have or
  // else `sources`; for `value_path`.
  YamlValue load(const YamlValue& name, const std::string& path, const std::string& value_path) {
    if (name.kind != YamlValue::Kind::Scalar) {
      tree_.fail(name.place, path, "expected the name of a file in " + shown_folder());
    }
    const std::filesystem::path file = find_file(name, path);
    if (std::ranges::find(open_, file) != open_.end()) {
      tree_.fail(name.place, path, in_quotes(name.text) + " is a base of itself");
    }
    if (open_.size() == kMaxLevels) {
      tree_.fail(name.place, path,
                 "expected at most " + std::to_string(kMaxLevels) + " files on one another");
    }
    open_.push_back(file);
    const std::size_t origin = tree_.add_file(file.string());
    YamlValue value = *tree_.parse(
        read_whole_file(file, std::string(tree_.file_name(origin)), YamlTree::kMaxBytes), origin);
    if (value.kind != YamlValue::Kind::Mapping) {
      tree_.fail({.origin = origin}, "", "expected a mapping");
    }
    const auto is_source = [](const YamlEntry& entry) { return entry.key == "source"; };
    if (std::erase_if(value.entries, is_source) == 0 && value.find(kCitations) == nullptr) {
      tree_.fail(value.place, "", "missing key \"source\"");
    }
    compose(value, value_path);
    open_.pop_back();
    return value;
  }

  [[nodiscard]] std::filesystem::path find_file(const YamlValue& name, const std::string& path) {
    const std::filesystem::path file(name.text);
    if (file.has_parent_path() || file.extension() == ".yaml") {
      const std::filesystem::path here(tree_.file_name(name.place.origin));
      return (here.parent_path() / file).lexically_normal();
    }
    const std::vector<std::string> names = yaml_names_in(folder_);
    if (std::ranges::find(names, name.text) != names.end()) {
      return folder_ / (name.text + ".yaml");
    }
    tree_.fail(name.place, path,
               "expected the name of a file in " + shown_folder() + ", found " +
                   in_quotes(name.text) + did_you_mean(name.text, names, known(names)));
  }

  // "configs/servers".
  [[nodiscard]] std::string shown_folder() const {
    return (folder_.parent_path().filename() / folder_.filename()).string();
  }

  static std::string known(const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) {
      list += (list.empty() ? "; known are " : ", ") + name;
    }
    return list;
  }

  YamlTree& tree_;
  const std::filesystem::path& folder_;
  std::vector<std::filesystem::path> open_;  // The files that are being read.
};

}  // namespace

void ConfigDocument::compose(const ConfigNode& node, const std::filesystem::path& folder) {
  Composer(*tree_, folder).compose(*node.value_, node.path_);
}

}  // namespace trainyard
