// SPDX-License-Identifier: Apache-2.0
// What --report refuses, and pages in a browser where there is one (chromium).
#include "support/catch.h"

#include "cli/common/html_output.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kStep =
    "trainyard step --cluster dgx-h100 --nodes 8 --workload mixtral-8x7b --report r.html";

bool has_library() {
  return std::filesystem::exists("/usr/share/javascript/d3/d3.min.js");
}

}  // namespace

TEST_CASE("a report that could not be drawn is refused in one line, before the run",
          "[html-output]") {
  const ScratchFolder folder;
  const ProgramResult missing = run_shell("TRAINYARD_D3=/nowhere/d3.js " + kStep, folder.path());
  REQUIRE(missing.status == 2);
  REQUIRE(missing.output.empty());
  REQUIRE(missing.error ==
          "trainyard: --report: expected the charting library d3 (Debian package libjs-d3), found "
          "no /nowhere/d3.js\n");
  folder.write("other.js", "var d3={version:\"7.1\"};");
  const ProgramResult other = run_shell("TRAINYARD_D3=other.js " + kStep, folder.path());
  REQUIRE(other.status == 2);
  REQUIRE(other.error.find("expected version 3 of d3") != std::string::npos);
  const ProgramResult nowhere = run_shell(
      "trainyard step --cluster dgx-h100 --workload x --report /nowhere/r.html", folder.path());
  REQUIRE(nowhere.status == 2);
  REQUIRE(nowhere.error.find("--report: expected a file in a folder that exists") !=
          std::string::npos);
  const ProgramResult twice =
      run_shell("trainyard parts gpu --report same --output same", folder.path());
  REQUIRE(twice.status == 2);
  REQUIRE(twice.error.find("--report: expected another file than that of --output") !=
          std::string::npos);
  REQUIRE(!std::filesystem::exists(folder.path() / "r.html"));
}

TEST_CASE("a browser draws the charts of a sweep and of traffic, and says what is chosen",
          "[html-output]") {
  const ScratchFolder folder;
  if (run_shell("command -v chromium >/dev/null", folder.path()).status != 0 || !has_library()) {
    WARN("no chromium or no libjs-d3: pages are not looked at");
    return;
  }
  folder.write("sweep.yaml",
               "title: t\ncommand: collective\noptions: {operation: all_reduce, cluster: dgx-h100, "
               "minbytes: 1M, maxbytes: 8M, runtime: plain, fidelity: analytical}\n"
               "vary: {nodes: [1, 2], algo: [ring, tree]}\n");
  REQUIRE(run_shell("trainyard sweep sweep.yaml --report sweep.html", folder.path()).status == 0);
  REQUIRE(run_shell("trainyard traffic incast --cluster fat-tree-k8-100g --fidelity packet "
                    "--samples s.csv --sample-every 10us --report traffic.html",
                    folder.path())
              .status == 0);
  // Of the first chart: keys choose a mark, the pointer finds one; then how much is drawn.
  const std::string probe = R"(<script>
    var seen = [], svg = document.querySelector("svg"), tip = document.getElementById("tip");
    svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    seen.push(svg.parentNode.querySelector(".detail").textContent ? "chosen" : "not chosen");
    var box = svg.getBoundingClientRect(), ring = svg.querySelector("circle.ring");
    svg.dispatchEvent(new MouseEvent("mousemove", { bubbles: true,
      clientX: box.left + (+ring.getAttribute("cx")) + 3,
      clientY: box.top + (+ring.getAttribute("cy")) }));
    seen.push(tip.style.display === "block" && tip.textContent ? "tip" : "no tip");
    var count = function (what) { return document.querySelectorAll(what).length; };
    seen.push(count("#lines-chart path.line"), count("#map-chart rect.field"),
      count("#trade-chart path.best") > 0, count("#charts section") > 3);
    var select = document.querySelector("#lines select");
    if (select) {
      var before = document.getElementById("lines-chart").innerHTML;
      select.value = "1";
      select.dispatchEvent(new Event("change"));
      seen.push(document.getElementById("lines-chart").innerHTML !== before ? "other" : "same");
    }
    document.title = "probe: " + document.body.dataset.drawn + " " + seen.join(" ");
  </script></body>)";
  for (const auto& [name, expected] : {std::pair{"sweep.html", "chosen tip 4 8 true false other"},
                                       std::pair{"traffic.html", "chosen tip 0 0 false true"}}) {
    INFO(name);
    std::string page = read_text_file(folder.path() / name);
    page.replace(page.rfind("</body>"), 7, probe);
    folder.write("probe.html", page);
    const ProgramResult browser = run_shell(
        "timeout 50 chromium --headless --no-sandbox --disable-gpu --user-data-dir=profile "
        "--enable-logging=stderr --dump-dom probe.html",
        folder.path());
    REQUIRE(browser.output.find(std::string("<title>probe: yes ") + expected + "</title>") !=
            std::string::npos);
    REQUIRE(browser.error.find("CONSOLE") == std::string::npos);
  }
}

