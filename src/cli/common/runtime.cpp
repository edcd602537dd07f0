// SPDX-License-Identifier: Apache-2.0
#include "cli/common/runtime.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/inputs.h"
#include "cli/common/mixed_options.h"
#include "cli/common/packet_options.h"
#include "collectives/hccl/hccl_choice.h"
#include "nccl/machine/job_nodes.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

constexpr std::string_view kLibraries = "runtime=nccl|rccl";

}  // namespace

std::string Runtime::engine_name() const {
  return extras.mixed ? "mixed" : engine ? std::string(to_string(*engine)) : "";
}

std::string Runtime::library() const {
  return is_rccl ? "RCCL" : fmt::format("NCCL {}", nccl::to_string(*nccl));
}

std::string Runtime::how() const {
  return nccl   ? fmt::format("as {} would by its event model", library())
         : hccl ? "as HCCL would"
                : "as plain rings";
}

void Runtime::apply(const nccl::Profile& nccl_profile, StepTables& tables) const {
  tables.nccl = nccl ? &nccl_profile : nullptr;
  tables.hccl = hccl ? &*hccl : nullptr;
  tables.fidelity = fidelity();
  tables.engine = nccl ? engine : std::nullopt;
  tables.nccl_version = nccl.value_or(nccl::kNewestVersion);
  tables.shares_network = shares_network;
  tables.fast_forward = fast_forward;
  tables.extras = extras;
}

Option nccl_version_option() {
  return {"nccl-version", "V", "the release of NCCL, from 2.4 to 2.30; 2.30.7 by default"};
}

Options runtime_options(HasMixed has_mixed) {
  const bool mixes = has_mixed == HasMixed::Yes;
  Option version = nccl_version_option();
  version.traits.needs = "runtime=nccl";
  return {
      {"runtime",
       "NAME",
       "of collectives: nccl (the default), as NCCL chooses and runs them; rccl (that of AMD's "
       "GPUs) and hccl (of Huawei's Ascend 910 and 910B), as these do; plain, links and "
       "latencies only",
       {.choices = "nccl|rccl|plain|hccl"}},
      {"fidelity",
       "NAME",
       mixes ? "nccl: ports (the default), the event model's own, or an engine between nodes: "
               "flow, analytical, packet (slow) or mixed (packets for what --packets names, "
               "flows for the rest); plain and hccl: flow (the default), analytical (a lower "
               "bound), packet or mixed (plain)"
             : "nccl: ports (the default), the event model's own, or an engine between nodes: "
               "flow, analytical or packet (slow); plain and hccl: flow (the default), "
               "analytical (a lower bound) or packet",
       {.choices = mixes ? "ports|flow|analytical|packet|mixed" : "ports|flow|analytical|packet",
        .other_if = "runtime=plain|hccl",
        .other_choices = mixes ? "flow|analytical|packet|mixed" : "flow|analytical|packet"}},
      version,
      {"profile",
       "FILE",
       "nccl: constants of the event model, as trainyard calibrate writes them",
       {.role = Role::Input, .needs = kLibraries}}};
}

std::optional<Fidelity> read_engine(const OptionReader& reader) {
  const std::string name = reader.word("fidelity");
  for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow, Fidelity::Packet}) {
    if (name == to_string(fidelity)) {
      return fidelity;
    }
  }
  return name == "mixed" ? std::optional(Fidelity::Packet) : std::nullopt;
}

nccl::Version read_nccl_version(const OptionReader& reader, std::vector<std::string>& notes) {
  const std::optional<std::string> text = reader.text("nccl-version");
  if (!text) {
    return nccl::kNewestVersion;
  }
  const std::optional<nccl::ParsedVersion> version = nccl::parse_version(*text);
  if (!version) {
    fail_option("nccl-version", "a release such as 2.30.7 or 2.18.5", *text);
  }
  if (!version->exact) {
    notes.push_back(
        fmt::format("NCCL {} is planned as {}, the nearest release whose rules are known", *text,
                    to_string(version->known)));
  }
  return version->known;
}

