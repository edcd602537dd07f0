// SPDX-License-Identifier: Apache-2.0
// validation/transport/goldens.yaml as tables of texts: columns by name, rows in file order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config.h"

namespace trainyard {

// Reads a golden as a number; "1/256" is one too. Fails the test for anything else.
[[nodiscard]] double golden_number(const std::string& text);
[[nodiscard]] std::int64_t golden_integer(const std::string& text);

class GoldenTable {
 public:
  // `columns` and `rows` are keys of `node`.
  explicit GoldenTable(const ConfigNode& node, std::string_view columns = "columns",
                       std::string_view rows = "rows");
  // The rows of `node` under the columns that stand elsewhere.
  GoldenTable(const ConfigNode& columns, const ConfigNode& node);

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] const std::string& text(std::size_t row, std::string_view column) const;
  [[nodiscard]] double number(std::size_t row, std::string_view column) const;
  [[nodiscard]] std::int64_t integer(std::size_t row, std::string_view column) const;

 private:
  void read(const ConfigNode& columns, const ConfigNode& rows);
  [[nodiscard]] std::size_t index_of(std::string_view column) const;

  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// The file, read once. Its sections are the keys of the root.
[[nodiscard]] ConfigNode transport_goldens(std::string_view section);

// The scalars of the mapping `params` of a section.
class GoldenParams {
 public:
  explicit GoldenParams(const ConfigNode& section, std::string_view key = "params");

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// The numbers of a sequence under `key`.
[[nodiscard]] std::vector<double> golden_numbers(const ConfigNode& node, std::string_view key);

}  // namespace trainyard
