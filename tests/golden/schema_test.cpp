// SPDX-License-Identifier: Apache-2.0
// The schemas of configs/schema and the key lists of the docs are what the tables of fields say,
// and each shipped file keeps to its schema. UPDATE_GOLDEN=1 rewrites schemas and lists. A list
// stands in docs/inputs/keys.md between "<!-- keys: NAME -->" and "<!-- end of keys -->".
#include "support/catch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "calibration/fit/intervals.h"
#include "calibration/hosts/host_set.h"
#include "calibration/measured/measurement.h"
#include "calibration/measured/memory_measurement.h"
#include "calibration/predict/budgets.h"
#include "calibration/predict/profile_constants.h"
#include "calibration/predict/validation_case.h"
#include "calibration/training/step_intervals.h"
#include "calibration/training/step_values.h"
#include "calibration/training/training_case.h"
#include "calibration/training/training_rows.h"
#include "cli/collective/groups_file.h"
#include "cli/common/commands.h"
#include "cli/sweep/sweep_file.h"
#include "collectives/hccl/hccl_profile.h"
#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "collectives/schedule/message_file.h"
#include "hw/control/control_profile.h"
#include "hw/parts/catalogue.h"
#include "hw/transport/transport_profile.h"
#include "nccl/timing/profile.h"
#include "network/traffic/traffic_sizes.h"
#include "network/traffic/traffic_spec.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/recommender_workload.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"
#include "sim/fields.h"
#include "support/convolutional.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/recommenders.h"
#include "support/schema_text.h"
#include "support/transfer_measurement.h"
#include "topology/cluster/cluster_keys.h"
#include "topology/server/part_costs.h"
#include "topology/server/server_keys.h"

