"use strict";
(() => {
  const TYPES = { f4: Float32Array, u2: Uint16Array };

  const unpacked = ({ dtype, bdata }) => {
    const bytes = Uint8Array.from(atob(bdata), (sign) => sign.charCodeAt(0));
    return new TYPES[dtype](bytes.buffer);
  };

  const drawable = () => {
    try {
      const context = document.createElement("canvas").getContext("webgl");
      if (context) context.getExtension("WEBGL_lose_context")?.loseContext();
      return Boolean(context);
    } catch { return false; }
  };

  // A frame is [R row by row, p]; a joint turns about its z or slides along it.
  const product = (A, B) => {
    const C = new Array(12);
    for (let i = 0; i < 3; i++) {
      const [a, b, c] = [A[3 * i], A[3 * i + 1], A[3 * i + 2]];
      for (let j = 0; j < 3; j++) C[3 * i + j] = a * B[j] + b * B[3 + j] + c * B[6 + j];
      C[9 + i] = a * B[9] + b * B[10] + c * B[11] + A[9 + i];
    }
    return C;
  };
  const moved = (revolute, q) => {
    if (!revolute) return [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, q];
    const [c, s] = [Math.cos(q), Math.sin(q)];
    return [c, -s, 0, s, c, 0, 0, 0, 1, 0, 0, 0];
  };
  const frames = (arm, q) => {  // base, links, tool, all in the world
    const chain = [[...arm.world, 0, 0, 0]];
    arm.revolute.forEach((revolute, j) => chain.push(product(product(chain[j], arm.transforms[j]), moved(revolute, q[j]))));
    chain.push(product(chain[chain.length - 1], arm.transforms[arm.revolute.length]));
    return chain;
  };

  const read = (text) => {
    const arm = JSON.parse(text);
    for (const name of ["t", "q", "transforms", "world", "vertices", "triangles", "tones"]) arm[name] = unpacked(arm[name]);
    arm.transforms = Array.from({ length: arm.transforms.length / 12 }, (_, k) => arm.transforms.slice(12 * k, 12 * k + 12));
    arm.duration = arm.t[arm.t.length - 1];
    return arm;
  };

  const positions = (arm, time) => {
    const [n, last] = [arm.revolute.length, arm.t.length - 1];
    const index = arm.duration > 0 ? Math.min(Math.max(time / arm.duration, 0), 1) * last : 0;
    const k = Math.min(Math.floor(index), Math.max(last - 1, 0));
    const [share, next] = [index - k, Math.min(k + 1, last)];
    return Array.from({ length: n }, (_, j) => (1 - share) * arm.q[k * n + j] + share * arm.q[next * n + j]);
  };

  const vertices = (arm, chain) => {
    const count = arm.tones.length;
    const [x, y, z, v] = [new Float32Array(count), new Float32Array(count), new Float32Array(count), arm.vertices];
    let k = 0;
    arm.counts.forEach((number, link) => {
      const T = chain[link];
      for (const stop = k + number; k < stop; k++) {
        const [a, b, c] = [v[3 * k], v[3 * k + 1], v[3 * k + 2]];
        x[k] = T[0] * a + T[1] * b + T[2] * c + T[9];
        y[k] = T[3] * a + T[4] * b + T[5] * c + T[10];
        z[k] = T[6] * a + T[7] * b + T[8] * c + T[11];
      }
    });
    return { x, y, z };
  };

  const body = (arm) => {
    const [triangles, last] = [arm.triangles, arm.colors.length - 1];
    const column = (k) => triangles.filter((_, index) => index % 3 === k);
    const scale = arm.colors.map((color, k) => [k / last, color]);
    return { type: "mesh3d", ...vertices(arm, frames(arm, positions(arm, 0))), i: column(0), j: column(1), k: column(2),
             intensity: Float32Array.from(arm.tones), cmin: 0, cmax: last, colorscale: scale, showscale: false,
             hoverinfo: "skip", flatshading: false, lightposition: { x: 600 * arm.view[0] + 400, y: 600 * arm.view[1], z: 1400 },
             lighting: { ambient: 0.62, diffuse: 0.55, specular: 0.18, roughness: 0.55, fresnel: 0.05,
                         vertexnormalsepsilon: 1e-18, facenormalsepsilon: 1e-18 } };
  };

  const line = (points, color, width) => ({
    type: "scatter3d", mode: "lines", hoverinfo: "skip", showlegend: false, line: { color, width },
    x: points.map((p) => p[0]), y: points.map((p) => p[1]), z: points.map((p) => p[2]),
  });

  const path = (arm) => {
    const points = Array.from(arm.t, (time) => frames(arm, positions(arm, time)).pop().slice(9));
    return line(points, "#e07b39", 4);
  };

  const floor = (arm) => {
    const [low, high] = arm.box;
    const marks = (k) => {
      const values = [];
      for (let m = Math.ceil(low[k] / arm.grid); m * arm.grid <= high[k]; m++) values.push(m * arm.grid);
      return values;
    };
    const [x, y, z, gap] = [marks(0), marks(1), low[2], [null, null, null]];
    const points = [];
    for (const value of x) points.push([value, y[0], z], [value, y[y.length - 1], z], gap);
    for (const value of y) points.push([x[0], value, z], [x[x.length - 1], value, z], gap);
    return line(points, "#c3cedb", 1.5);
  };

  const ground = (arm) => {
    const [[a, b, z], [c, d]] = arm.box;
    const below = z - 0.002 * (c - a);
    return { type: "mesh3d", x: [a, c, c, a], y: [b, b, d, d], z: [below, below, below, below], i: [0, 0], j: [1, 2], k: [2, 3],
             color: "#f1f4f8", hoverinfo: "skip", lighting: { ambient: 1, diffuse: 0, specular: 0, fresnel: 0 } };
  };

  const scene = (arm, wide) => {
    const size = [0, 1, 2].map((k) => arm.box[1][k] - arm.box[0][k]);
    const unit = Math.hypot(...size);
    const edge = 0.01 * unit;  // objects on the border are not drawn
    const range = (k) => [arm.box[0][k] - edge, arm.box[1][k] + edge];
    const axis = (k) => ({ visible: false, range: range(k), autorange: false, showspikes: false,
                          showticklabels: false, tickmode: "array", tickvals: [], title: { text: "" } });
    const [x, y, z] = size.map((length) => (2 * (length + 2 * edge)) / unit);
    const far = Math.max(wide ? 1.95 : 2.2, 1.7 * z);  // tall scenes need more distance
    const [a, b, c] = arm.view.map((value) => far * value);
    return { xaxis: axis(0), yaxis: axis(1), zaxis: axis(2), aspectmode: "manual", aspectratio: { x, y, z },
             camera: { eye: { x: a, y: b, z: c }, center: { x: 0, y: 0, z: -0.21 }, up: { x: 0, y: 0, z: 1 } },
             dragmode: "turntable", hovermode: false, bgcolor: "rgba(0,0,0,0)" };
  };

  const made = (tag, parent, name, text) => {
    const child = document.createElement(tag);
    child.className = name;
    if (text) child.textContent = text;
    parent.append(child);
    return child;
  };

  const start = (container) => {
    const arm = read(container.querySelector("script").textContent);
    const view = made("div", container, "motion-view");
    const controls = made("div", container, "motion-controls");
    const play = made("button", controls, "motion-play", "Play");
    const slider = made("input", controls, "motion-time");
    const status = made("output", controls, "motion-status");
    const wide = container.clientWidth > 560;
    play.type = "button";
    Object.assign(slider, { type: "range", min: 0, max: arm.duration, step: "any", value: 0 });
    slider.setAttribute("aria-label", "Time in s");
    if (!arm.duration) play.hidden = slider.hidden = true;

    let [time, running, before, busy, held, hidden, wanted] = [0, false, 0, false, false, false, false];
    const updateStatus = () => {
      const tip = frames({ ...arm, world: [1, 0, 0, 0, 1, 0, 0, 0, 1] }, positions(arm, time)).pop().slice(9);
      const speed = arm.speed > 1 ? ` (×${arm.speed})` : "";
      status.textContent = `${time.toFixed(2)} s${speed} · tool ${tip.map((value) => value.toFixed(3)).join(", ")} m`;
      slider.value = time;
      slider.setAttribute("aria-valuetext", `${time.toFixed(1)} s of ${arm.duration.toFixed(1)} s`);
    };
    const paint = () => {  // one redraw at a time, and none while the user rotates the view
      if (busy || held) { wanted = true; return; }
      [busy, wanted] = [true, false];
      const { x, y, z } = vertices(arm, frames(arm, positions(arm, time)));
      Plotly.restyle(view, { x: [x], y: [y], z: [z] }, [0]).then(() => { busy = false; if (wanted) paint(); });
    };
    const show = (at) => {
      time = Math.min(Math.max(at, 0), arm.duration);
      updateStatus();
      paint();
    };
    const step = () => {
      if (!running) return;
      const now = performance.now();
      if (!held && !busy && !hidden) {
        show(time + (arm.speed * Math.min(now - before, 250)) / 1000);
        before = now;
      } else if (held || hidden) before = now;
      if (time >= arm.duration) run(false);
      else requestAnimationFrame(step);
    };
    const run = (on) => {
      running = on;
      play.textContent = on ? "Pause" : "Play";
      if (!on) return;
      if (time >= arm.duration) time = 0;
      before = performance.now();
      requestAnimationFrame(step);
    };

    play.addEventListener("click", () => run(!running));
    slider.addEventListener("input", () => { run(false); show(Number(slider.value)); });
    view.addEventListener("pointerdown", () => { held = true; }, true);
    for (const name of ["pointerup", "pointercancel"])
      window.addEventListener(name, () => { held = false; if (wanted) paint(); });
    window.addEventListener("beforeprint", () => run(false));
    new IntersectionObserver(([entry]) => { hidden = !entry.isIntersecting; }).observe(view);

    const layout = { scene: scene(arm, wide), margin: { l: 0, r: 0, t: 0, b: 0 }, autosize: true, showlegend: false,
                     height: wide ? 520 : 360, paper_bgcolor: "rgba(0,0,0,0)", uirevision: "kept",
                     modebar: { bgcolor: "rgba(0,0,0,0)", color: "#8794a5", activecolor: "#17202b" } };
    Plotly.newPlot(view, [body(arm), path(arm), floor(arm), ground(arm)], layout, {
      responsive: true, displaylogo: false, displayModeBar: wide ? "hover" : false, scrollZoom: false, plotlyServerURL: "",
      modeBarButtons: [["toImage", "resetCameraDefault3d"]],
    }).then(() => container.classList.add("motion-live"));
    updateStatus();
  };

  const containers = [...document.querySelectorAll(".motion")];
  if (!containers.length || !drawable()) return;  // without WebGL the drawing remains
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); start(entry.target); }
  }, { rootMargin: "400px" });
  for (const container of containers) watcher.observe(container);
})();
