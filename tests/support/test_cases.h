// SPDX-License-Identifier: Apache-2.0
// Test cases that are made at the start of the program, one for each of a list of names, so that
// ctest runs them side by side and reports each by itself.
#pragma once

#include "support/catch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trainyard {

// Registers "TITLE: NAME" for each of `names` while static objects are made. `run` is given the
// name.
class TestCases {
 public:
  TestCases(const std::string& title, const std::string& tags,
            const std::vector<std::string>& names, void (*run)(const std::string& name)) {
    for (const std::string& name : names) {
      auto invoker = std::make_unique<Invoker>(run, name);
      const std::string full = title + ": " + name;
      // Catch2 owns the invoker from here on.
      const Catch::AutoReg registered(invoker.release(), CATCH_INTERNAL_LINEINFO,
                                      Catch::StringRef(), Catch::NameAndTags(full, tags));
      static_cast<void>(registered);
    }
  }

 private:
  class Invoker : public Catch::ITestInvoker {
   public:
    Invoker(void (*run)(const std::string&), std::string name)
        : run_(run), name_(std::move(name)) {}
    void invoke() const override { run_(name_); }

   private:
    void (*run_)(const std::string&);
    std::string name_;
  };
};

}  // namespace trainyard