namespace trainyard {
namespace {

struct Kind {
  std::string name;   // The file configs/schema/NAME.json.
  std::string title;  // Names such a file for people.
  Schema schema;
};

Schema sweep_schema() {
  std::vector<Command> swept = all_commands();
  std::erase_if(swept, [](const Command& command) { return !command.is_swept; });
  return schema_of<SweepSpec>(
      [&](Fields& fields, SweepSpec& spec) { sweep_fields(fields, spec, swept); });
}

Schema own_parts_schema() {
  Schema schema;
  describe_own_parts(schema);
  return schema;
}

std::vector<Kind> kinds() {
  std::vector<Kind> all{
      {"model", "A transformer as its shapes", schema_of<Model>(model_fields)},
      {"workload", "A training step of a transformer", schema_of<Workload>(workload_fields)},
      {"software", "The software that trains", schema_of<SoftwareProfile>(software_fields)},
      {"gpu-rates", "How fast kernels run on GPUs", schema_of<GpuRates>(rate_fields)},
      {"recommender", "A recommendation model", schema_of<RecommenderModel>(recommender_fields)},
      {"recommender-workload", "A training step of a recommendation model",
       schema_of<RecommenderWorkload>(recommender_workload_fields)},
      {"recommender-software", "The software that trains recommendation models",
       schema_of<RecommenderSoftware>(recommender_software_fields)},
      {"convolutional", "A convolutional network",
       schema_of<ConvolutionalModel>(convolutional_fields)},
      {"convolutional-workload", "A training step of a convolutional network",
       schema_of<ConvolutionalWorkload>(convolutional_workload_fields)},
      {"hccl-profile", "Costs of the tasks of HCCL", schema_of<HcclProfile>(hccl_fields)},
      {"mpi-profile", "Costs of messages of MPI", schema_of<MpiProfile>(mpi_fields)},
      {"mpi-rules", "Which algorithm MPI takes", schema_of<MpiRules>(mpi_rule_fields)},
      {"nccl-profile", "Constants of NCCL's event model",
       schema_of<nccl::Profile>(nccl::profile_fields)},
      {"measured-table", "A measured table of a collective",
       schema_of<MeasuredTable>(measured_fields)},
      {"nccl-case", "A measured collective and what it ran on",
       schema_of<LoadedCase>(
           [](Fields& fields, LoadedCase& loaded) { case_fields(fields, loaded, {}, {}); })},
      {"measured-host", "Measurements of one host", schema_of<HostSet>(host_set_fields)},
      {"training-table", "Measured training steps",
       schema_of<TrainingTable>(training_table_fields)},
      {"measured-memory", "Measured memory of GPUs in training",
       schema_of<MemoryMeasurements>(memory_fields)},
      {"training-case", "Measured training steps and what they ran on",
       schema_of<std::monostate>(
           [](Fields& fields, std::monostate&) { training_case_fields(fields); })},
      {"budgets", "Errors that validation may not exceed", schema_of<Budgets>(budget_fields)},
      {"intervals", "Intervals of predicted times",
       schema_of<Intervals>([](Fields& fields, Intervals& read) { read.fields(fields); })},
      {"step-intervals", "Intervals of predicted training steps",
       schema_of<StepIntervals>([](Fields& fields, StepIntervals& read) { read.fields(fields); })},
      {"nccl-priors", "What is assumed of constants of NCCL's event model",
       schema_of<std::monostate>(
           [](Fields& fields, std::monostate&) { prior_file_fields(fields); })},
      {"gpu-rates-priors", "What is assumed of rates of GPUs",
       schema_of<StepPriors>([](Fields& fields, StepPriors& read) { read.fields(fields); })},
      {"cluster", "Servers and what joins them", schema_of<ClusterKeys>(cluster_fields)},
      {"server", "What is in a server", schema_of<ServerKeys>(server_file_fields)},
      {"parts", "Parts of your own", own_parts_schema()},
      {"costs", "What parts cost and draw", schema_of<PartCosts>(cost_fields)},
      {"transport", "How RDMA runs over a fabric",
       schema_of<TransportProfile>([](Fields& fields, TransportProfile& profile) {
         transport_fields(fields, profile, {}, {});
       })},
      {"traffic", "Flows over a cluster", schema_of<TrafficSpec>(traffic_fields)},
      {"flow-sizes", "A distribution of sizes of flows", schema_of<SizesFile>(sizes_fields)},
      {"groups", "Communicators side by side", schema_of<GroupsFile>(groups_fields)},
      {"messages", "A collective algorithm as a list of messages",
       schema_of<MessageFile>(message_file_fields)},
      {"sweep", "A command over lists and ranges of its options", sweep_schema()},
      {"measured-transfers", "Measured bandwidths and latencies of links",
       schema_of<TransferMeasurements>([](Fields& fields, TransferMeasurements& measured) {
         transfer_fields(fields, measured, {});
       })},
      {"measured-recommenders", "Measured steps of recommendation models",
       schema_of<std::vector<MeasuredRecommender>>(measured_recommender_fields)},
      {"ecn", "When queues mark packets", schema_of<MarkingPresets>(marking_fields)},
  };
  for (const auto& [name, schema] : catalogue_schemas()) {
    all.push_back({name, "Parts of the catalogue: " + name, schema});
  }
  for (const auto& [name, schema] : control_schemas()) {
    all.push_back({name, "A congestion control: " + name, schema});
  }
  return all;
}

// Requires that the file has the text, or writes it.
void hold(const std::filesystem::path& file, const std::string& text) {
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file, std::ios::binary) << text;
  }
  REQUIRE(read_text_file(file) == text);
}

}  // namespace

TEST_CASE("the schemas for editors are those of the tables", "[golden]") {
  std::set<std::filesystem::path> files;
  for (const Kind& kind : kinds()) {
    const std::filesystem::path file = source_dir() / "configs/schema" / (kind.name + ".json");
    hold(file, to_json(kind.schema, kind.title));
    files.insert(file);
  }
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "configs/schema")) {
    REQUIRE(files.contains(entry.path()));
  }
}

TEST_CASE("the key lists of the docs are those of the tables", "[golden]") {
  const std::filesystem::path page = source_dir() / "docs/inputs/keys.md";
  for (const Kind& kind : kinds()) {
    const std::string start = "<!-- keys: " + kind.name + " -->\n";
    const std::string text = read_text_file(page);
    const std::size_t first = text.find(start);
    INFO(start);
    REQUIRE(first != std::string::npos);
    const std::size_t list = first + start.size();
    const std::size_t end = text.find("\n<!-- end of keys -->", list);
    REQUIRE(end != std::string::npos);
    hold(page, text.substr(0, list) + "\n" + to_markdown(kind.schema) + text.substr(end));
  }
}

TEST_CASE("the shipped files keep to their schemas", "[golden]") {
  const ProgramResult result =
      run_shell("python3 " + (source_dir() / "tools/ci/check_schemas.py").string() + " " +
                    source_dir().string(),
                source_dir());
  REQUIRE(result.output + result.error == "");
  REQUIRE(result.status == 0);
}

}  // namespace trainyard
