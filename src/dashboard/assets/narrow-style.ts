/** The style of pages on a phone and on paper. */

/** Each row of a wide table becomes a block: its values next to each other while there is room, and its buttons below them. */
const PHONE = `
@media (max-width: 40rem) {
  form.search { margin-left: 0; width: 100%; } form.search input { flex: 1; min-width: 0; }
  dl { grid-template-columns: minmax(0, 1fr); } dt { margin-top: 0.4rem; }
  .wide { overflow-x: visible; }
  .wide table, .wide caption, .wide tbody { display: block; }
  .wide thead { clip-path: inset(50%); display: block; height: 1px; overflow: hidden; position: absolute; width: 1px; }
  .wide tr { border-bottom: 1px solid var(--line); display: flex; flex-wrap: wrap; padding: 0.5rem 0; }
  .wide td { border: 0; flex: 0 1 auto; margin-right: 1rem; min-width: 0; overflow-wrap: anywhere; padding: 0; text-align: left; }
  .wide td:first-child, .wide td.buttons { flex: 1 1 100%; margin-right: 0; }
  .wide td:empty { margin: 0; }
  .wide td::before { color: var(--soft); content: attr(data-label) ": "; content: attr(data-label) ": " / ""; font-size: 0.8125rem; }
  .wide td:empty::before, .wide td.buttons::before { content: none; }
  .wide td.buttons .button { padding: 0.35rem 0.9rem; }
  .wide td a:not(.button) { display: inline-block; min-height: 1.6rem; }
  .table th, .table td, .table .nowrap { white-space: normal; }
  svg text { font-size: 16px; }
}`;

/** Black on white, whatever colours the screen uses, and without controls. */
const PAPER = `
@media print {
  @page { margin: 12mm; }
  :root { color-scheme: only light; --page: #ffffff; --card: #ffffff; --text: #000000; --soft: #333333; --line: #999999; --link: #00337a; }
  html { background: #ffffff; font-size: 8.5pt; scrollbar-gutter: auto; }
  body { background: none; }
  nav, search, form, form[class], button, .button, .buttons, .skip, #connection, footer.wrap, .on-screen, details:not([open]), summary,
  #chart-form, #chart-keys, #more, #chart:has(+ canvas.on-paper) { display: none; }
  .on-paper { display: block; }
  .wrap { max-width: none; padding: 0; }
  body > header { border-bottom-color: var(--text); }
  a { color: var(--link); text-decoration: underline; }
  h1, h2, caption { break-after: avoid; } h2 { margin-top: 1rem; }
  figure, tr, li, dl > *, .notice, .map { break-inside: avoid; }
  .table { overflow: visible; }
  table { font-size: 0.875rem; }
  th, td { padding: 0.15rem 0.6rem 0.15rem 0; }
  th, td, td .nowrap { white-space: normal; } td { max-width: 24rem; }
  time.ago { font-size: 0; } time.ago::after { content: attr(title); font-size: 0.875rem; }
  .swatch, svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}`;

export const NARROW_STYLE = `${PHONE}${PAPER}`;