TEST_CASE("a browser draws the page, zooms with the wheel and says what is below the pointer",
          "[html-output]") {
  const ScratchFolder folder;
  const bool has_browser = run_shell("command -v chromium >/dev/null", folder.path()).status == 0;
  if (!has_browser || !has_library()) {
    WARN("no chromium or no libjs-d3: pages are not looked at");
    return;
  }
  REQUIRE(run_shell(kStep, folder.path()).status == 0);
  std::string page = read_text_file(folder.path() / "r.html");
  const std::string probe = R"(<script>
    var seen = [], canvas = document.getElementById("timeline-canvas");
    var box = canvas.getBoundingClientRect();
    var tip = document.getElementById("tip");
    var before = canvas.dataset.domain;
    for (var y = 30; y < 300 && tip.style.display !== "block"; y += 17) {
      canvas.dispatchEvent(new MouseEvent("mousemove",
        { bubbles: true, clientX: box.left + 400, clientY: box.top + y }));
    }
    seen.push(tip.textContent.indexOf("rank ") > 0 ? "tip" : "no tip");
    canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, deltaY: -200,
      view: window, clientX: box.left + 400, clientY: box.top + 60 }));
    seen.push(canvas.dataset.domain !== before ? "zoomed" : "not zoomed");
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
    seen.push(canvas.dataset.domain === before ? "back" : "not back");
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "]", bubbles: true }));
    seen.push(document.getElementById("timeline-detail").textContent ? "chosen" : "not chosen");
    seen.push(document.querySelectorAll("#breakdown-chart .part").length > 5 ? "bars" : "none");
    document.title = "probe: " + document.body.dataset.drawn + " " + seen.join(" ");
  </script></body>)";
  page.replace(page.rfind("</body>"), 7, probe);
  folder.write("probe.html", page);
  const ProgramResult browser = run_shell(
      "timeout 50 chromium --headless --no-sandbox --disable-gpu --user-data-dir=profile "
      "--enable-logging=stderr --dump-dom probe.html",
      folder.path());
  REQUIRE(browser.output.find("probe: yes tip zoomed back chosen bars") != std::string::npos);
  REQUIRE(browser.error.find("CONSOLE") == std::string::npos);
}

TEST_CASE("a browser shows the page dark, prints it light, sorts it and fits it to a phone",
          "[html-output]") {
  const ScratchFolder folder;
  const bool has_browser = run_shell("command -v chromium >/dev/null", folder.path()).status == 0;
  if (!has_browser || !has_library()) {
    WARN("no chromium or no libjs-d3: pages are not looked at");
    return;
  }
  REQUIRE(run_shell("trainyard collective all_reduce --cluster dgx-h100 --nodes 2 --algo ring "
                    "-b 1M -e 4M --report r.html",
                    folder.path())
              .status == 0);
  std::string page = read_text_file(folder.path() / "r.html");
  const std::string probe = R"(<script>
    var root = document.documentElement, seen = [];
    var back = function () { return getComputedStyle(root).getPropertyValue("--back").trim(); };
    seen.push(back() === "#ffffff" ? "light" : "dark");
    window.dispatchEvent(new Event("beforeprint"));
    seen.push(back() === "#ffffff" ? "light" : "dark");
    window.dispatchEvent(new Event("afterprint"));
    var head = document.querySelector("th button");
    var first = function () { return +document.querySelector("#tables td").textContent; };
    head.click();
    var least = first();
    head.click();
    seen.push(first() === 4 * least ? "sorted" : "not sorted");
    seen.push(root.scrollWidth <= root.clientWidth ? "fits" : "too wide");
    seen.push(document.getElementById("timeline-canvas") ? "timeline" : "none");
    seen.push(document.getElementById("links-canvas") ? "links" : "none");
    parent.postMessage(document.body.dataset.drawn + " " + seen.join(" "), "*");
  </script></body>)";
  page.replace(page.rfind("</body>"), 7, probe);
  folder.write("probe.html", page);
  folder.write("phone.html",
               "<body><script>addEventListener('message', function (event) { document.title = "
               "'probe: ' + event.data; });</script><iframe src=probe.html style='border: 0; "
               "width: 360px; height: 800px'></iframe></body>");
  const ProgramResult browser = run_shell(
      "timeout 50 chromium --headless --no-sandbox --disable-gpu --user-data-dir=profile "
      "--blink-settings=preferredColorScheme=0 --virtual-time-budget=2000 "
      "--enable-logging=stderr --dump-dom phone.html",
      folder.path());
  INFO(browser.output);
  REQUIRE(browser.output.find("probe: yes dark light sorted fits timeline links") !=
          std::string::npos);
  REQUIRE(browser.error.find("CONSOLE") == std::string::npos);
}

}  // namespace trainyard
