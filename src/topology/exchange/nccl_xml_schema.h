// SPDX-License-Identifier: Apache-2.0
// The schema of NCCL's topology file: for each element its attributes, in NCCL's order, what their
// values may be, and its children. Reader and writer (nccl_xml.cpp) walk it; nobody else needs it.
#pragma once

#include <limits>

#include "topology/exchange/nccl_xml.h"

namespace trainyard {

// The range of a number, both ends included.
struct XmlRange {
  int min;
  int max;
};
// A range that ends here has no upper bound.
inline constexpr int kXmlUnbounded = std::numeric_limits<int>::max();
inline constexpr XmlRange kXmlFlag{0, 1};
inline constexpr XmlRange kXmlIndex{0, 65'535};
inline constexpr XmlRange kXmlCount{0, kXmlUnbounded};

// A Number is hexadecimal or decimal.
enum class XmlForm { Text, Hex, Number, BusId };

// `attributes` calls visit(name, member, XmlRange or XmlForm) for each, `children` calls
// visit(name, list).
template <typename Element>
struct XmlSchema;

template <>
struct XmlSchema<NcclGpuLink> {
  static void attributes(auto& link, auto&& visit) {
    visit("target", link.target, XmlForm::BusId);
    visit("count", link.count, XmlRange{0, 1024});
    visit("tclass", link.tclass, XmlForm::Hex);
  }
  static void children(auto&, auto&&) {}
};

template <>
struct XmlSchema<NcclC2c> {
  static void attributes(auto& c2c, auto&& visit) {
    visit("bw", c2c.bw, kXmlCount);
    visit("count", c2c.count, XmlRange{0, 1024});
  }
  static void children(auto&, auto&&) {}
};

template <>
struct XmlSchema<NcclGpu> {
  static void attributes(auto& gpu, auto&& visit) {
    visit("dev", gpu.dev, kXmlIndex);
    visit("sm", gpu.sm, XmlRange{10, 999});
    visit("mlopart", gpu.mlopart, XmlRange{-1, 1024});
    visit("gcn", gpu.gcn, XmlForm::Text);
    visit("arch", gpu.arch, kXmlCount);
    visit("rank", gpu.rank, kXmlCount);
    visit("gdr", gpu.gdr, kXmlFlag);
    visit("keep", gpu.keep, kXmlFlag);
  }
  static void children(auto& gpu, auto&& visit) {
    visit("nvlink", gpu.nvlinks);
    visit("xgmi", gpu.xgmis);
    visit("c2c", gpu.c2cs);
  }
};

template <>
struct XmlSchema<NcclNet> {
  static void attributes(auto& net, auto&& visit) {
    visit("name", net.name, XmlForm::Text);
    visit("dev", net.dev, kXmlIndex);
    visit("speed", net.speed, XmlRange{-1, kXmlUnbounded});
    visit("port", net.port, kXmlIndex);
    visit("latency", net.latency, kXmlCount);
    visit("guid", net.guid, XmlForm::Number);
    visit("maxconn", net.maxconn, kXmlCount);
    visit("gdr", net.gdr, kXmlFlag);
    visit("coll", net.coll, kXmlFlag);
    visit("net", net.net, kXmlFlag);
    visit("gin", net.gin, kXmlFlag);
    visit("rma", net.rma, kXmlFlag);
    visit("rail", net.rail, XmlRange{-1, kXmlUnbounded});
    visit("plane", net.plane, XmlRange{-1, kXmlUnbounded});
    visit("keep", net.keep, kXmlFlag);
  }
  static void children(auto&, auto&&) {}
};

template <>
struct XmlSchema<NcclNic> {
  static void attributes(auto&, auto&&) {}
  static void children(auto& nic, auto&& visit) { visit("net", nic.nets); }
};

template <>
struct XmlSchema<NcclPciLink> {
  static void attributes(auto& link, auto&& visit) { visit("target", link.target, XmlForm::BusId); }
  static void children(auto&, auto&&) {}
};

template <>
struct XmlSchema<NcclPci> {
  static void attributes(auto& pci, auto&& visit) {
    visit("busid", pci.busid, XmlForm::BusId);
    visit("class", pci.device_class, XmlForm::Hex);
    visit("vendor", pci.vendor, XmlForm::Hex);
    visit("device", pci.device, XmlForm::Hex);
    visit("subsystem_vendor", pci.subsystem_vendor, XmlForm::Hex);
    visit("subsystem_device", pci.subsystem_device, XmlForm::Hex);
    visit("link_speed", pci.link_speed, XmlForm::Text);
    visit("link_width", pci.link_width, XmlRange{0, 255});
  }
  static void children(auto& pci, auto&& visit) {
    visit("gpu", pci.gpus);
    visit("nic", pci.nics);
    visit("pci", pci.pcis);
    visit("pcilink", pci.pcilinks);
  }
};

template <>
struct XmlSchema<NcclCpu> {
  static void attributes(auto& cpu, auto&& visit) {
    visit("host_hash", cpu.host_hash, XmlForm::Hex);
    visit("numaid", cpu.numaid, XmlRange{-1, 65'535});
    visit("affinity", cpu.affinity, XmlForm::Text);
    visit("arch", cpu.arch, XmlForm::Text);
    visit("vendor", cpu.vendor, XmlForm::Text);
    visit("familyid", cpu.familyid, kXmlIndex);
    visit("modelid", cpu.modelid, kXmlIndex);
  }
  static void children(auto& cpu, auto&& visit) {
    visit("pci", cpu.pcis);
    visit("nic", cpu.nics);
  }
};

template <>
struct XmlSchema<NcclSystem> {
  static void attributes(auto& system, auto&& visit) {
    visit("version", system.version, XmlRange{1, 2});
  }
  static void children(auto& system, auto&& visit) { visit("cpu", system.cpus); }
};

}  // namespace trainyard
