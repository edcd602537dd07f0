// SPDX-License-Identifier: Apache-2.0
#include "support/transport_goldens.h"
#include "support/paths.h"

#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace trainyard {
namespace {

double plain_number(const std::string& text) {
  std::size_t used = 0;
  const double value = std::stod(text, &used);
  INFO(text);
  REQUIRE(used == text.size());
  return value;
}

}  // namespace

double golden_number(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    return plain_number(text);
  }
  return plain_number(text.substr(0, slash)) / plain_number(text.substr(slash + 1));
}

std::int64_t golden_integer(const std::string& text) {
  const double value = golden_number(text);
  INFO(text);
  REQUIRE(value == std::floor(value));
  return static_cast<std::int64_t>(value);
}

GoldenTable::GoldenTable(const ConfigNode& node, std::string_view columns, std::string_view rows) {
  read(node.required(columns), node.required(rows));
}

GoldenTable::GoldenTable(const ConfigNode& columns, const ConfigNode& node) {
  read(columns, node.required("rows"));
}

void GoldenTable::read(const ConfigNode& columns, const ConfigNode& rows) {
  for (const ConfigNode& name : columns.items()) {
    columns_.push_back(name.as_string());
  }
  for (const ConfigNode& row : rows.items()) {
    std::vector<std::string> texts;
    for (const ConfigNode& value : row.items()) {
      texts.push_back(value.is_scalar() ? value.as_string() : "");
    }
    REQUIRE(texts.size() == columns_.size());
    rows_.push_back(std::move(texts));
  }
}

std::size_t GoldenTable::index_of(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  INFO(column);
  REQUIRE(found != columns_.end());
  return static_cast<std::size_t>(found - columns_.begin());
}

const std::string& GoldenTable::text(std::size_t row, std::string_view column) const {
  return rows_.at(row).at(index_of(column));
}

double GoldenTable::number(std::size_t row, std::string_view column) const {
  return golden_number(text(row, column));
}

std::int64_t GoldenTable::integer(std::size_t row, std::string_view column) const {
  return golden_integer(text(row, column));
}

ConfigNode transport_goldens(std::string_view section) {
  static ConfigDocument document =
      ConfigDocument::load(source_dir() / "validation/transport/goldens.yaml");
  return document.root().required(section);
}

GoldenParams::GoldenParams(const ConfigNode& section, std::string_view key) {
  for (const auto& [name, value] : section.required(key).entries()) {
    values_.emplace(name, value.as_string());
  }
}

bool GoldenParams::has(std::string_view name) const {
  return values_.find(name) != values_.end();
}

const std::string& GoldenParams::text(std::string_view name) const {
  const auto found = values_.find(name);
  INFO(name);
  REQUIRE(found != values_.end());
  return found->second;
}

double GoldenParams::number(std::string_view name) const {
  return golden_number(text(name));
}

std::int64_t GoldenParams::integer(std::string_view name) const {
  return golden_integer(text(name));
}

std::vector<double> golden_numbers(const ConfigNode& node, std::string_view key) {
  std::vector<double> numbers;
  for (const ConfigNode& item : node.required(key).items()) {
    numbers.push_back(golden_number(item.as_string()));
  }
  return numbers;
}

}  // namespace trainyard
