"use strict";
(() => {
  document.documentElement.classList.add("js");
  const narrow = () => window.matchMedia("(max-width: 40rem)").matches;
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const PAPER = 690;  // width of an A4 page without margins in px, as in the style sheet
  const axis = (size) => ({
    gridcolor: "#e6ebf1", zerolinecolor: "#b9c4d0", linecolor: "#b9c4d0", zeroline: false, automargin: true,
    ticks: "outside", tickcolor: "#b9c4d0", ticklen: 4, title: { standoff: 8, font: { size } },
  });
  const template = (size) => ({ layout: {
    font: { family: "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif", size, color: "#33404f" },
    paper_bgcolor: "#fff", plot_bgcolor: "#fff", xaxis: axis(size), yaxis: axis(size),
    hoverlabel: { bgcolor: "#fff", bordercolor: "#b9c4d0", font: { size: 12, color: "#17202b" } },
    legend: { orientation: "h", x: 0, y: 1.01, yanchor: "bottom", font: { size } },
  } });

  const numbers = (packed) => {  // low + step k of 16-bit integers k; the largest one is NaN
    if (packed?.dtype !== "u2") return packed;  // plain numbers, or floats that Plotly reads
    const levels = new Uint16Array(Uint8Array.from(atob(packed.bdata), (sign) => sign.charCodeAt(0)).buffer);
    return Float64Array.from(levels, (k) => (k === 65535 ? NaN : packed.low + packed.step * k));
  };
  const specifications = new Map();
  const specification = (plot) => {
    if (!specifications.has(plot)) {
      const spec = JSON.parse(plot.querySelector("script").textContent);
      const shared = numbers(spec.x);
      for (const trace of spec.data) {
        trace.x = trace.x === "shared" ? shared : numbers(trace.x);
        for (const name of ["y", "customdata"]) if (trace[name]) trace[name] = numbers(trace[name]);
      }
      specifications.set(plot, spec);
    }
    return specifications.get(plot);
  };
  const screenLayout = (plot) => ({
    template: template(12), height: parseInt(plot.style.height, 10), autosize: true,
    margin: { l: narrow() ? 44 : 58, r: narrow() ? 6 : 16, t: narrow() ? 30 : 54, b: 24 },
    dragmode: touch ? false : "zoom", ...structuredClone(specification(plot).layout),
  });
  const config = () => ({
    responsive: true, displaylogo: false, displayModeBar: touch || narrow() ? false : "hover", scrollZoom: false,
    plotlyServerURL: "",  // and no button that would send the data anywhere
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
  });

  const draw = (plot) => {
    if (plot.dataset.drawn || !window.Plotly) return;
    plot.dataset.drawn = "yes";
    const { data } = specification(plot);
    plot.replaceChildren();
    Plotly.newPlot(plot, data, screenLayout(plot), config());
  };

  const plots = [...document.querySelectorAll(".plot")];
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "400px" });
  const library = document.getElementById("library");
  const unpack = async () => {
    const packed = Uint8Array.from(atob(library.textContent), (sign) => sign.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    for (const plot of plots) watcher.observe(plot);
  };
  if (plots.length) unpack().catch(() => {
    for (const plot of plots) plot.textContent = "This browser cannot unpack the figures; browsers since 2023 can.";
  });

  const redraw = (panel) => {
    for (const plot of panel.querySelectorAll(".plot[data-drawn]")) Plotly.Plots.resize(plot);
  };

  const show = (list, panels, index, focus) => {
    [...list.children].forEach((button, k) => {
      button.setAttribute("aria-selected", String(k === index));
      button.tabIndex = k === index ? 0 : -1;
      panels[k].hidden = k !== index;
    });
    redraw(panels[index]);
    if (focus) list.children[index].focus();
    list.scrollLeft = list.children[index].offsetLeft - list.offsetLeft - 40;
  };

  document.querySelectorAll(".tabs").forEach((box, number) => {
    const panels = [...box.children];
    const list = document.createElement("div");
    list.className = "tablist";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", box.dataset.name);
    panels.forEach((panel, k) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = panel.dataset.title;
      button.id = `tab-${number}-${k}`;
      panel.id = `panel-${number}-${k}`;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      button.addEventListener("click", () => show(list, panels, k, false));
      list.append(button);
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const now = panels.findIndex((panel) => !panel.hidden);
      show(list, panels, (now + step + panels.length) % panels.length, true);
    });
    box.prepend(list);
    show(list, panels, Number(box.dataset.first || 0), false);
  });

  // In print the figures of a group stand side by side, up to three in a row.
  const printLayout = (plot) => {
    const group = plot.closest(".series, .pair");
    const columns = group ? Math.min(group.querySelectorAll(".plot").length, 3) : 1;
    const height = [250, 145, 120][columns - 1];
    group?.style.setProperty("--columns", columns);
    plot.style.setProperty("--paper-height", `${height}px`);
    const layout = { ...screenLayout(plot), template: template(8), autosize: false, height };
    layout.width = (PAPER - 14 * (columns - 1)) / columns;
    layout.margin = { l: 34, r: 6, t: 20, b: 16 };
    if (layout.xaxis?.rangeslider) layout.xaxis.rangeslider = { visible: false };
    return layout;
  };
  const relayout = (plot, layout) => Plotly.react(plot, specification(plot).data, layout, config());

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const box of opened) box.open = true;
    if (window.Plotly) for (const plot of plots) { draw(plot); relayout(plot, printLayout(plot)); }
  });
  window.addEventListener("afterprint", () => {
    for (const box of opened) box.open = false;
    if (window.Plotly) for (const plot of plots) relayout(plot, screenLayout(plot));
  });
})();
