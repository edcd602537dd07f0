// SPDX-License-Identifier: Apache-2.0
// A validation case: one measured table, the cluster that represents the machine, and what must be
// known about the run. One YAML file each; docs/commands/validate.md explains the keys.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/measured/measurement.h"
#include "collectives/schedule/operation.h"
#include "network/contract/network.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Rows that do not count, both ends included.
struct ExcludedRows {
  std::optional<Bytes> from = {};  // Every smaller size, if absent.
  std::optional<Bytes> to = {};    // Every larger size, if absent.
  std::string reason;

  [[nodiscard]] bool holds(Bytes size) const;
  // "4KiB to 64MiB", "up to 2MiB", "every size".
  [[nodiscard]] std::string sizes() const;
};

struct ValidationCase {
  std::string name;          // The file's name without folder and ending.
  std::string system_class;  // "h100-nvswitch"; "unclassified" if the file does not say.
  std::string system;        // Machines of one owner: left out together. The name if not said.
  std::filesystem::path reference;
  std::filesystem::path cluster;
  int nodes = 0;
  int gpus_per_node = 0;
  int ranks = 0;                      // nodes x gpus_per_node.
  std::vector<std::string> settings;  // "key.path=value", as --set takes them.
  // NCCL's variables, in the order of the file.
  std::vector<std::pair<std::string, std::string>> environment;
  int gpus_per_process = 1;
  bool cuda_graph = false;
  bool symmetric = false;                        // Buffers registered as symmetric windows.
  std::optional<std::string> nccl_version = {};  // "2.27.7"; a number that parse_version takes.
  std::optional<Fidelity> fidelity = {};         // Otherwise the predictor's choice.
  std::optional<std::filesystem::path> graph_file = {};  // NCCL_GRAPH_FILE of the run.
  std::optional<std::filesystem::path> tuner_csv = {};   // Choices of a tuner plugin.
  bool in_place = false;                                 // The in-place column counts.
  // Set for a linear sweep; see validation.h.
  bool one_row_per_doubling = false;
  std::vector<ExcludedRows> excluded;
  std::optional<std::string> not_covered = {};  // Why it cannot be predicted yet.
  std::string note;

  // The value of a variable; nullptr if it was not set.
  [[nodiscard]] const std::string* variable(std::string_view variable_name) const;
  // Returns why rows of this size do not count; nullptr if they do.
  [[nodiscard]] const std::string* exclusion(Bytes size) const;
  [[nodiscard]] ClusterOverrides overrides() const;
};

// The case and its measured table, which must agree about operation and ranks. `cluster` is looked
// for beside the case file, then below `root` (the folder above configs), then by name in
// configs/clusters. Throws ConfigError with file, line and column.
struct LoadedCase {
  ValidationCase item;
  MeasuredTable table;
  Operation operation = Operation::AllReduce;
};
class ConfigNode;
class Fields;
// All but the name; files are looked for beside `file` and below `root`.
void case_fields(Fields& fields, LoadedCase& loaded, const std::filesystem::path& file,
                 const std::filesystem::path& root);
[[nodiscard]] LoadedCase load_validation_case(const std::filesystem::path& file,
                                              const std::filesystem::path& root);

// The first of the places that is a file; fails at `node` where none is.
[[nodiscard]] std::filesystem::path first_file(const ConfigNode& node,
                                               std::initializer_list<std::filesystem::path> places,
                                               std::string_view expected);
// The cluster file that `node` of `file` names.
[[nodiscard]] std::filesystem::path cluster_file(const ConfigNode& node,
                                                 const std::filesystem::path& file,
                                                 const std::filesystem::path& root);
// Every *.yaml of a folder, by name. Throws ConfigError if there is none.
[[nodiscard]] std::vector<std::filesystem::path> validation_case_files(
    const std::filesystem::path& folder);

}  // namespace trainyard
