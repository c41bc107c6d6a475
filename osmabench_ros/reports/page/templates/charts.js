'use strict';
// Draws the charts, and leaves one method or one condition on the page where it is chosen.
(() => {
  const charts = JSON.parse(document.getElementById('chart-data').textContent);
  const places = [...document.querySelectorAll('[data-chart]')];
  const buttons = [...document.querySelectorAll('[data-choose]')];
  const chosen = { mapper: null, condition: null };
  let views = [];

  const fits = (kind, value) => chosen[kind] === null || value == null || value === chosen[kind];
  const narrowed = (chart) => {
    const rows = Object.entries(chart.datasets).map(([name, all]) => [
      name,
      all.filter((row) => fits('mapper', row.mapper) && fits('condition', row.condition)),
    ]);
    return { ...chart, datasets: Object.fromEntries(rows) };
  };

  // Names on axes and in legends answer to the mouse as marks do.
  const clickable = (part) => {
    const answer = (texts) => ({ ...texts, interactive: true });
    for (const axis of part.axes ?? []) {
      axis.encode = { ...axis.encode, labels: answer(axis.encode?.labels) };
    }
    for (const legend of part.legends ?? []) {
      const { labels, symbols } = legend.encode ?? {};
      legend.encode = { ...legend.encode, labels: answer(labels), symbols: answer(symbols) };
    }
    (part.marks ?? []).forEach(clickable);
    return part;
  };

  // With `ast` the expressions of a chart are interpreted: the page allows no text to become code.
  const options = { actions: false, ast: true, patch: clickable, renderer: 'svg' };

  const draw = async () => {
    views.forEach((drawn) => drawn.finalize());
    views = await Promise.all(
      places.map((place) => window.vegaEmbed(place, narrowed(charts[place.dataset.chart]), options)),
    );
    // What the chart says is in the label of its place.
    places.forEach((place) => {
      const svg = place.querySelector('svg');
      svg.setAttribute('aria-hidden', 'true');
      // A chart takes the width of the page, but its letters stay as large as designed, or half more.
      const width = svg.width.baseVal.value;
      svg.style.minWidth = `${width}px`;
      svg.style.maxWidth = `${1.5 * width}px`;
    });
    views.forEach(({ view }) => view.addEventListener('click', (_, item) => choose(named(item))));
    document.documentElement.dataset.drawn = views.length;
  };

  // The buttons of what a mark, or a name on an axis or in a legend, belongs to.
  const named = (item) => {
    if (!item?.datum) return [];
    const isName = /^(axis|legend)-/.test(item.mark.role ?? '');
    const text = isName ? String(item.datum.value).replace(/ \(reference\)$/, '') : item.datum.mapper;
    const parts = String(text).split(' · ');
    return buttons.filter((button) => parts.includes(button.value));
  };

  const choose = (picked) => {
    if (picked.length === 0) return;
    const isNew = picked.some(({ dataset, value }) => chosen[dataset.choose] !== value);
    picked.forEach(({ dataset, value }) => { chosen[dataset.choose] = isNew ? value : null; });
    buttons.forEach((button) =>
      button.setAttribute('aria-pressed', chosen[button.dataset.choose] === button.value));
    const isShown = (title) => {
      const parts = title.split(' · ');
      const mentioned = buttons.filter((button) => parts.includes(button.value));
      return ['mapper', 'condition'].every((kind) => {
        const values = mentioned.filter((one) => one.dataset.choose === kind).map((one) => one.value);
        return chosen[kind] === null || values.length === 0 || values.includes(chosen[kind]);
      });
    };
    document.dispatchEvent(new CustomEvent('choose', { detail: isShown }));
    draw();
  };

  buttons.forEach((button) => button.addEventListener('click', () => choose([button])));
  draw();
})();
