// SPDX-License-Identifier: Apache-2.0
// Options that subcommands have in common, and errors about them in one line:
//   --nodes: expected a whole number from 1 to 1000000, found "0"
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/option_table.h"
#include "network/packet_parts/packet_team.h"
#include "report/formats/table.h"
#include "sim/numbers.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Throws "WHAT: expected EXPECTED, found "FOUND""; suggests the nearest of `candidates`.
[[noreturn]] void fail_value(std::string_view what, std::string_view expected,
                             std::string_view found, std::span<const std::string> candidates = {});
// The same for the value of --NAME.
[[noreturn]] void fail_option(std::string_view name, std::string_view expected,
                              std::string_view found, std::span<const std::string> candidates = {});

// The given values, by option name; an option without a value has an empty one.
using OptionValues = std::map<std::string, std::vector<std::string>, std::less<>>;

// The result of a command, which may come in any form: what --format FORM prints.
struct KeptResult {
  std::function<std::string(Format)> rendered = {};  // Empty: the command has no forms.
};

// The values of the options of a command, each checked as it is read; nothing where an option is
// absent.
class OptionReader {
 public:
  // `observed`: where the command shall put its result for a comparison (effects.h), if anywhere.
  OptionReader(Command command, OptionValues values, std::string* observed = nullptr)
      : command_(std::move(command)), values_(std::move(values)), observed_(observed) {}

  [[nodiscard]] const Command& command() const { return command_; }
  [[nodiscard]] bool given(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  // Throws ConfigError where it is absent; `expected` says what it is: "a file to read".
  [[nodiscard]] std::string required_text(std::string_view name,
                                          std::string_view expected = "") const;
  [[nodiscard]] std::optional<int> integer(std::string_view name, int min, int max) const;
  // At least one byte.
  [[nodiscard]] std::optional<Bytes> message_size(std::string_view name) const;
  // One of the choices that the row of the option has, or the first where it is absent: its index,
  // and the word itself.
  [[nodiscard]] std::size_t choice(std::string_view name) const;
  [[nodiscard]] std::string word(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  // The value, or the first choice where it is absent, whether or not it is one of the choices.
  [[nodiscard]] std::string chosen(std::string_view name) const;
  // The values as they were given, for what no result depends on: no read is remembered.
  [[nodiscard]] const OptionValues& values() const { return values_; }

  // The options that were read other than by their choice since the last call of forget_reads().
  // All others are the same to the reader whether they are absent or have their default.
  [[nodiscard]] const std::set<std::string, std::less<>>& reads() const { return reads_; }
  void forget_reads() { reads_.clear(); }

  // Takes a value for an option that is absent, and why.
  void assume(std::string_view name, std::string value, std::string reason);
  [[nodiscard]] std::string* observed() const { return observed_; }
  // Where the command keeps its result for whoever renders it once more, in each form; nothing:
  // nobody does.
  void keep_in(KeptResult& kept) { kept_ = &kept; }
  [[nodiscard]] KeptResult* kept() const { return kept_; }
  // The processes that run the command together (team.h); nothing: this one alone.
  void join(PacketTeam& team) { team_ = &team; }
  [[nodiscard]] PacketTeam* team() const { return team_; }
  // Why a value was assumed; empty where it was not.
  [[nodiscard]] std::string reason(std::string_view name) const;

 private:
  Command command_;
  OptionValues values_;
  std::map<std::string, std::string, std::less<>> reasons_ = {};
  mutable std::set<std::string, std::less<>> reads_ = {};
  std::string* observed_ = nullptr;
  PacketTeam* team_ = nullptr;
  KeptResult* kept_ = nullptr;
};

// "a,b,c" into its parts, empty ones included.
[[nodiscard]] std::vector<std::string> split_list(std::string_view list);
// "0-3,8,16-31:8": 0, 1, 2, 3, 8, 16, 24, each up to 999,999; nothing for anything else. Ranges
// rise.
[[nodiscard]] std::vector<int> index_list(std::string_view text);
// "a", "a or b", "a, b or c".
[[nodiscard]] std::string alternatives(std::span<const std::string> words);

// --cluster, --nodes, --gpus-per-node, --set, --pull.
[[nodiscard]] Options cluster_options();
// --parts alone.
[[nodiscard]] Option parts_option();
// Those of them that change a cluster: all but the first.
[[nodiscard]] Options override_options();
[[nodiscard]] ClusterOverrides cluster_overrides(const OptionReader& reader);

// --estimates, of commands whose notes count the estimates of the cluster.
[[nodiscard]] Option estimates_option();

// --seed, and of what.
[[nodiscard]] Option seed_option(std::string_view help);
[[nodiscard]] std::optional<std::uint64_t> read_seed(const OptionReader& reader);

// --threads: how much runs at once, which never changes a result. 0: as many as the machine has.
[[nodiscard]] Option threads_option();
[[nodiscard]] unsigned read_threads(const OptionReader& reader);

// --minbytes, --maxbytes, --stepfactor.
[[nodiscard]] Options size_options(std::string_view needs = "");

// --format, --effects, --output and --report (html_output.h), or --output alone.
[[nodiscard]] Options output_options();
[[nodiscard]] Option output_file_option();
// Words that people say for --format.
inline constexpr std::string_view kFormatWords = "json=json csv=csv table=table";
[[nodiscard]] Format output_format(const OptionReader& reader);
// The file of --NAME, if it is given. Refuses at once what could not be written at the end.
[[nodiscard]] std::optional<std::string> output_file(const OptionReader& reader,
                                                     std::string_view name);
// The same for a file that an option without a value writes.
void check_writable(std::string_view option, const std::filesystem::path& file);
// Refuses one file for two options.
struct NamedFile {
  std::string_view option;
  std::optional<std::string> file;
};
void check_distinct_files(const std::vector<NamedFile>& files);

// Refuses an output that is what option `input` of the command reads: the value is a file, a folder
// of files, a name in configs, or has such a one in it ("server=FILE", "FILE@0-3"). Options that
// read nothing pass.
void check_not_read(const NamedFile& output, const Command& command, std::string_view input,
                    const std::string& value);
// The same for all that the command is given to read.
void check_not_read(const NamedFile& output, const OptionReader& reader);

// Refuses a key that is set twice by --NAME: "nodes=4" and "nodes=5" are no order to be kept.
void check_keys(std::string_view name, const std::vector<std::string>& settings);

// Refuses a --gpus-per-process that no run can have: processes have GPUs of one node, equally many.
void check_gpus_per_process(int gpus, const Cluster& cluster);

}  // namespace trainyard
