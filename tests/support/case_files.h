// SPDX-License-Identifier: Apache-2.0
// Validation cases on the disk: a small table, a case that names it, a folder of both.
#pragma once

#include <filesystem>
#include <string>

#include "calibration/predict/validation_case.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {

inline const std::string kTableHead =
    "source: {title: \"A page\", repo_or_site: \"site\"}\n"
    "system: {name: \"A box\", nodes: 1, gpus_per_node: 8}\n"
    "test: {op: \"all_reduce\", ranks: 8}\n";

// 1 KiB in 10 us, 1 MiB in 100 us, 1 GiB in 5 ms.
inline const std::string kTableRows =
    "rows:\n"
    "  - {bytes: 1024, time_us: 10.00}\n"
    "  - {bytes: 1048576, time_us: 100.0}\n"
    "  - {bytes: 1073741824, time_us: 5000}\n";

class CaseFolder {
 public:
  explicit CaseFolder(const std::string& table = kTableHead + kTableRows) {
    std::filesystem::create_directory(cases());
    // Only cases end in .yaml.
    (void)scratch_.write("cases/table.txt", table);
  }

  [[nodiscard]] std::filesystem::path folder() const { return scratch_.path(); }
  [[nodiscard]] std::filesystem::path cases() const { return scratch_.path() / "cases"; }

  // A case of the table on dgx-h100 with `more` keys, as cases/NAME.yaml.
  [[nodiscard]] std::filesystem::path add(const std::string& name, const std::string& more) const {
    return scratch_.write("cases/" + name + ".yaml",
                          "reference: table.txt\ncluster: dgx-h100\n" + more);
  }
  [[nodiscard]] LoadedCase load(const std::string& more) const {
    return load_validation_case(add("one", more), source_dir());
  }

 private:
  ScratchFolder scratch_;
};

}  // namespace trainyard
