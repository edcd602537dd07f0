// SPDX-License-Identifier: Apache-2.0
// The page of `trainyard serve` in a browser where there is one (chromium), by keyboard alone.
#include "support/catch.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/serve/page_server.h"
#include "support/browser.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

using nlohmann::json;

const std::string kStart = "step --cluster dgx-h100 --nodes 4 --workload llama-3-8b --costs";

// A browser on a page of its own server.
class OpenPage {
 public:
  explicit OpenPage(const std::string& line = kStart) {
    open(line);
    browser_.wait_for("document.getElementById('command')?.options.length");
  }
  ~OpenPage() { server_.stop(); }
  OpenPage(const OpenPage&) = delete;
  OpenPage& operator=(const OpenPage&) = delete;

  Browser& browser() { return browser_; }

  void open(const std::string& line) {
    open_link("/#" + browser_.value("String(new URLSearchParams({a: " + json(line).dump() + "}))")
                         .get<std::string>());
  }
  // Leaves the page first, as a changed fragment alone opens nothing.
  void open_link(const std::string& path) {
    browser_.open("about:blank");
    browser_.open("http://127.0.0.1:" + std::to_string(server_.port()) + path);
  }
  // Presses Tab until the control of that id has the focus.
  void go_to(const std::string& id) {
    constexpr int kMost = 400;
    for (int count = 0; count < kMost; ++count) {
      if (browser_.value("document.activeElement.id") == id) {
        return;
      }
      browser_.press("Tab");
    }
    FAIL("no way by keyboard to " << id);
  }
  std::string text_of(const std::string& id) {
    return browser_.value("document.getElementById('" + id + "').textContent");
  }
  void wait_until_shown(const std::string& side = "a") {
    browser_.wait_for("document.getElementById('" + side + "-status')?.textContent.match(/^Took/)");
  }

 private:
  static PageServerOptions options() {
    PageServerOptions made;
    made.program = program_path();
    return made;
  }

  PageServer server_{options()};
  std::jthread thread_{[this] { server_.serve(); }};
  Browser browser_;
};

// The page shows what the command line prints that stands above it.
void require_figures_of_line(OpenPage& page, const std::string& side = "a") {
  const ScratchFolder folder;
  const std::string line = page.text_of(side + "-line");
  INFO(line);
  const ProgramResult program = run_shell(line + " --format json", folder.path());
  REQUIRE(program.status == 0);
  REQUIRE(page.browser().value("(() => { const host = document.createElement('div');"
                               "showResult(host, JSON.parse(" +
                               json(program.output).dump() + ")); return host.textContent; })()") ==
          page.text_of(side + "-shown"));
}

struct Question {
  std::string control;
  std::string keys;     // Typed into the control; empty: a blank, which turns a box.
  std::string in_line;  // Stands in the command line afterwards.
};

// Answers it by keyboard, opens its link again and runs its command line.
void answer(OpenPage& page, const Question& question) {
  INFO(question.control << ": " << question.keys);
  page.open(kStart);
  page.wait_until_shown();
  const std::string before = page.text_of("a-shown");
  page.go_to(question.control);
  page.browser().type(question.keys.empty() ? " " : question.keys);
  page.browser().wait_for("document.getElementById('a-line').textContent.includes(" +
                          json(question.in_line).dump() + ")");
  page.wait_until_shown();
  const std::string shown = page.text_of("a-shown");
  REQUIRE(shown != before);
  require_figures_of_line(page);
  page.open_link("/" + page.browser().value("location.hash").get<std::string>());
  page.wait_until_shown();
  REQUIRE(page.text_of("a-shown") == shown);
}

bool has_charting_library() {
  const bool is_there = std::filesystem::exists("/usr/share/javascript/d3/d3.min.js");
  if (!is_there) {
    WARN("no libjs-d3: no report is made");
  }
  return is_there;
}

bool has_browser() {
  if (!Browser::exists()) {
    WARN("no chromium: the page is not looked at");
  }
  return Browser::exists();
}

}  // namespace

TEST_CASE("a what-if question is answered by keyboard, and its link and command line agree",
          "[serve]") {
  if (!has_browser()) {
    return;
  }
  OpenPage page;
  answer(page, {"set-server.nics", "4", "--set server.nics=4"});
  REQUIRE(page.browser().complaints() == "");
}

