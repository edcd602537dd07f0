// SPDX-License-Identifier: Apache-2.0
// Options that subcommands have in common, and errors about them in one line:
//   --nodes: expected a whole number from 1 to 1000000, found "0"
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/formats/table.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Parses strictly: no abbreviations, nothing unknown, nothing twice unless it is composing.
// `positional` names the options that the arguments without a name fill, in order; the last one
// takes all that are left if it is written "NAME...".
[[nodiscard]] boost::program_options::variables_map parse_options(
    std::string_view command, std::span<const std::string> arguments,
    const boost::program_options::options_description& described,
    const std::vector<std::string>& positional);

// Throws "WHAT: expected EXPECTED, found "FOUND""; suggests the nearest of `candidates`.
[[noreturn]] void fail_value(std::string_view what, std::string_view expected,
                             std::string_view found, std::span<const std::string> candidates = {});
// The same for the value of --NAME.
[[noreturn]] void fail_option(std::string_view name, std::string_view expected,
                              std::string_view found, std::span<const std::string> candidates = {});

// The values of options that are declared as text, each checked; nothing where the option is
// absent.
class OptionReader {
 public:
  // `command` stands in the error about a missing option; it must outlive the reader, as must the
  // values.
  OptionReader(std::string_view command, const boost::program_options::variables_map& values)
      : command_(command), values_(values) {}

  [[nodiscard]] bool given(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] std::string required_text(std::string_view name) const;
  [[nodiscard]] std::optional<int> integer(std::string_view name, int least, int most) const;
  // At least one byte.
  [[nodiscard]] std::optional<Bytes> message_size(std::string_view name) const;
  // Index of the choice; 0 where absent. The error adds `remark`, such as why there is no other.
  [[nodiscard]] std::size_t choice(std::string_view name, std::vector<std::string> choices,
                                   std::string_view remark = "") const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;

 private:
  std::string_view command_;
  const boost::program_options::variables_map& values_;
};

// The value of an option that is text; `name` stands for it in the help.
[[nodiscard]] boost::program_options::typed_value<std::string>* text_value(const char* name);

// "a,b,c" into its parts, empty ones included.
[[nodiscard]] std::vector<std::string> split_list(std::string_view list);
// "a", "a or b", "a, b or c".
[[nodiscard]] std::string alternatives(std::span<const std::string> words);

// --help, --cluster, --nodes, --gpus-per-node, --set, --pull.
void add_cluster_options(boost::program_options::options_description& options);
// Those of them that change a cluster: all but the first two.
void add_override_options(boost::program_options::options_description& options);
[[nodiscard]] ClusterOverrides cluster_overrides(const OptionReader& reader);

// --format, --output.
void add_output_options(boost::program_options::options_description& options);
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

}  // namespace trainyard
