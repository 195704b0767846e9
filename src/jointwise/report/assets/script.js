"use strict";
(() => {
  document.documentElement.classList.add("js");
  const narrow = () => window.matchMedia("(max-width: 40rem)").matches;
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const PAPER = { width: 690, height: 400, autosize: false };  // A4 in px, as in the style sheet
  const axis = { gridcolor: "#e6ebf1", zerolinecolor: "#b9c4d0", linecolor: "#b9c4d0", zeroline: false, automargin: true,
                 ticks: "outside", tickcolor: "#b9c4d0", ticklen: 4, title: { standoff: 8, font: { size: 12 } } };
  const template = { layout: {
    font: { family: "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif", size: 12, color: "#33404f" },
    paper_bgcolor: "#fff", plot_bgcolor: "#fff", xaxis: axis, yaxis: axis,
    hoverlabel: { bgcolor: "#fff", bordercolor: "#b9c4d0", font: { size: 12, color: "#17202b" } },
    legend: { orientation: "h", x: 0, y: 1.01, yanchor: "bottom", font: { size: 12 } },
  } };

  const specification = (place) => {
    const spec = JSON.parse(place.querySelector("script").textContent);
    for (const trace of spec.data) if (trace.x === "shared") trace.x = spec.x;
    const layout = { template, height: parseInt(place.style.height, 10), autosize: true,
                     margin: { l: narrow() ? 44 : 58, r: narrow() ? 6 : 16, t: narrow() ? 30 : 54, b: 24 },
                     dragmode: touch ? false : "zoom", ...spec.layout };
    return { data: spec.data, layout };
  };

  const draw = (place) => {
    if (place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    const { data, layout } = specification(place);
    place.replaceChildren();
    Plotly.newPlot(place, data, layout, {
      responsive: true, displaylogo: false, displayModeBar: touch || narrow() ? false : "hover", scrollZoom: false,
      plotlyServerURL: "",  // and no button that would send the data anywhere
      modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
    });
  };

  const plots = [...document.querySelectorAll(".plot")];
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "400px" });
  for (const plot of plots) watcher.observe(plot);

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

  const resize = (plot, size, strip) => {
    if (!plot._fullLayout) return;
    const slider = plot.layout.xaxis.rangeslider ? { "xaxis.rangeslider.visible": strip } : {};
    Plotly.relayout(plot, { ...size, ...slider });
  };

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const box of opened) box.open = true;
    for (const plot of plots) {
      draw(plot);
      resize(plot, PAPER, false);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const box of opened) box.open = false;
    for (const plot of plots) resize(plot, { width: null, height: parseInt(plot.style.height, 10), autosize: true }, true);
  });
})();
