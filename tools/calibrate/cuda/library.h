// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded at run time.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace trainyard::calibrate {

// Stays loaded: libraries of CUDA do not like to be unloaded.
class Library {
 public:
  // The first that can be loaded.
  explicit Library(const std::string& chosen, std::initializer_list<const char*> names) {
    if (!chosen.empty()) {
      handle_ = ::dlopen(chosen.c_str(), RTLD_NOW | RTLD_GLOBAL);
      return;
    }
    for (const char* const name : names) {
      if (handle_ == nullptr) {
        handle_ = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
      }
    }
  }

  [[nodiscard]] bool found() const { return handle_ != nullptr; }
  // Null where it is missing.
  template <typename Function>
  [[nodiscard]] Function* optional(const char* name) const {
    return found() ? reinterpret_cast<Function*>(::dlsym(handle_, name)) : nullptr;
  }
  // Throws std::runtime_error where it is missing.
  template <typename Function>
  [[nodiscard]] Function* function(const char* name) const {
    Function* const address = optional<Function>(name);
    if (address == nullptr) {
      throw std::runtime_error(std::string(name) + ": not in the library that was loaded");
    }
    return address;
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace trainyard::calibrate
