// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/import_parts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/config.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

template <typename Model>
void check_name(std::string_view option, const std::optional<std::string>& name,
                const std::map<std::string, Model>& models) {
  if (!name || models.contains(*name)) {
    return;
  }
  std::vector<std::string> names;
  for (const auto& [known, model] : models) {
    names.push_back(known);
  }
  throw ConfigError(
      fmt::format("--{}: expected a part of the catalogue, found {}{}", option, in_quotes(*name),
                  did_you_mean(*name, names, fmt::format("; known: {}", fmt::join(names, ", ")))));
}

template <typename Model>
bool has_id(const Model& model, const std::optional<std::string>& id) {
  return id && model.pci_ids &&
         std::ranges::find(model.pci_ids->value, *id) != model.pci_ids->value.end();
}

// "A", "A or B", "A, B or C".
std::string either(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    const bool is_last = index + 1 == names.size();
    text += (index == 0 ? "" : is_last ? " or " : ", ") + names[index];
  }
  return text;
}

// Throws that the user must name the part.
[[noreturn]] void ask(std::string_view place, std::string_view option, std::string_view what,
                      const std::vector<std::string>& candidates) {
  const std::string found =
      candidates.empty() ? "fits no part of the catalogue" : "may be " + either(candidates);
  throw ConfigError(
      fmt::format("{}: {} {}; expected --{} PART, found none", place, what, found, option));
}

}  // namespace

void check_names(const ImportOptions& options, const Catalogue& catalogue) {
  check_name("gpu", options.gpu, catalogue.gpus());
  check_name("nic", options.nic, catalogue.nics());
  check_name("cpu", options.cpu, catalogue.cpus());
}

const GpuModel& choose_gpu(const GpuEvidence& evidence, const ImportOptions& options,
                           const Catalogue& catalogue, std::string_view place) {
  if (options.gpu) {
    return catalogue.gpus().at(*options.gpu);
  }
  std::vector<std::string> candidates;
  for (const auto& [name, gpu] : catalogue.gpus()) {
    if (has_id(gpu, evidence.pci_id)) {
      return gpu;
    }
    const bool same_sm =
        !evidence.sm || (gpu.compute_capability && gpu.compute_capability->value == *evidence.sm);
    const bool enough_links = evidence.links == 0 || gpu.scale_up_links.value == evidence.links;
    if (same_sm && enough_links) {
      candidates.push_back(name);
    }
  }
  if (candidates.size() != 1) {
    std::string what = evidence.sm ? fmt::format("a GPU of sm {}", *evidence.sm) : "a GPU";
    what += evidence.links > 0 ? fmt::format(" with {} links", evidence.links) : "";
    ask(place, "gpu", what, candidates);
  }
  return catalogue.gpus().at(candidates[0]);
}

const NicModel* recognise_nic(const NicEvidence& evidence, const Catalogue& catalogue) {
  const NicModel* of_id = nullptr;
  std::vector<const NicModel*> of_speed;
  for (const auto& [name, nic] : catalogue.nics()) {
    const bool same_ports = nic.ports.value == evidence.ports;
    if (has_id(nic, evidence.pci_id) && (of_id == nullptr || same_ports)) {
      of_id = &nic;
    }
    if (nic.speed.value.bits_per_second() * nic.ports.value == evidence.speed * 1'000'000) {
      of_speed.push_back(&nic);
    }
  }
  if (of_id != nullptr) {
    return of_id;
  }
  if (of_speed.size() > 1) {  // Those with an id would have been known by it.
    std::erase_if(of_speed, [](const NicModel* nic) { return nic->pci_ids.has_value(); });
  }
  return of_speed.size() == 1 ? of_speed.front() : nullptr;
}

std::string speed_text(std::int64_t megabits_per_second) {
  return to_string(Bandwidth(megabits_per_second * 1'000'000));
}

std::string choose_cpu(const NcclCpu& cpu, std::size_t sockets, const ImportOptions& options,
                       const Catalogue& catalogue, std::string_view place) {
  if (options.cpu) {
    return *options.cpu;
  }
  std::vector<std::string> candidates;
  for (const auto& [name, model] : catalogue.cpus()) {
    const bool same_identity = !model.identity || (cpu.vendor == model.identity->vendor &&
                                                   cpu.familyid == model.identity->family.value &&
                                                   cpu.modelid == model.identity->model.value);
    const bool joins_sockets = sockets == 1 || !model.socket_link.empty();
    if (cpu.arch == model.arch && same_identity && joins_sockets) {
      candidates.push_back(name);
    }
  }
  if (candidates.size() == 1) {
    return candidates[0];
  }
  if (sockets > 1) {
    ask(place, "cpu", "the CPU, whose link between sockets is needed,", candidates);
  }
  return "";
}

void finish_import(ImportedServer& server) {
  const FormerIndices former = put_in_order(server.tree);
  for (const auto& [kind, indices] :
       {std::pair("GPU", &former.gpus), std::pair("NIC", &former.nics)}) {
    if (!std::ranges::is_sorted(*indices)) {
      server.remarks.push_back(fmt::format(
          "{}0, {}1, ... are {} {} of the file: here they count in the order of the tree.", kind,
          kind, kind, fmt::join(*indices, ", ")));
    }
  }
}

}  // namespace trainyard
