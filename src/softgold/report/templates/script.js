"use strict";
// The page can be read without this: it sorts tables and shows one task at a time.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const isNumber = table.tBodies[0].rows.length > 0 &&
        Array.from(table.tBodies[0].rows).some((row) => row.cells[column].dataset.order !== undefined);
      const current = head.getAttribute("aria-sort");
      const next = current ? (current === "ascending" ? "descending" : "ascending") : (isNumber ? "descending" : "ascending");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const value = (row) => {
        const cell = row.cells[column];
        if (!isNumber) return cell.textContent;
        return cell.dataset.order === undefined || cell.dataset.order === "-inf" ? -Infinity : Number(cell.dataset.order);
      };
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (isNumber) return x === y ? 0 : sign * (x < y ? -1 : 1);
        return sign * x.localeCompare(y, undefined, { numeric: true });
      };
      table.tBodies[0].append(...Array.from(table.tBodies[0].rows).sort(compare));
    });
  });
}
const switches = [];
for (const section of document.querySelectorAll("main section")) {
  const panels = Array.from(section.querySelectorAll(":scope > .panel[data-name]"));
  if (panels.length < 2) continue;
  const bar = document.createElement("div");
  bar.className = "switch";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Task");
  const buttons = panels.map((panel) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = panel.dataset.name;
    button.addEventListener("click", () => switches.forEach((choose) => choose(panel.dataset.name)));
    return button;
  });
  const show = (chosen) => panels.forEach((panel, place) => {
    panel.hidden = panel !== chosen;
    buttons[place].setAttribute("aria-pressed", String(panel === chosen));
  });
  bar.append(...buttons);
  panels[0].before(bar);
  show(panels[0]);
  // A question chosen in one section is chosen in all that have it.
  switches.push((name) => {
    const chosen = panels.find((panel) => panel.dataset.name === name);
    if (chosen) show(chosen);
  });
}
