// SPDX-License-Identifier: Apache-2.0
// The button of Furo that turns the page dark or light. Its own script, in Debian 12, is a module
// that is loaded as none, so that it does not run; and modules are not loaded from files. Without a
// choice the page is as the system prefers.
(function () {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch (error) { /* Files may have no storage. */ }

  function show() {
    document.body.dataset.theme = chosen || (system.matches ? "dark" : "light");
  }
  document.documentElement.classList.remove("no-js");  // Which hides the button.
  document.querySelectorAll(".theme-toggle").forEach((button) => {
    button.addEventListener("click", () => {
      chosen = document.body.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("theme", chosen); } catch (error) { /* As above. */ }
      show();
    });
  });
  system.addEventListener("change", show);
  show();
}());
