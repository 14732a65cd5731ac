// Zooms the drawings of report.html along the cycles: buttons, Ctrl with the wheel, and pinching.
// A drawing becomes wider than its frame, which scrolls; its height stays, and texts keep their shape.
"use strict";
for (const bar of document.querySelectorAll(".zoom")) {
  const frame = document.getElementById(bar.dataset.for), svg = frame.querySelector("svg");
  const [out, into, whole] = bar.querySelectorAll("button"), shown = bar.querySelector("output");
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const cycles = Number(svg.dataset.cycles), left = Number(svg.dataset.left), right = Number(svg.dataset.right);
  const axis = svg.querySelector(".axis"), y = Number(axis.dataset.y), most = 256, names = [...svg.querySelectorAll("text.label, text.tick")]
    .filter((text) => !axis.contains(text));
  let zoom = 1;

  function base() { return Math.max(frame.clientWidth, 640); }

  // Texts are drawn by the scale of the page, not stretched with the drawing; names stay at the frame's left edge.
  function upright() {
    const scale = (base() * zoom) / width, tall = base() / width, stretch = tall / scale, edge = frame.scrollLeft / scale;
    for (const text of svg.querySelectorAll("text")) {
      const x = Number(text.getAttribute("x")), moved = names.includes(text) ? x * stretch + edge : x;
      text.setAttribute("transform", `translate(${moved} 0) scale(${stretch} 1) translate(${-x} 0)`);
    }
    for (const name of names) name.parentNode.appendChild(name);
  }

  function ticks() {
    const wanted = (8 * base() * zoom) / 1000;
    let step = 1;
    for (let power = 1; cycles / step > wanted; power *= 10)
      for (const factor of [1, 2, 5]) if (cycles / step > wanted) step = factor * power;
    axis.replaceChildren();
    for (let cycle = 0; cycle <= cycles; cycle += step) {
      const x = left + ((width - left - right) * cycle) / Math.max(cycles, 1);
      const line = document.createElementNS(svg.namespaceURI, "line"), text = document.createElementNS(svg.namespaceURI, "text");
      for (const [name, value] of Object.entries({class: "grid", x1: x, x2: x, y1: 0, y2: y})) line.setAttribute(name, value);
      const anchor = x > width - 40 ? "end" : "middle";
      for (const [name, value] of Object.entries({class: "tick", "text-anchor": anchor, x, y: y + 14})) text.setAttribute(name, value);
      text.textContent = cycle.toLocaleString("en-US") + (cycle ? "" : " cycles");
      axis.append(line, text);
    }
  }

  // The cycle at `at` pixels from the frame's left edge stays where it is.
  function to(wanted, at) {
    const before = zoom, kept = frame.scrollLeft + at;
    zoom = Math.min(most, Math.max(1, wanted));
    svg.style.width = `${base() * zoom}px`;
    svg.style.maxWidth = "none";
    svg.style.height = `${(base() * height) / width}px`;
    frame.scrollLeft = (kept * zoom) / before - at;
    out.disabled = whole.disabled = zoom === 1;
    into.disabled = zoom === most;
    shown.textContent = zoom === 1 ? "" : `${Math.round(10 * zoom) / 10} x`;
    ticks();
    upright();
  }

  svg.setAttribute("preserveAspectRatio", "none");
  out.onclick = () => to(zoom / 2, frame.clientWidth / 2);
  into.onclick = () => to(zoom * 2, frame.clientWidth / 2);
  whole.onclick = () => to(1, 0);
  frame.addEventListener("scroll", upright);
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    to(zoom * Math.exp(-event.deltaY / 200), event.clientX - frame.getBoundingClientRect().left);
  }, {passive: false});
  window.addEventListener("resize", () => to(zoom, 0));
  bar.hidden = false;
  to(1, 0);
}
