// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/import_parts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
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
std::string listed(const std::vector<std::string>& names, std::string_view conjunction) {
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    const bool is_last = index + 1 == names.size();
    text += index == 0 ? "" : is_last ? fmt::format(" {} ", conjunction) : ", ";
    text += names[index];
  }
  return text;
}

// More names than these are a number: nobody reads a list of a whole catalogue.
constexpr std::size_t kMostCandidates = 8;

// The architectures of AMD by the names that RCCL has for them: ROCm/rccl, src/graph/xml.cc and
// rocm_smi_wrap.cc; older files have "910" for gfx90a and "940" for gfx94x. The first name of each
// is that of new files.
struct AmdName {
  std::string_view gcn;
  std::string_view architecture;
};
constexpr std::array kAmdNames = {AmdName{"906", "gcn5"},  AmdName{"908", "cdna"},
                                  AmdName{"90a", "cdna2"}, AmdName{"910", "cdna2"},
                                  AmdName{"942", "cdna3"}, AmdName{"940", "cdna3"},
                                  AmdName{"941", "cdna3"}, AmdName{"950", "cdna4"}};

std::string_view amd_architecture(const std::string& gcn) {
  const std::string_view number =
      gcn.starts_with("gfx") ? std::string_view(gcn).substr(3) : std::string_view(gcn);
  const auto* const name =
      std::ranges::find(kAmdNames, number.substr(0, number.find(':')), &AmdName::gcn);
  return name == kAmdNames.end() ? "" : name->architecture;
}

// AMD's older files and NVIDIA's say `sm` of different things.
bool fits(const GpuModel& gpu, const GpuEvidence& evidence) {
  if (!gpu.title.starts_with(evidence.maker)) {
    return false;
  }
  if (evidence.gcn) {
    const bool same_units =
        !evidence.sm || !gpu.multiprocessors || gpu.multiprocessors->value == *evidence.sm;
    return gpu.architecture == amd_architecture(*evidence.gcn) && same_units;
  }
  const bool same_sm =
      !evidence.sm || (gpu.compute_capability && gpu.compute_capability->value == *evidence.sm);
  return same_sm && (evidence.links == 0 || gpu.scale_up_links.value == evidence.links);
}

std::string description(const GpuEvidence& evidence) {
  if (evidence.gcn) {
    return fmt::format("a GPU of gcn {}{}", *evidence.gcn,
                       evidence.sm ? fmt::format(" with {} compute units", *evidence.sm) : "");
  }
  return (evidence.sm              ? fmt::format("a GPU of sm {}", *evidence.sm)
          : evidence.maker.empty() ? "a GPU"
                                   : "a GPU of " + evidence.maker) +
         (evidence.links > 0 ? fmt::format(" with {} links", evidence.links) : "");
}

// The family of an AMD processor as NCCL prints it: templates written by hand have what CPUID adds
// up from base (15) and extended family, NCCL has the extended one as the high digit.
int nccl_family(const NcclCpu& cpu) {
  constexpr int kBase = 15;
  constexpr int kLargest = 2 * kBase;  // A sum; what NCCL prints is at least 15 + 16.
  const int family = cpu.familyid.value_or(0);
  const bool is_sum = cpu.vendor == "AuthenticAMD" && family > kBase && family <= kLargest;
  return is_sum ? kBase + 16 * (family - kBase) : family;
}

// Facts that the file leaves to the machine fit every part.
bool fits(const CpuModel& model, const NcclCpu& cpu) {
  if (!model.identity) {
    return cpu.arch ? *cpu.arch == model.arch : !cpu.vendor;
  }
  return cpu.arch.value_or(model.arch) == model.arch &&
         cpu.vendor.value_or(model.identity->vendor) == model.identity->vendor &&
         (!cpu.familyid || nccl_family(cpu) == model.identity->family.value) &&
         (!cpu.modelid || *cpu.modelid == model.identity->model.value);
}

}  // namespace

