"use strict";
(() => {
  const TYPES = { f4: Float32Array, u2: Uint16Array };

  const unpacked = ({ dtype, bdata }) => {
    const bytes = Uint8Array.from(atob(bdata), (sign) => sign.charCodeAt(0));
    return new TYPES[dtype](bytes.buffer);
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
    for (const name of ["q", "transforms", "world", "triangles", "tones"]) arm[name] = unpacked(arm[name]);
    const { low, step, ...levels } = arm.vertices;
    arm.vertices = Float32Array.from(unpacked(levels), (k) => low + step * k);
    arm.frames = arm.q.length / arm.revolute.length;
    arm.transforms = Array.from({ length: arm.transforms.length / 12 }, (_, k) => arm.transforms.slice(12 * k, 12 * k + 12));
    return arm;
  };

  const positions = (arm, time) => {
    const [n, last] = [arm.revolute.length, arm.frames - 1];
    const index = arm.duration > 0 ? Math.min(Math.max(time / arm.duration, 0), 1) * last : 0;
    const k = Math.min(Math.floor(index), Math.max(last - 1, 0));
    const [share, next] = [index - k, Math.min(k + 1, last)];
    return Array.from({ length: n }, (_, j) => (1 - share) * arm.q[k * n + j] + share * arm.q[next * n + j]);
  };

  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const unit = (a) => a.map((value) => value / (Math.hypot(...a) || 1));
  const color = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255);

  // Normals of the vertices in the frames of their links: sums of those of the faces around them, by area.
  const normals = ({ vertices: v, triangles }) => {
    const sums = new Float32Array(v.length);
    const corner = (k) => [v[3 * k], v[3 * k + 1], v[3 * k + 2]];
    for (let f = 0; f < triangles.length; f += 3) {
      const [a, b, c] = [0, 1, 2].map((k) => corner(triangles[f + k]));
      const normal = cross(b.map((value, k) => value - a[k]), c.map((value, k) => value - a[k]));
      for (let k = 0; k < 3; k++) for (let axis = 0; axis < 3; axis++) sums[3 * triangles[f + k] + axis] += normal[axis];
    }
    return sums;
  };

  // Every vector (x, y, z one after another) in the world, from the frames of the links: points (share 1) or directions (0).
  const placed = (arm, chain, vectors, share) => {
    const result = new Float32Array(vectors.length);
    let k = 0;
    arm.counts.forEach((number, link) => {
      const T = chain[link];
      for (const stop = k + 3 * number; k < stop; k += 3) {
        const [a, b, c] = [vectors[k], vectors[k + 1], vectors[k + 2]];
        result[k] = T[0] * a + T[1] * b + T[2] * c + share * T[9];
        result[k + 1] = T[3] * a + T[4] * b + T[5] * c + share * T[10];
        result[k + 2] = T[6] * a + T[7] * b + T[8] * c + share * T[11];
      }
    });
    return result;
  };

  const path = (arm) => Array.from({ length: arm.frames }, (_, k) => frames(arm, positions(arm, (arm.duration * k) / Math.max(arm.frames - 1, 1))).pop().slice(9));

  const floor = (arm) => {  // lines of the grid, each from one point to another
    const [low, high] = arm.box;
    const marks = (k) => {
      const values = [];
      for (let m = Math.ceil(low[k] / arm.grid); m * arm.grid <= high[k]; m++) values.push(m * arm.grid);
      return values;
    };
    const [x, y, z] = [marks(0), marks(1), low[2]];
    return [...x.map((value) => [[value, y[0], z], [value, y[y.length - 1], z]]),
            ...y.map((value) => [[x[0], value, z], [x[x.length - 1], value, z]])];
  };

  const MESH = [`
    attribute vec3 point, normal, tone; uniform mat4 camera; uniform vec3 light; varying vec3 shade;
    void main() {
      float length_ = length(normal);
      shade = length_ > 0.0 ? tone * min(0.5 + 0.56 * max(dot(normal / length_, light), 0.0), 1.05) : tone;
      gl_Position = camera * vec4(point, 1.0);
    }`, "precision mediump float; varying vec3 shade; void main() { gl_FragColor = vec4(shade, 1.0); }"];
  const LINE = [`
    attribute vec3 from, to; attribute vec2 corner; uniform mat4 camera; uniform vec2 size;
    void main() {
      vec4 a = camera * vec4(from, 1.0), b = camera * vec4(to, 1.0);
      vec2 along = normalize((b.xy / b.w - a.xy / a.w) * size + 1e-6);
      vec4 end = corner.x < 0.5 ? a : b;
      gl_Position = end + vec4(corner.y * vec2(-along.y, along.x) / size * end.w, -0.0003 * end.w, 0.0);
    }`, "precision mediump float; uniform vec3 ink; void main() { gl_FragColor = vec4(ink, 1.0); }"];

  const program = (gl, [vertex, fragment]) => {
    const made = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    return made;
  };

  // Draws the arm at an instant, seen from a direction; returns null without WebGL.
  const painter = (arm, canvas) => {
    const scale = window.devicePixelRatio || 1;
    const gl = canvas.getContext("webgl", { alpha: true, antialias: true, preserveDrawingBuffer: true });
    if (!gl) return null;
    const [solid, thread] = [program(gl, MESH), program(gl, LINE)];
    const buffer = (values) => {
      const made = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, made);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      return made;
    };
    const feed = (used, name, size, made) => {
      const place = gl.getAttribLocation(used, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, made);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 0, 0);
    };
    const [[a, b, z], [c, d]] = arm.box;
    const below = z - 0.002 * (c - a);
    const ground = { point: buffer(new Float32Array([a, b, below, c, b, below, a, d, below, c, d, below])),
                     normal: buffer(new Float32Array(12)), tone: buffer(new Float32Array([...Array(4)].flatMap(() => color("#f1f4f8")))) };
    const body = { point: gl.createBuffer(), normal: gl.createBuffer(),
                   tone: buffer(new Float32Array(Array.from(arm.tones, (k) => color(arm.colors[k])).flat())) };
    const faces = gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, faces);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, arm.triangles, gl.STATIC_DRAW);
    const lines = (segments, ink, width) => {  // two triangles for every segment
      const corners = [[0, -1], [0, 1], [1, -1], [1, -1], [0, 1], [1, 1]];
      const each = (pick) => buffer(new Float32Array(segments.flatMap((segment) => corners.flatMap((corner) => pick(segment, corner)))));
      return { from: each(([from]) => from), to: each(([, to]) => to), corner: each((_, [end, side]) => [end, side * width]),
               count: 6 * segments.length, ink: color(ink) };
    };
    const points = path(arm);
    const threads = [lines(floor(arm), "#c3cedb", scale), lines(points.slice(1).map((point, k) => [points[k], point]), "#e07b39", 2.2 * scale)];
    const outwards = normals(arm);
    const middle = [0, 1, 2].map((k) => 0.5 * (arm.box[0][k] + arm.box[1][k]));
    const radius = 0.5 * Math.hypot(...[0, 1, 2].map((k) => arm.box[1][k] - arm.box[0][k]));

    const camera = (view) => {  // columns of the matrix of a perspective that contains the scene
      const aspect = canvas.width / canvas.height;
      const focus = 1 / Math.tan(0.22);
      const far = (radius * focus) / (1.28 * Math.min(1, 0.62 * aspect));
      const right = unit(cross([0, 0, 1], view));
      const up = cross(view, right);
      const eye = middle.map((value, k) => value + far * view[k]);
      const [near, end] = [Math.max(far - 1.5 * radius, 0.01 * far), far + 1.5 * radius];
      const rows = [right, up, view].map((axis) => [...axis, -dot(axis, eye)]);
      const deep = [(near + end) / (near - end), (2 * near * end) / (near - end)];
      const M = [rows[0].map((value) => (value * focus) / aspect), rows[1].map((value) => value * focus),
                 rows[2].map((value, k) => deep[0] * value + (k === 3 ? deep[1] : 0)), rows[2].map((value) => -value)];
      return new Float32Array([0, 1, 2, 3].flatMap((column) => M.map((row) => row[column])));
    };

    return (time, view) => {
      const chain = frames(arm, positions(arm, time));
      canvas.points = placed(arm, chain, arm.vertices, 1);
      for (const [name, values] of [["point", canvas.points], ["normal", placed(arm, chain, outwards, 0)]]) {
        gl.bindBuffer(gl.ARRAY_BUFFER, body[name]);
        gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      }
      const matrix = camera(view);
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      gl.enable(gl.DEPTH_TEST);
      gl.useProgram(solid);
      gl.uniformMatrix4fv(gl.getUniformLocation(solid, "camera"), false, matrix);
      const side = unit(cross([0, 0, 1], view));
      gl.uniform3fv(gl.getUniformLocation(solid, "light"), unit(view.map((value, k) => value - 0.5 * side[k] + (k === 2 ? 0.9 : 0))));
      for (const name of ["point", "normal", "tone"]) feed(solid, name, 3, ground[name]);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
      for (const name of ["point", "normal", "tone"]) feed(solid, name, 3, body[name]);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, faces);
      gl.drawElements(gl.TRIANGLES, arm.triangles.length, gl.UNSIGNED_SHORT, 0);
      gl.useProgram(thread);
      gl.uniformMatrix4fv(gl.getUniformLocation(thread, "camera"), false, matrix);
      gl.uniform2f(gl.getUniformLocation(thread, "size"), canvas.width, canvas.height);
      for (const each of threads) {
        gl.uniform3fv(gl.getUniformLocation(thread, "ink"), each.ink);
        feed(thread, "from", 3, each.from);
        feed(thread, "to", 3, each.to);
        feed(thread, "corner", 2, each.corner);
        gl.drawArrays(gl.TRIANGLES, 0, each.count);
      }
    };
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
    const canvas = document.createElement("canvas");
    const draw = painter(arm, canvas);
    if (!draw) return;  // without WebGL the drawing remains
    canvas.className = "motion-view";
    container.append(canvas);
    const controls = made("div", container, "motion-controls");
    const play = made("button", controls, "motion-play", "Play");
    const slider = made("input", controls, "motion-time");
    const status = made("output", controls, "motion-status");
    play.type = "button";
    Object.assign(slider, { type: "range", min: 0, max: arm.duration, step: "any", value: 0 });
    slider.setAttribute("aria-label", "Time in s");
    if (!arm.duration) play.hidden = slider.hidden = true;

    let [time, running, before, hidden, dirty] = [0, false, 0, false, false];
    const first = [Math.atan2(arm.view[1], arm.view[0]), Math.asin(arm.view[2])];
    let [azimuth, elevation] = first;
    const paint = () => {
      if (dirty) return;
      dirty = true;
      requestAnimationFrame(() => {
        dirty = false;
        const flat = Math.cos(elevation);
        draw(time, [flat * Math.cos(azimuth), flat * Math.sin(azimuth), Math.sin(elevation)]);
      });
    };
    const updateStatus = () => {
      const tip = frames({ ...arm, world: [1, 0, 0, 0, 1, 0, 0, 0, 1] }, positions(arm, time)).pop().slice(9);
      const speed = arm.speed > 1 ? ` (×${arm.speed})` : "";
      status.textContent = `${time.toFixed(2)} s${speed} · tool ${tip.map((value) => value.toFixed(3)).join(", ")} m`;
      slider.value = time;
      slider.setAttribute("aria-valuetext", `${time.toFixed(1)} s of ${arm.duration.toFixed(1)} s`);
    };
    const show = (at) => {
      time = Math.min(Math.max(at, 0), arm.duration);
      updateStatus();
      paint();
    };
    const step = () => {
      if (!running) return;
      const now = performance.now();
      if (!hidden) show(time + (arm.speed * Math.min(now - before, 250)) / 1000);
      before = now;
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
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return;
      azimuth -= 0.008 * event.movementX;
      elevation = Math.min(Math.max(elevation + 0.008 * event.movementY, -1.5), 1.5);
      paint();
    });
    canvas.addEventListener("dblclick", () => { [azimuth, elevation] = first; paint(); });
    window.addEventListener("beforeprint", () => run(false));
    new IntersectionObserver(([entry]) => { hidden = !entry.isIntersecting; }).observe(canvas);
    new ResizeObserver(() => {
      const scale = window.devicePixelRatio || 1;
      [canvas.width, canvas.height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
      paint();
    }).observe(canvas);
    container.classList.add("motion-live");
    updateStatus();
    paint();
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { watcher.unobserve(entry.target); start(entry.target); }
  }, { rootMargin: "400px" });
  for (const container of document.querySelectorAll(".motion")) watcher.observe(container);
})();
