// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/imported_files.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "parallelism/workload/imported_text.h"
#include "parallelism/workload/packed_file.h"

namespace trainyard {
namespace {

constexpr std::string_view kRankMark = "{rank}";
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{4} << 30;
constexpr int kMaxFiles = 1'000'000;

// The rules that differ from one format to the next, in their order.
struct FormatRules {
  std::string_view name;
  std::vector<std::string_view> extensions;  // Empty: any, the first word tells.
  std::vector<std::string_view> first_words;
  bool has_rank_files;
  // Whether the rank of a file is the last number in its name, as ASTRA-sim names its files.
  bool has_rank_in_name;
  bool is_read_by_lines = false;
  bool is_read_by_files = false;
};

const FormatRules& rules_of(ImportedFormat format) {
  static const std::array<FormatRules, kImportedFormats.size()> kRules{{
      {.name = "goal",
       .extensions = {".goal"},
       .first_words = {"num_ranks"},
       .has_rank_files = false,
       .has_rank_in_name = false,
       .is_read_by_lines = true},
      {.name = "simai",
       .extensions = {},
       // All policies of ASTRA-sim (Workload.cc: decode_parallelism), most of which are refused.
       .first_words = {"HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "DATA", "MODEL",
                       "TRANSFORMER", "TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DATA_MODEL",
                       "HYBRID_MODEL_DATA", "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED",
                       "HYBRID_CUSTOMIZED", "MICRO", "DISTRIBUTED_INFERENCE", "DATA_REORDER"},
       .has_rank_files = false,
       .has_rank_in_name = false},
      {.name = "kineto",
       .extensions = {".json", ".jsonl", ".sqlite"},
       .first_words = {},
       .has_rank_files = true,
       .has_rank_in_name = false,
       .is_read_by_files = true},
      {.name = "chakra",
       .extensions = {".et"},
       .first_words = {},
       .has_rank_files = true,
       .has_rank_in_name = true,
       .is_read_by_files = true},
  }};
  return kRules[static_cast<std::size_t>(format)];
}

bool has_extension(const std::filesystem::path& path, ImportedFormat format) {
  const auto& extensions = rules_of(format).extensions;
  return std::find(extensions.begin(), extensions.end(), unpacked_name(path).extension()) !=
         extensions.end();
}

// The beginning of a file, in which its first word is, unless more blanks than a person would write
// stand before it.
std::string head_of(const std::filesystem::path& file) {
  constexpr std::size_t kHeadBytes = 65'536;
  if (unpacked_name(file) != file) {
    return read_packed_file(file, kMaxBytes).substr(0, kHeadBytes);
  }
  std::ifstream stream(file, std::ios::binary);
  std::string head(kHeadBytes, '\0');
  stream.read(head.data(), kHeadBytes);
  head.resize(static_cast<std::size_t>(stream.gcount()));
  return head;
}

std::string_view first_word(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_first_of(kBlanks));
}

// The last number in the name before its extension, where it is the rank.
std::optional<int> rank_in(const std::filesystem::path& path, ImportedFormat format) {
  if (!rules_of(format).has_rank_in_name) {
    return std::nullopt;
  }
  const std::string stem = unpacked_name(path).stem().string();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto last = std::find_if(stem.rbegin(), stem.rend(), is_digit);
  const auto first = std::find_if_not(last, stem.rend(), is_digit);
  const std::string digits(first.base(), last.base());
  const std::optional<std::int64_t> rank = imported_number(digits, kMaxFiles);
  return rank ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

// Files of a folder whose rank a name gives.
template <typename RankOf>
std::vector<std::pair<std::optional<int>, std::filesystem::path>> files_in(
    const std::filesystem::path& folder, const RankOf& is_wanted) {
  std::vector<std::pair<std::optional<int>, std::filesystem::path>> found;
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder.empty() ? "." : folder, error);
  if (error) {
    throw ConfigError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  }
  for (const std::filesystem::directory_entry& entry : entries) {
    const std::filesystem::path name = entry.path().filename();
    if (const auto rank = is_wanted(name)) {
      found.emplace_back(*rank, folder / name);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::pair<std::optional<int>, std::filesystem::path>> files_of(
    const std::filesystem::path& path, ImportedFormat format) {
  using Wanted = std::optional<std::optional<int>>;
  const std::string name = path.filename().string();
  const std::size_t mark = name.find(kRankMark);
  if (mark != std::string::npos) {
    const std::string before = name.substr(0, mark);
    const std::string after = name.substr(mark + kRankMark.size());
    return files_in(path.parent_path(), [&](const std::filesystem::path& file) -> Wanted {
      const std::string text = file.string();
      if (text.size() <= before.size() + after.size() || !text.starts_with(before) ||
          !text.ends_with(after)) {
        return std::nullopt;
      }
      const std::string digits =
          text.substr(before.size(), text.size() - before.size() - after.size());
      const std::optional<std::int64_t> rank = imported_number(digits, kMaxFiles);
      return rank ? Wanted(static_cast<int>(*rank)) : std::nullopt;
    });
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return files_in(path, [&](const std::filesystem::path& file) -> Wanted {
      return has_extension(file, format) ? Wanted(rank_in(file, format)) : std::nullopt;
    });
  }
  return {{rank_in(path, format), path}};
}

}  // namespace

std::string_view to_string(ImportedFormat format) {
  return rules_of(format).name;
}

std::optional<ImportedFormat> recognise_imported(const std::filesystem::path& path) {
  std::error_code error;
  const std::string extension = unpacked_name(path).extension().string();
  if (std::filesystem::is_directory(path, error)) {
    // A directory of traces may have a description in JSON beside them.
    for (const ImportedFormat format : {ImportedFormat::Chakra, ImportedFormat::Kineto}) {
      if (!files_of(path, format).empty()) {
        return format;
      }
    }
    return std::nullopt;
  }
  for (const ImportedFormat format : kImportedFormats) {
    if (has_extension(path, format)) {
      return format;
    }
  }
  if (extension == ".yaml" || !std::filesystem::is_regular_file(path, error)) {
    return std::nullopt;
  }
  const std::string head = head_of(path);
  if (is_goal_magic(head)) {
    return ImportedFormat::Goal;
  }
  const std::string_view word = first_word(head);
  for (const ImportedFormat format : kImportedFormats) {
    const std::vector<std::string_view>& words = rules_of(format).first_words;
    if (std::find(words.begin(), words.end(), word) != words.end()) {
      return format;
    }
  }
  return std::nullopt;
}

ImportedFile with_text(const ImportedFile& file) {
  return {.name = file.name,
          .rank = file.rank,
          .text = file.is_on_disc ? read_packed_file(file.name, kMaxBytes) : file.text};
}

std::vector<ImportedFile> read_imported_files(const std::filesystem::path& path,
                                              ImportedFormat format) {
  const auto found = files_of(path, format);
  if (found.empty()) {
    fail_imported(path.string(), "",
                  fmt::format("files named *{}, one for each rank",
                              fmt::join(rules_of(format).extensions, " or *")),
                  "none");
  }
  if (found.size() > 1 && !rules_of(format).has_rank_files) {
    fail_imported(path.string(), "",
                  fmt::format("one file, as a {} file has all ranks", rules_of(format).name),
                  std::to_string(found.size()));
  }
  std::vector<ImportedFile> files;
  const FormatRules& rules = rules_of(format);
  for (const auto& [rank, file] : found) {
    if (rules.is_read_by_files || (rules.is_read_by_lines && !is_packed(file))) {
      static_cast<void>(readable_size(file, kMaxBytes));
      files.push_back({.name = file.string(), .rank = rank, .text = {}, .is_on_disc = true});
    } else {
      files.push_back(
          {.name = file.string(), .rank = rank, .text = read_packed_file(file, kMaxBytes)});
    }
  }
  return files;
}

}  // namespace trainyard