void check_sharing(const OptionReader& reader, const Runtime& runtime) {
  if (runtime.extras.mixed && !runtime.shares_network &&
      reader.command().find("traffic") != nullptr) {
    throw ConfigError(
        "--fidelity mixed: expected --method graph --runtime plain --traffic shared beside it, "
        "found traffic alone");
  }
  if (runtime.shares_network &&
      (runtime.nccl || runtime.hccl || runtime.engine == Fidelity::Analytical)) {
    throw ConfigError(fmt::format(
        "--traffic shared: expected --runtime plain with --fidelity flow or packet, found {}",
        runtime.nccl   ? "nccl"
        : runtime.hccl ? "hccl"
                       : "analytical"));
  }
}

namespace {

// None where the cluster cannot be read.
std::vector<GpuModel> gpus_of(const OptionReader& reader) {
  try {
    const InputNames names = read_input_names(reader);
    return kinds_of_gpus(find_config("clusters", names.cluster), load_default_catalogue(),
                         names.overrides);
  } catch (const ConfigError&) {
    return {};
  }
}

}  // namespace

void assume_runtime(OptionReader& reader) {
  const std::vector<std::string_view> needed{"runtime", "cluster"};
  const bool has_both = std::ranges::all_of(
      needed, [&](std::string_view name) { return reader.command().find(name) != nullptr; });
  const bool asks_for_nccl = std::ranges::any_of(reader.command().options, [&](const Option& row) {
    return (row.traits.needs == kLibraries || row.traits.needs == "runtime=nccl") &&
           reader.given(row.name);
  });
  if (!has_both || !reader.given("cluster") || reader.chosen("runtime") == "plain" ||
      reader.chosen("runtime") == "mpi" || reader.chosen("runtime") == "gloo") {
    return;
  }
  for (const GpuModel& gpu : gpus_of(reader)) {
    const std::optional<std::string_view> library = nccl::library_of(gpu);
    if (library == reader.chosen("runtime")) {
      continue;
    }
    if (library && reader.given("runtime")) {
      fail_option("runtime", fmt::format("{} or plain for {}", *library, gpu.title),
                  reader.chosen("runtime"));
    }
    if (library) {
      reader.assume("runtime", std::string(*library), "");
    } else if (!reader.given("runtime") && !asks_for_nccl) {
      reader.assume(
          "runtime", "plain",
          fmt::format("runtime plain, rings of links and latencies only: NCCL does not run on {}, "
                      "and {}",
                      gpu.title,
                      has_hccl(gpu.name) ? "--runtime hccl has what does, but less of it"
                                         : "what does is not modelled"));
    }
    return;
  }
}

namespace {

// Calls of steps are for one of these (parallelism/walk/step_traffic.h).
constexpr std::array<std::string_view, 5> kPurposes{"tensor", "context", "pipeline", "data",
                                                    "expert"};

// Chooses calls of a step by what they are for, where the command has steps on one network.
OwnChoice calls_of_steps(const OptionReader& reader) {
  if (reader.command().find("traffic") == nullptr) {
    return {};
  }
  return {.key = "calls",
          .expected = "calls=KIND with tensor, context, pipeline, data or expert",
          .find = [](const std::string& name) -> std::optional<ChosenConnections> {
            const auto* const purpose = std::ranges::find(kPurposes, name);
            if (purpose == kPurposes.end()) {
              return std::nullopt;
            }
            return [word = *purpose](const NewConnection& connection) {
              return connection.purpose == word;
            };
          }};
}

}  // namespace

Runtime read_runtime(const OptionReader& reader) {
  Runtime runtime{.nccl = {}};
  if (!reader.reason("runtime").empty()) {
    runtime.notes.push_back(reader.reason("runtime"));
  }
  if (reader.word("runtime") == "hccl") {
    runtime.hccl = HcclProfile::load(configs_folder() / "hccl" / "profile.yaml");
  } else if (reader.word("runtime") == "mpi") {
    runtime.hosts = "mpi";
  } else if (reader.word("runtime") == "gloo") {
    runtime.hosts = "gloo";
  } else if (reader.word("runtime") != "plain") {
    runtime.nccl = read_nccl_version(reader, runtime.notes);
    runtime.is_rccl = reader.word("runtime") == "rccl";
  }
  runtime.engine = read_engine(reader);
  runtime.extras = read_network_extras(reader, calls_of_steps(reader));
  runtime.shares_network =
      reader.command().find("traffic") != nullptr && reader.word("traffic") == "shared";
  check_sharing(reader, runtime);
  if (runtime.shares_network && reader.command().find("fast-forward") != nullptr) {
    runtime.fast_forward = read_fast_forward(reader);
  }
  return runtime;
}

}  // namespace trainyard
