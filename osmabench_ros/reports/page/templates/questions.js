// The browser of questions. Texts come from untrusted maps and models, so they
// enter the page as text nodes only, never as markup.
(() => {
  const source = document.getElementById('question-data');
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const form = document.getElementById('question-controls');
  const body = document.querySelector('#question-table tbody');
  const count = document.getElementById('question-count');
  const more = document.getElementById('more-questions');
  const otherHead = document.querySelector('#question-table .other');
  const STEP = 50;
  const SVG = 'http://www.w3.org/2000/svg';
  let found = [];
  let shown = 0;

  const make = (name, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };
  const draw = (name, attributes) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const run = () => data.runs[Number(form.run.value)];
  const other = () => (form.other.value === '' ? null : data.runs[Number(form.other.value)]);
  const scene = () => data.scenes[run().scene];
  const badge = (verdict) => make('span', { className: `verdict ${verdict}`, textContent: verdict });
  const named = (ids, nodes) =>
    ids.map((id) => `${nodes[id] ? nodes[id].name : 'node'} (${id})`).join(', ') || '–';

  const topView = (question, answer) => {
    const view = scene().view;
    if (!view) return null;
    const svg = draw('svg', { viewBox: `0 0 ${view.size[0]} ${view.size[1]}`, role: 'img' });
    svg.setAttribute('aria-label', 'Where the nodes are, from above');
    svg.append(draw('use', { href: `#${view.id}` }));
    const boxes = [
      ['box-truth', question.nodes, scene().nodes],
      ['box-used', answer.nodes, run().nodes],
    ];
    let any = false;
    for (const [kind, ids, nodes] of boxes) {
      for (const box of ids.map((id) => nodes[id]?.box).filter(Boolean)) {
        const [x, y, width, height] = box;
        svg.append(draw('rect', { class: kind, x, y, width, height }));
        any = true;
      }
    }
    return any ? svg : null;
  };

  const framed = (answer) => {
    if (!answer.frame) return null;
    const picture = document.getElementById(`${run().anchor}-frame-${answer.frame.index}`);
    if (!picture) return null;
    const box = make('div', { className: 'framed' });
    box.append(make('img', { src: picture.src, alt: picture.alt }));
    for (const [left, top, width, height] of Object.values(answer.frame.boxes)) {
      const mark = make('span');
      Object.assign(mark.style, {
        left: `${left}%`, top: `${top}%`, width: `${width}%`, height: `${height}%`,
      });
      box.append(mark);
    }
    return make('figure', {}, box, make('figcaption', { textContent: `Frame ${answer.frame.index}` }));
  };

  const basis = (question, answer) => {
    const list = make('dl');
    const add = (term, text, key = '') => {
      if (!text) return;
      list.append(make('dt', {}, make('span', { className: key, textContent: term })));
      list.append(make('dd', { textContent: text }));
    };
    add('Options', (question.options || []).join('; '));
    add('Changed since', question.changed);
    add('Asked about', named(question.nodes, scene().nodes), 'key-truth');
    add('Nodes used', named(answer.nodes, run().nodes), 'key-used');
    add('Answer', answer.answer || 'none');
    add('Note', answer.note);
    for (const used of answer.transcript || []) {
      add('Looked up', `${used.tool} ${used.arguments}: ${used.result}`);
    }
    add('Judge', answer.reason);
    add('Least visible', question.visible);
    add('Kind', question.kind);
    add('Id', question.id);
    const parts = [list, framed(answer), topView(question, answer)].filter(Boolean);
    const grid = make('div', { className: 'basis-grid' }, ...parts);
    return make('tr', { className: 'basis' }, make('td', { colSpan: 6 }, grid));
  };

  // On narrow screens rows become cards, whose cells show these names.
  const cell = (label, ...children) => {
    const made = make('td', {}, ...children);
    made.dataset.label = label;
    return made;
  };

  const rowOf = (question) => {
    const answer = run().answers[question.id];
    const opener = make('button', { type: 'button', className: 'question-toggle', textContent: question.text });
    opener.setAttribute('aria-expanded', 'false');
    const row = make(
      'tr', {},
      make('td', {}, opener),
      cell('Category', question.category),
      cell('Right answer', question.answer),
      cell('Answer', answer.answer || '–'),
      cell('Verdict', badge(answer.verdict)),
    );
    const its = other()?.answers[question.id];
    if (other()) row.append(cell('Other run', ...(its ? [badge(its.verdict), ` ${its.answer}`] : ['–'])));
    opener.addEventListener('click', () => {
      const open = opener.getAttribute('aria-expanded') === 'true';
      opener.setAttribute('aria-expanded', String(!open));
      if (open) row.nextElementSibling.remove();
      else row.after(basis(question, answer));
    });
    return row;
  };

  const extend = () => {
    body.append(...found.slice(shown, shown + STEP).map(rowOf));
    shown = Math.min(found.length, shown + STEP);
    more.hidden = shown === found.length;
    more.textContent = `Show more (${found.length - shown} left)`;
  };

  const matches = (question) => {
    const answer = run().answers[question.id];
    if (!answer) return false;
    if (form.category.value && question.category !== form.category.value) return false;
    const wanted = form.verdict.value;
    if (wanted === 'differs') {
      if (other()?.answers[question.id]?.verdict === answer.verdict || !other()) return false;
    } else if (wanted && answer.verdict !== wanted) return false;
    const nodes = named(question.nodes, scene().nodes);
    const text = `${question.text} ${question.answer} ${answer.answer} ${nodes}`.toLowerCase();
    return form.text.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };

  const apply = () => {
    found = scene().questions.filter(matches);
    const having = (verdict) => found.filter((item) => run().answers[item.id].verdict === verdict).length;
    const unserved = having('not applicable');
    count.textContent = `${found.length} of ${scene().questions.length} questions, ${having('right')} right${unserved ? `, ${unserved} not applicable` : ''}`;
    otherHead.hidden = !other();
    body.replaceChildren();
    shown = 0;
    extend();
  };

  const categories = new Set(
    Object.values(data.scenes).flatMap((item) => item.questions.map((question) => question.category)),
  );
  form.category.append(...[...categories].map((name) => make('option', { value: name, textContent: name })));
  form.addEventListener('input', apply);
  form.addEventListener('submit', (event) => event.preventDefault());
  more.addEventListener('click', extend);
  apply();
})();