std::optional<std::string> gcn_of(std::string_view architecture) {
  const auto* const name = std::ranges::find(kAmdNames, architecture, &AmdName::architecture);
  return name == kAmdNames.end() ? std::nullopt : std::optional("gfx" + std::string(name->gcn));
}

void OpenParts::ask(const std::string& place, const std::string& what, const std::string& option,
                    const std::vector<std::string>& candidates) {
  if (candidates.empty()) {
    ask(place, what + " fits no part of the catalogue", option);
  } else if (candidates.size() > kMostCandidates) {
    ask(place, fmt::format("{} may be any of {} parts", what, candidates.size()), option);
  } else {
    ask(place, what + " may be " + listed(candidates, "or"), option);
  }
}

void OpenParts::ask(const std::string& place, const std::string& sentence,
                    const std::string& option) {
  questions_.push_back({place, sentence, option});
}

void OpenParts::check() const {
  if (questions_.empty()) {
    return;
  }
  std::vector<std::string> sentences;
  std::vector<std::string> options;
  for (const Question& question : questions_) {
    sentences.push_back(question.sentence);
    options.push_back(question.option);
  }
  throw ConfigError(fmt::format("{}: {}; expected {}, found none", questions_.front().place,
                                fmt::join(sentences, "; "), listed(options, "and")));
}

void check_names(const ImportOptions& options, const Catalogue& catalogue) {
  check_name("gpu", options.gpu, catalogue.gpus());
  check_name("nic", options.nic, catalogue.nics());
  check_name("cpu", options.cpu, catalogue.cpus());
}

const GpuModel* choose_gpu(const GpuEvidence& evidence, const ImportOptions& options,
                           const Catalogue& catalogue, const std::string& place, OpenParts& open) {
  if (options.gpu) {
    return &catalogue.gpus().at(*options.gpu);
  }
  std::vector<std::string> candidates;
  for (const auto& [name, gpu] : catalogue.gpus()) {
    if (has_id(gpu, evidence.pci_id)) {
      return &gpu;
    }
    if (fits(gpu, evidence)) {
      candidates.push_back(name);
    }
  }
  if (candidates.size() != 1) {
    open.ask(place, description(evidence), "--gpu PART", candidates);
    return nullptr;
  }
  return &catalogue.gpus().at(candidates[0]);
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

std::vector<std::string> possible_nics(const NicEvidence& evidence, const Catalogue& catalogue) {
  std::vector<std::string> all;
  std::vector<std::string> of_vendor;
  for (const auto& [name, nic] : catalogue.nics()) {
    if (evidence.speed > 0 &&
        nic.speed.value.bits_per_second() * nic.ports.value != evidence.speed * 1'000'000) {
      continue;
    }
    all.push_back(name);
    const auto same_vendor = [&](const std::string& id) {
      return evidence.pci_id && id.starts_with(evidence.pci_id->substr(0, 5));
    };
    if (nic.pci_ids && std::ranges::any_of(nic.pci_ids->value, same_vendor)) {
      of_vendor.push_back(name);
    }
  }
  return of_vendor.empty() ? all : of_vendor;
}

std::string speed_text(std::int64_t megabits_per_second) {
  return to_string(Bandwidth(megabits_per_second * 1'000'000));
}

std::string choose_cpu(const NcclCpu& cpu, std::size_t sockets, const ImportOptions& options,
                       const Catalogue& catalogue, const std::string& place, OpenParts& open) {
  if (options.cpu) {
    return *options.cpu;
  }
  std::vector<std::string> candidates;
  for (const auto& [name, model] : catalogue.cpus()) {
    const bool joins_sockets = sockets == 1 || !model.socket_link.empty();
    if (fits(model, cpu) && joins_sockets) {
      candidates.push_back(name);
    }
  }
  if (candidates.size() == 1) {
    return candidates[0];
  }
  if (sockets > 1) {
    open.ask(place, "the CPU, whose link between sockets is needed,", "--cpu PART", candidates);
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