TEST_CASE("twelve what-if questions are answered by keyboard, with links and command lines",
          "[serve][long]") {
  if (!has_browser()) {
    return;
  }
  OpenPage page;
  for (const Question& question :
       std::vector<Question>{{"option-nodes", "8", "--nodes 8"},
                             {"option-workload", "mixtral", "--workload mixtral-8x7b"},
                             {"option-cluster", "dgx-h2", "--cluster dgx-h200"},
                             {"set-plan.tensor", "8", "--set plan.tensor=8"},
                             {"set-plan.zero_stage", "3", "--set plan.zero_stage=3"},
                             {"set-batch.global", "256", "--set batch.global=256"},
                             {"set-batch.sequence", "4096", "--set batch.sequence=4096"},
                             {"set-server.gpu", "H200-SXM", "--set server.gpu=H200-SXM"},
                             {"option-gpus-per-node", "4", "--gpus-per-node 4"},
                             {"option-runtime", "plain", "--runtime plain"},
                             {"command", "cost", "trainyard cost"},
                             {"command", "explain step", "trainyard explain step"}}) {
    answer(page, question);
  }
  REQUIRE(page.browser().complaints() == "");
}

TEST_CASE("two set-ups stand beside each other with their differences", "[serve]") {
  if (!has_browser()) {
    return;
  }
  OpenPage page;
  page.wait_until_shown();
  page.go_to("compare");
  page.browser().press("Enter");
  page.wait_until_shown("b");
  REQUIRE(page.text_of("b-line") == page.text_of("a-line"));
  page.go_to("set-server.nics");
  page.browser().type("4");
  page.browser().wait_for("document.getElementById('b-line').textContent.includes('nics=4')");
  page.wait_until_shown("b");
  REQUIRE(page.text_of("a-line").find("nics") == std::string::npos);
  require_figures_of_line(page, "a");
  require_figures_of_line(page, "b");
  const std::string table = page.text_of("differences-table");
  REQUIRE(table.find("step time") != std::string::npos);
  REQUIRE(table.find(" %") != std::string::npos);
  const std::string link = page.browser().value("location.hash");
  page.open_link("/" + link);
  page.wait_until_shown("a");
  page.wait_until_shown("b");
  REQUIRE(page.text_of("differences-table") == table);
  REQUIRE(page.browser().complaints() == "");
}

TEST_CASE("what the page exports is a sweep of one point, the rows and the report", "[serve]") {
  if (!has_browser()) {
    return;
  }
  OpenPage page("step --cluster dgx-h100 --nodes 2 --workload llama-3-8b --set server.nics=4");
  page.wait_until_shown();
  Browser& browser = page.browser();
  static_cast<void>(browser.value("URL.createObjectURL = (made) => { window.made = made; }, 0"));
  // Presses the button and returns the text of the file that it makes.
  const auto exported = [&](const std::string& name) {
    static_cast<void>(browser.value("window.made = null"));
    page.go_to("a-" + name);
    browser.press("Enter");
    browser.wait_for("window.made");
    return browser.value("window.made.text()").get<std::string>();
  };
  const ScratchFolder folder;
  const std::string words = page.text_of("a-line");
  REQUIRE(exported("csv") == run_shell(words + " --format csv", folder.path()).output);
  folder.write("one.yaml", exported("yaml"));
  const ProgramResult sweep = run_shell("trainyard sweep one.yaml --format csv", folder.path());
  INFO(sweep.error);
  REQUIRE(sweep.status == 0);
  const std::string json_text = run_shell(words + " --format json", folder.path()).output;
  const double seconds = json::parse(json_text).at("step_time_s");
  REQUIRE(sweep.output.find(std::to_string(seconds).substr(0, 6)) != std::string::npos);
  folder.write("cluster.yaml", exported("cluster"));
  folder.write("workload.yaml", exported("workload"));
  const ProgramResult by_files =
      run_shell("trainyard step --cluster cluster.yaml --workload workload.yaml --format json",
                folder.path());
  INFO(by_files.error);
  REQUIRE(by_files.status == 0);
  REQUIRE(json::parse(by_files.output).at("step_time_s") == seconds);
  if (!has_charting_library()) {
    return;
  }
  REQUIRE(exported("report").find("<!DOCTYPE html>") == 0);
}

