// SPDX-License-Identifier: Apache-2.0
// Reading measured tables: the choice of format, and the YAML form (docs/inputs/measurements.md).
#include "calibration/measured/measurement.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstdint>
#include <limits>
#include <tuple>

#include "calibration/measured/measured_rows.h"
#include "calibration/measured/nccl_json.h"
#include "calibration/measured/nccl_log.h"
#include "calibration/measured/osu_log.h"
#include "sim/config_error.h"
#include "sim/fields.h"
#include "sim/text_file.h"

namespace trainyard {
namespace {

// A log with NCCL's debug output of many ranks may be long; more than this is another kind of file.
constexpr std::uintmax_t kLargestFile = std::uintmax_t{256} << 20;

constexpr std::int64_t kMaxRanks = 10'000'000;

// A text, or null where the source does not say it.
struct MaybeText {
  static void read(const Fields& /*parent*/, const ConfigNode& node, std::string& text) {
    text = node.is_null() ? text : node.as_string();
  }
  static void describe(Schema& schema) {
    schema.limits = "\"type\": [\"string\", \"number\", \"boolean\", \"null\"]";
  }
};

// As printed, or null.
struct MaybeNumber {
  static void read(const Fields& /*parent*/, const ConfigNode& node,
                   std::optional<PrintedNumber>& number) {
    if (!node.is_null() && !(number = parse_printed(node.as_string()))) {
      node.fail("a number of 0 or more, or null", node.found());
    }
  }
  static void describe(Schema& schema) {
    schema.limits = "\"type\": [\"number\", \"null\"], \"minimum\": 0";
  }
};

// Keys that are documentation for people: known, not needed.
void accept(Fields& fields, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    fields.optional(key, std::ignore, Unread{}, "For people.");
  }
}

void source_fields(Fields& fields, MeasuredTable& table) {
  std::string place;
  std::string date;
  fields.required("title", table.source, Text{}, "Publication.");
  fields.required("repo_or_site", place, Text{}, "Where it is.");
  fields.optional("url", place, MaybeText{}, "Its address.");
  fields.optional("date_if_known", date, MaybeText{}, "Its date.");
  table.source += ", " + place + (date.empty() ? "" : ", " + date);
  accept(fields, {"note"});
}

void system_fields(Fields& fields, MeasuredTable& table) {
  fields.required("name", table.system, Text{}, "The machine.");
  fields.required("nodes", table.nodes, Whole{1, kMaxRanks}, "Servers.");
  fields.required("gpus_per_node", table.gpus_per_node, Whole{1, 1024}, "GPUs of a server.");
  accept(fields, {"gpu", "intra", "inter", "nccl_version", "cuda", "env", "notes"});
}

void test_fields(Fields& fields, MeasuredTable& table) {
  static constexpr std::array<std::string_view, 1> kOut{"out"};
  std::size_t columns = 0;  // The only meaning that the rows have.
  fields.required("op", table.operation, Via{Text{}, read_measured_operation}, "Collective.");
  fields.required("ranks", table.ranks, Whole{1, kMaxRanks}, "GPUs.");
  fields.check([&](const ConfigNode& node) {
    const std::int64_t gpus = std::int64_t{*table.nodes} * *table.gpus_per_node;
    if (*table.ranks != gpus) {
      const ConfigNode ranks = node.required("ranks");
      ranks.fail(fmt::format("system.nodes x system.gpus_per_node = {}", gpus), ranks.found());
    }
  });
  fields.optional("in_place_or_out", columns, Choice{kOut}, "Columns without `ip_`.");
  fields.optional("algo_proto", table.algorithm_protocol, MaybeText{}, "What NCCL was told.");
  accept(fields, {"datatype", "in_place_columns", "channels"});
}

void row_fields(Fields& fields, PrintedRow& row) {
  constexpr Whole kBytes{1, std::numeric_limits<std::int64_t>::max() / 8};
  const auto bytes = [&](const ConfigNode& node) { return Bytes(kBytes.value(node)); };
  PrintedTime in_place;
  fields.required("bytes", row.size, Via{kBytes, bytes}, "Bytes of the message.");
  fields.optional("time_us", row.out_of_place.time_us, MaybeNumber{}, "Microseconds.");
  fields.optional("algbw", row.out_of_place.algbw_gbps, MaybeNumber{}, "GB/s.");
  fields.optional("busbw", row.out_of_place.busbw_gbps, MaybeNumber{}, "GB/s.");
  fields.optional("ip_time_us", in_place.time_us, MaybeNumber{}, "The same in place.");
  fields.optional("ip_algbw", in_place.algbw_gbps, MaybeNumber{}, "The same in place.");
  fields.optional("ip_busbw", in_place.busbw_gbps, MaybeNumber{}, "The same in place.");
  if (in_place.time_us || in_place.algbw_gbps || in_place.busbw_gbps) {
    row.in_place = in_place;
  }
}

MeasuredTable parse_yaml_table(const std::string& text, const std::string& name) {
  ConfigDocument document = ConfigDocument::parse(text, name);
  MeasuredTable table;
  read_fields(document.root(), table, measured_fields);
  document.finish();
  return table;
}

}  // namespace

Operation read_measured_operation(const ConfigNode& node) {
  const std::optional<Operation> operation = parse_operation(node.as_string());
  if (!operation) {
    node.fail(fmt::format("one of {}", operation_names()), node.found());
  }
  return *operation;
}

void measured_fields(Fields& fields, MeasuredTable& table) {
  std::vector<PrintedRow> rows;
  fields.required("source", table, Group{source_fields}, "Who measured.");
  fields.required("system", table, Group{system_fields}, "On what.");
  fields.required("test", table, Group{test_fields}, "What.");
  fields.required("rows", rows, List{Group{row_fields}}, "Results.");
  fields.check([&](const ConfigNode& node) {
    const std::vector<ConfigNode> items = node.required("rows").items();
    for (std::size_t index = 0; index < items.size(); ++index) {
      if (const auto reason = unusable(rows[index], factor_of(table))) {
        items[index].fail("a time or a bandwidth", *reason);
      }
    }
    if (items.empty()) {
      node.required("rows").fail("at least one row", "none");
    }
    add_rows(rows, table);
  });
}

// A line that begins with one of the four keys of a YAML table.
bool is_measured_yaml(std::string_view text) {
  for (const std::string key : {"source:", "system:", "test:", "rows:"}) {
    if (text.starts_with(key) || text.find("\n" + key) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

MeasuredTable parse_measurement(const std::string& text, const std::string& name) {
  MeasuredTable table;
  if (is_nccl_log(text)) {
    table = parse_nccl_log(text, name);
  } else if (is_nccl_json(text)) {
    table = parse_nccl_json(text, name);
  } else if (is_osu_log(text)) {
    table = parse_osu_log(text, name);
  } else if (is_measured_yaml(text)) {
    table = parse_yaml_table(text, name);
  } else {
    throw ConfigError(fmt::format(
        "{}: expected nccl-tests output (a header line with size, time, algbw and busbw; or JSON), "
        "a collective of the OSU Micro-Benchmarks, or a YAML table (source, system, test, rows), "
        "found neither",
        name));
  }
  if (table.rows.empty()) {
    throw ConfigError(fmt::format("{}: expected a row with a time, found {}", name,
                                  table.remarks.empty() ? "none" : table.remarks.front()));
  }
  table.name = std::filesystem::path(name).stem().string();
  return table;
}

MeasuredTable load_measurement(const std::filesystem::path& file) {
  return parse_measurement(read_whole_file(file, file.string(), kLargestFile), file.string());
}

}  // namespace trainyard
