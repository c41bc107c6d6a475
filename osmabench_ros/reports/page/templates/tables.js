'use strict';
// Sorting and filtering of the tables that are in the page already.
(() => {
  const LONG = 6;
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? cell.textContent.trim() : cell.dataset.sort;
  };

  // What has no figure comes last, whichever way the rest is sorted.
  const compare = (a, b, sign) => {
    if (a === '' || b === '') return (a === '') - (b === '');
    const [x, y] = [Number(a), Number(b)];
    const both = !Number.isNaN(x) && !Number.isNaN(y);
    return sign * (both ? x - y : a.localeCompare(b, 'en', { numeric: true }));
  };

  // The cell of a body row that stands below a head, where heads span rows and columns.
  const columnOf = (head, table) => {
    const taken = [];
    for (const [r, row] of [...table.tHead.rows].entries()) {
      let column = 0;
      for (const cell of row.cells) {
        while (taken[r]?.[column]) column += 1;
        if (cell === head) return column;
        for (let i = 0; i < cell.rowSpan; i += 1) {
          taken[r + i] ??= [];
          for (let j = 0; j < cell.colSpan; j += 1) taken[r + i][column + j] = true;
        }
        column += cell.colSpan;
      }
    }
    return -1;
  };

  const sort = (head, table) => {
    const column = columnOf(head, table);
    const numeric = head.classList.contains('number');
    const now = head.getAttribute('aria-sort');
    const first = numeric ? 'descending' : 'ascending';
    const other = numeric ? 'ascending' : 'descending';
    const direction = now === first ? other : first;
    table.querySelectorAll('th[aria-sort]').forEach((th) => th.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', direction);
    const sign = direction === 'ascending' ? 1 : -1;
    const body = table.tBodies[0];
    const whole = table.tHead.rows[table.tHead.rows.length - 1].parentNode;
    const rows = [...body.rows];
    const width = Math.max(...rows.map((row) => row.cells.length), 0);
    // A run that failed has one wide cell instead of figures; it stays at the end.
    const keyed = rows.map((row) => [row.cells.length === width && whole ? value(row, column) : '', row]);
    keyed.sort((a, b) => compare(a[0], b[0], sign));
    body.append(...keyed.map(([, row]) => row));
  };

  for (const table of document.querySelectorAll('table.sortable')) {
    for (const head of table.querySelectorAll('thead th:not([colspan])')) {
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => sort(head, table));
    }
  }

  // Long tables get a filter by the names in their rows.
  for (const table of document.querySelectorAll('table.sortable')) {
    const body = table.tBodies[0];
    if (body.rows.length < LONG) continue;
    const make = (name, properties, ...children) => {
      const node = Object.assign(document.createElement(name), properties);
      node.append(...children);
      return node;
    };
    const input = make('input', { type: 'search', className: 'table-filter', autocomplete: 'off' });
    const count = make('span', { className: 'count', role: 'status' });
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of body.rows) {
        const names = [...row.cells].filter((cell) => !cell.classList.contains('number'));
        const text = names.map((cell) => cell.textContent).join(' ').toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = `${shown} of ${body.rows.length}`;
    };
    input.dataset.table = count.dataset.count = table.id;
    input.addEventListener('input', apply);
    const controls = make('p', { className: 'controls' }, make('label', {}, 'Filter ', input), count);
    table.closest('.scroll').before(controls);
    apply();
  }

  // The cells of the columns that stand below a head.
  const below = (head, table) => {
    const first = columnOf(head, table);
    const heads = [...table.tHead.rows].flatMap((row) => [...row.cells]);
    const isBelow = (column) => column >= first && column < first + head.colSpan;
    return [
      ...heads.filter((other) => isBelow(columnOf(other, table))),
      ...[...table.tBodies[0].rows].flatMap((row) => [...row.cells].filter((_, i) => isBelow(i))),
    ];
  };

  // charts.js says which runs are chosen.
  document.addEventListener('choose', ({ detail: isShown }) => {
    for (const item of document.querySelectorAll('[data-run]')) {
      const table = item.closest('thead')?.parentNode;
      for (const part of table ? below(item, table) : [item]) {
        part.toggleAttribute('data-out', !isShown(item.dataset.run));
      }
    }
  });

  // What goes on at an edge fades out there.
  for (const box of document.querySelectorAll('.scroll')) {
    const mark = () => {
      const left = box.scrollWidth - box.clientWidth - box.scrollLeft;
      box.classList.toggle('goes-on', left > 2);
      box.classList.toggle('begins-before', box.scrollLeft > 2);
    };
    box.addEventListener('scroll', mark, { passive: true });
    new ResizeObserver(mark).observe(box);
  }
})();
