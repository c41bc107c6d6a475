// The 3D view. Names come from untrusted maps, so they enter the page as text nodes only.
(() => {
  const source = document.getElementById('space-data');
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const form = document.getElementById('space-controls');
  const canvas = document.getElementById('space-canvas');
  const said = document.getElementById('space-said');
  const legend = document.getElementById('space-legend');
  const track = document.getElementById('space-track');
  const frameBox = document.getElementById('space-frame');
  const LAYERS = [
    ['colour', 'Map, colour', (run) => run.cloud, 'rgb'],
    ['class', 'Map, class', (run) => run.cloud, 'classes'],
    ['instance', 'Map, instance', (run) => run.cloud, 'instances'],
    ['error', 'Errors', (run) => run.errors, 'codes'],
    ['truth', 'Ground truth, class', (_, scene) => scene.cloud, 'classes'],
    ['things', 'Ground truth, instance', (_, scene) => scene.cloud, 'instances'],
  ];
  const PICK_PX = 16;
  const NEAR_M = 0.05;
  const [PATH, NOW, ESTIMATE] = [0xd81b60, 0x00c853, 0xff8f00];
  const run = () => data.runs[Number(form.run.value)];
  const scene = () => data.scenes[run().scene];
  const make = (name, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };

  const kept = new Map();
  const inflated = (text, Type) => {
    if (!kept.has(text)) {
      const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
      kept.set(text, new Response(stream).arrayBuffer().then((buffer) => new Type(buffer)));
    }
    return kept.get(text);
  };
  const channels = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255);
  const ofInstance = (id) => {
    if (!id) return [0.5, 0.5, 0.5];
    const color = new THREE.Color().setHSL((id * 0.618034) % 1, 0.7, 0.45 + 0.15 * (id % 3) / 2);
    return [color.r, color.g, color.b];
  };

  let world;
  const start = () => {
    try {
      world = { renderer: new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true }) };
    } catch {
      said.textContent = 'This browser has no WebGL; the views from above are below.';
      return;
    }
    world.camera = new THREE.PerspectiveCamera(50, 1, NEAR_M, 500);
    world.camera.up.set(0, 0, 1);
    world.target = new THREE.Vector3();
    world.scene = new THREE.Scene();
    new ResizeObserver(resize).observe(canvas.parentElement);
    choose();
  };

  let waiting = false;
  const draw = () => {
    if (waiting || !world) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      world.camera.lookAt(world.target);
      world.renderer.render(world.scene, world.camera);
    });
  };
  const resize = () => {
    const { clientWidth, clientHeight } = canvas;
    world.renderer.setPixelRatio(window.devicePixelRatio);
    world.renderer.setSize(clientWidth, clientHeight, false);
    world.camera.aspect = clientWidth / clientHeight;
    world.camera.updateProjectionMatrix();
    draw();
  };

  const home = () => {
    const { low, step, floor } = scene();
    const box = new THREE.Box3().setFromBufferAttribute(world.points.geometry.attributes.position);
    const reach = box.isEmpty() ? 5 : box.getSize(new THREE.Vector3()).length();
    box.getCenter(world.target);
    if (box.isEmpty()) world.target.set(low[0] + 32767 * step, low[1] + 32767 * step, floor);
    // So far that it fits the narrower side; what is near looks larger, the corners of the box are empty.
    const slope = Math.tan((world.camera.fov * Math.PI) / 360) * Math.min(1, world.camera.aspect);
    const far = (0.5 * reach) / Math.sin(Math.atan(slope));
    world.camera.position.set(-0.35, -0.55, 0.75).setLength(1.05 * far).add(world.target);
    draw();
  };
  const turn = (aside, up) => {
    const eye = new THREE.Spherical().setFromVector3(
      world.camera.position.clone().sub(world.target).applyAxisAngle(new THREE.Vector3(1, 0, 0), -Math.PI / 2),
    );
    eye.theta -= aside;
    eye.phi = Math.min(Math.PI - 0.05, Math.max(0.05, eye.phi - up));
    world.camera.position
      .setFromSpherical(eye)
      .applyAxisAngle(new THREE.Vector3(1, 0, 0), Math.PI / 2)
      .add(world.target);
    draw();
  };
  const move = (right, up) => {
    const far = world.camera.position.distanceTo(world.target);
    const [x, y] = [0, 1].map((i) => new THREE.Vector3().setFromMatrixColumn(world.camera.matrix, i));
    const by = x.multiplyScalar(right * far).add(y.multiplyScalar(up * far));
    world.camera.position.add(by);
    world.target.add(by);
    draw();
  };
  const zoom = (factor) => {
    world.camera.position.sub(world.target).multiplyScalar(factor).add(world.target);
    draw();
  };

  const entry = ([name, color]) => {
    const swatch = make('span', { className: 'swatch' });
    swatch.style.background = color;
    return make('li', {}, swatch, name);
  };

  // The points of a layer: where they are, and the colour of each by what the layer tells.
  const show = async () => {
    const [, , of, by] = LAYERS.find(([name]) => name === form.layer.value);
    const cloud = of(run(), scene());
    const wanted = [form.run.value, form.layer.value].join();
    // Errors are those of the points of the ground truth, and then what the map invents.
    const clouds = by === 'codes' ? [scene().cloud, cloud] : [cloud];
    const parts = await Promise.all(clouds.map((item) => inflated(item.xyz, Uint16Array)));
    const values = await inflated(cloud[by], by === 'rgb' || by === 'codes' ? Uint8Array : Uint16Array);
    if (wanted !== [form.run.value, form.layer.value].join()) return;
    const count = parts.reduce((sum, part) => sum + part.length / 3, 0);
    const { low, step } = scene();
    const places = new Float32Array(3 * count);
    const colors = new Float32Array(3 * count);
    const named = { classes: scene().classes, codes: scene().errors }[by];
    const table = named?.map(([, color]) => channels(color));
    const counts = new Map();
    let filled = 0;
    for (const part of parts) {
      const length = part.length / 3;
      for (let i = 0; i < length; i += 1, filled += 3) {
        for (let j = 0; j < 3; j += 1) places[filled + j] = low[j] + step * part[j * length + i];
      }
    }
    for (let i = 0; i < count; i += 1) {
      if (by === 'rgb') for (let j = 0; j < 3; j += 1) colors[3 * i + j] = values[j * count + i] / 255;
      else colors.set(table ? table[values[i]] : ofInstance(values[i]), 3 * i);
      if (table) counts.set(values[i], (counts.get(values[i]) || 0) + 1);
    }
    const first = !world.points;
    if (!first) {
      world.scene.remove(world.points);
      world.points.geometry.dispose();
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute('position', new THREE.BufferAttribute(places, 3));
    geometry.setAttribute('color', new THREE.BufferAttribute(colors, 3));
    // As large as the gaps, so that surfaces look closed; three.js leaves out the angle of view.
    const size = (1.3 * clouds[0].gap) / Math.tan((world.camera.fov * Math.PI) / 360);
    const material = new THREE.PointsMaterial({ size, vertexColors: true });
    world.points = new THREE.Points(geometry, material);
    world.scene.add(world.points);
    const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 14);
    legend.replaceChildren(...most.map(([code]) => entry(named[code])));
    if (first || world.of !== run().scene) home();
    world.of = run().scene;
    overlay();
  };

  const dots = (places, color, size) => {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute('position', new THREE.Float32BufferAttribute(places.flat(), 3));
    return new THREE.Points(geometry, new THREE.PointsMaterial({ color, size, sizeAttenuation: false }));
  };
  const lines = (places, color, apart = false) => {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute('position', new THREE.Float32BufferAttribute(places.flat(), 3));
    const material = new THREE.LineBasicMaterial({ color });
    return apart ? new THREE.LineSegments(geometry, material) : new THREE.Line(geometry, material);
  };
  const middle = (node) => node.low.map((edge, i) => (edge + node.high[i]) / 2);
  const graph = () => (['truth', 'things'].includes(form.layer.value) ? scene() : run()).graph;

  // What lies over the points: boxes and relations of the graph, the path and its frames.
  const overlay = () => {
    if (!world?.points) return;
    if (world.over) world.scene.remove(world.over);
    world.over = new THREE.Group();
    world.picks = [];
    const nodes = form.graph.checked ? graph().nodes : [];
    for (const node of nodes) {
      const box = new THREE.Box3(new THREE.Vector3(...node.low), new THREE.Vector3(...node.high));
      world.over.add(new THREE.Box3Helper(box, new THREE.Color(node.color)));
      world.picks.push([middle(node), () => tell(node)]);
    }
    const edges = form.graph.checked ? graph().edges : [];
    const ends = edges.flatMap(([a, b]) => [middle(nodes[a]), middle(nodes[b])]);
    if (ends.length) world.over.add(lines(ends, 0x888888, true));
    const frames = form.path.checked ? run().frames : [];
    if (frames.length) {
      const places = frames.map((frame) => frame.at);
      world.over.add(lines(places, PATH));
      world.over.add(dots(places, PATH, 7));
      frames.forEach((frame, i) => world.picks.push([frame.at, () => pick(i)]));
      const now = frames[Number(track.querySelector('input').value)];
      const ahead = now.at.map((value, i) => value + 0.8 * now.ahead[i]);
      world.over.add(lines([now.at, ahead], NOW), dots([now.at], NOW, 13));
      if (run().estimate.length) world.over.add(lines(run().estimate, ESTIMATE));
    }
    world.scene.add(world.over);
    // What is above the cut would hide the rooms; the path may lie above it.
    const cut = new THREE.Plane(new THREE.Vector3(0, 0, -1), Number(form.cut.value));
    world.renderer.localClippingEnabled = true;
    world.points.material.clippingPlanes = [cut];
    draw();
  };

  const tell = (node) => {
    const { nodes, edges } = graph();
    const own = edges
      .filter(([a]) => nodes[a] === node)
      .map(([, b, type]) => `${type} ${nodes[b].name} (${nodes[b].id})`);
    const size = node.high.map((edge, i) => (edge - node.low[i]).toFixed(2)).join(' × ');
    said.textContent = [`${node.name} (${node.id}), ${size} m`, ...own.slice(0, 8)].join('; ');
  };
  const pick = (number) => {
    const { frames, anchor } = run();
    const frame = frames[number];
    track.querySelector('input').value = number;
    track.querySelector('.now').setAttribute('x', number);
    const parts = (frame.shares || []).map((share, i) => `${(100 * share).toFixed(1)} % ${scene().errors[i][0]}`);
    said.textContent = `Frame ${frame.index}${parts.length ? `: of the surface in view ${parts.join(', ')}` : ''}`;
    // Few frames are kept as pictures; the last one before stays.
    const passed = frames.slice(0, number + 1).reverse().map(({ index }) => [index, document.getElementById(`${anchor}-frame-${index}`)]);
    const [index, picture] = passed.find(([, there]) => there) || [];
    frameBox.hidden = !picture;
    if (picture) {
      const image = make('img', { src: picture.src, alt: picture.alt });
      const kept = index === frame.index ? '' : ', the last one kept as a picture';
      frameBox.replaceChildren(image, make('figcaption', { textContent: `Frame ${index}${kept}` }));
    }
    overlay();
  };

  const chart = () => {
    const { frames } = run();
    const svg = track.querySelector('svg');
    track.hidden = !frames.length;
    if (!frames.length) return;
    const rect = (properties) => {
      const made = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
      return made;
    };
    svg.setAttribute('viewBox', `0 0 ${frames.length} 100`);
    svg.replaceChildren(...frames.flatMap((frame, x) => {
      let y = 100;
      return (frame.shares || []).map((share, i) => {
        y -= 100 * share;
        return rect({ x, y, width: 1.01, height: 100 * share, fill: scene().errors[i][1] });
      });
    }), rect({ class: 'now', x: 0, y: 0, width: 1, height: 100 }));
    const told = frames.find((frame) => frame.shares)?.shares || [];
    track.querySelector('ul').replaceChildren(...told.map((_, i) => entry(scene().errors[i])));
    const input = track.querySelector('input');
    input.max = frames.length - 1;
    input.value = 0;
  };

  // A run was chosen: which layers it has, how high it is, what its frames saw.
  const choose = () => {
    const before = form.layer.value;
    const having = LAYERS.filter(([, , of, by]) => of(run(), scene())?.[by]);
    form.layer.replaceChildren(...having.map(([value, textContent]) => make('option', { value, textContent })));
    if (having.some(([name]) => name === before)) form.layer.value = before;
    const { floor, top, cut } = scene();
    Object.assign(form.cut, { min: floor, max: Math.max(top, cut) + 0.05 });
    if (world.of !== run().scene) form.cut.value = cut;
    chart();
    frameBox.hidden = true;
    show();
  };

  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', (event) => {
    if (!world) return;
    if (event.target === form.run) choose();
    else if (event.target === form.layer) show();
    else overlay();
  });
  form.home.addEventListener('click', () => home());
  track.querySelector('input').addEventListener('input', (event) => pick(Number(event.target.value)));
  track.querySelector('svg').addEventListener('click', (event) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    pick(Math.min(run().frames.length - 1, Math.floor((run().frames.length * (event.clientX - left)) / width)));
  });

  let pressed = null;
  canvas.addEventListener('pointerdown', (event) => {
    pressed = { x: event.clientX, y: event.clientY, moved: 0 };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!pressed || !world) return;
    const [x, y] = [event.clientX - pressed.x, event.clientY - pressed.y];
    pressed = { x: event.clientX, y: event.clientY, moved: pressed.moved + Math.hypot(x, y) };
    if (event.shiftKey) move(-x / canvas.clientHeight, y / canvas.clientHeight);
    else turn(0.006 * x, 0.006 * y);
  });
  canvas.addEventListener('pointercancel', () => { pressed = null; });
  canvas.addEventListener('pointerup', (event) => {
    const click = pressed && pressed.moved < 4;
    pressed = null;
    if (!click || !world?.picks) return;
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    let [nearest, found] = [PICK_PX, null];
    for (const [place, act] of world.picks) {
      const at = new THREE.Vector3(...place).project(world.camera);
      const far = Math.hypot(
        (0.5 * at.x + 0.5) * canvas.clientWidth - x, (0.5 - 0.5 * at.y) * canvas.clientHeight - y,
      );
      if (at.z < 1 && far < nearest) [nearest, found] = [far, act];
    }
    found?.();
  });
  // Only after a click, so that who scrolls through the page is not caught here.
  canvas.addEventListener('wheel', (event) => {
    if (document.activeElement !== canvas || !world) return;
    event.preventDefault();
    zoom(1.001 ** event.deltaY);
  }, { passive: false });
  canvas.addEventListener('keydown', (event) => {
    const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [0, 0];
    if (!world || !(x || y || '+-='.includes(event.key))) return;
    event.preventDefault();
    if (!x && !y) zoom(event.key === '-' ? 1.15 : 0.87);
    else if (event.shiftKey) move(0.05 * x, 0.05 * y);
    else turn(-0.1 * x, -0.1 * y);
  });

  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    start();
  }, { rootMargin: '300px' }).observe(canvas);
})();