TEST_CASE("links are drawn in colours of a fixed scale, and their view is a link", "[serve]") {
  if (!has_browser() || !has_charting_library()) {
    return;
  }
  OpenPage page("collective all_reduce --cluster dgx-h100 --nodes 2 --minbytes 64M --maxbytes 64M");
  page.wait_until_shown();
  page.go_to("a-links");
  Browser& browser = page.browser();
  browser.press("Enter");
  const std::string drawn = "document.querySelectorAll('#a-drawn svg.links line').length";
  browser.wait_for(drawn);
  const std::string shown = page.text_of("a-drawn");
  REQUIRE(shown.find("100 % busy") != std::string::npos);
  REQUIRE(browser.value("shareColour(0)") == "rgb(207,203,221)");
  REQUIRE(browser.value("shareColour(1)") == "rgb(68,1,84)");
  const std::string link = browser.value("location.hash");
  REQUIRE(link.find("show=links") != std::string::npos);
  page.open_link("/" + link);
  page.wait_until_shown();
  browser.wait_for(drawn);
  REQUIRE(page.text_of("a-drawn") == shown);
  page.go_to("a-links");
  browser.press("Enter");
  REQUIRE(page.text_of("a-drawn").empty());
  REQUIRE(browser.complaints() == "");
}

TEST_CASE("pictures of the page in light, dark and phone width are in the build folder",
          "[serve]") {
  if (!has_browser()) {
    return;
  }
  const std::filesystem::path folder =
      std::filesystem::path(program_path()).parent_path().parent_path() / "pictures";
  std::filesystem::create_directories(folder);
  OpenPage page;
  page.wait_until_shown();
  Browser& browser = page.browser();
  std::vector<std::string> pictures;
  const auto take = [&](const std::string& name, const std::string& scheme, int width) {
    browser.prefer(scheme);
    browser.resize(width, 1000);
    const std::filesystem::path file = folder / ("serve-" + name + ".png");
    browser.take_picture(file.string());
    pictures.push_back(read_text_file(file));
    REQUIRE(pictures.back().substr(0, 8) == "\x89PNG\r\n\x1a\n");
    REQUIRE(browser.value("document.documentElement.scrollWidth <= " + std::to_string(width)) ==
            true);
  };
  take("light", "light", 1280);
  take("dark", "dark", 1280);
  take("phone", "light", 360);
  REQUIRE(pictures[0] != pictures[1]);
}

TEST_CASE("a wrong value says so in one line, and the way back is there", "[serve]") {
  if (!has_browser()) {
    return;
  }
  OpenPage page("step --cluster dgx-h100 --nodes 4 --workload llama-3-8b --nonsense 3");
  page.browser().wait_for("document.getElementById('a-status')?.className.includes('bad')");
  REQUIRE(page.text_of("a-status").find("unknown option") != std::string::npos);
  page.open(kStart);
  page.wait_until_shown();
  page.go_to("set-plan.tensor");
  page.browser().type("7");
  page.browser().wait_for("document.getElementById('a-status')?.className.includes('bad')");
  page.browser().press("Backspace");
  page.wait_until_shown();
  require_figures_of_line(page);
}

TEST_CASE("every control has a label and shows its focus; nothing is cut off on a phone",
          "[serve]") {
  if (!has_browser()) {
    return;
  }
  OpenPage page;
  page.wait_until_shown();
  Browser& browser = page.browser();
  static_cast<void>(browser.value("document.getElementById('more').open = true"));
  const json unnamed = browser.value(
      "[...document.querySelectorAll('input,select,textarea,button')].filter((one) =>"
      "!(one.labels && one.labels.length) && !one.textContent).map((one) => one.id)");
  REQUIRE(unnamed == json::array());
  browser.press("Tab");
  browser.press("Tab");
  REQUIRE(browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid");
  // Contrast as of WCAG 2.1, 1.4.3: 4.5 to 1 for text, 3 to 1 for what marks the focus.
  const std::string contrast = R"((() => {
    const style = getComputedStyle(document.documentElement);
    const light = (name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/g)
      .map((hex) => parseInt(hex, 16) / 255)
      .map((c) => c <= 0.03928 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4))
      .reduce((sum, c, index) => sum + c * [0.2126, 0.7152, 0.0722][index], 0);
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return ["--back", "--panel"].flatMap((back) => [["--ink", 4.5], ["--soft", 4.5],
      ["--link", 4.5], ["--bad", 4.5], ["--focus", 3]].filter(([name, least]) =>
      ratio(light(name), light(back)) < least).map(([name]) => name + " on " + back));
  })())";
  for (const std::string scheme : {"light", "dark"}) {
    browser.prefer(scheme);
    INFO(scheme);
    REQUIRE(browser.value(contrast) == json::array());
  }
  browser.resize(360, 740);
  REQUIRE(browser.value("document.documentElement.scrollWidth <= 360") == true);
}

}  // namespace trainyard
