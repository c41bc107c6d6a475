// A click or Enter on a picture shows it large; Escape closes it.
(() => {
  const dialog = document.getElementById('enlarged');
  const show = (picture) => {
    const copy = picture.cloneNode(true);
    copy.removeAttribute('id');
    copy.removeAttribute('tabindex');
    copy.classList.remove('enlarge');
    const caption = picture.closest('figure')?.querySelector('figcaption')?.cloneNode(true);
    dialog.querySelector('figure').replaceChildren(copy, ...(caption ? [caption] : []));
    dialog.showModal();
  };
  for (const picture of document.querySelectorAll('.enlarge')) {
    picture.addEventListener('click', () => show(picture));
    picture.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      // The same key press would reach the button that closes what it just opened.
      event.preventDefault();
      show(picture);
    });
  }
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
})();
