/** The style of all pages, dark and light. The contrasts meet WCAG 2.2 AA. */
import { MAP_STYLE } from './map-style.ts';
import { NARROW_STYLE } from './narrow-style.ts';

export const STYLE = `
:root {
  color-scheme: light dark;
  --page: light-dark(#fbfbfc, #14161a); --card: light-dark(#ffffff, #1c1f25); --text: light-dark(#1b1e24, #e6e8ec);
  --soft: light-dark(#565d69, #a3abb8); --line: light-dark(#d5d9e0, #363c47); --link: light-dark(#0b57b8, #8ab8ff);
  --good: light-dark(#1c6b3a, #6fcf97); --warn: light-dark(#8a5200, #f0b35a); --bad: light-dark(#a81c1c, #ff8f8a);
  --good-fill: light-dark(#2c8a50, #3f9e68); --warn-fill: light-dark(#d98a1f, #c98529); --bad-fill: light-dark(#cc3b3b, #d65a55);
  --idle-fill: light-dark(#c3c9d3, #434a57); --focus: light-dark(#0b57b8, #ffd166);
  --gap-band: light-dark(#f6dcb8, #4a3615); --empty-band: light-dark(#e9ecf1, #2a2f38);
  --spender-0: light-dark(#3d6fb4, #5b8fd6); --spender-1: light-dark(#b8741a, #d9973f); --spender-2: light-dark(#7a4fa3, #a27fd0); --spender-3: light-dark(#2a8c82, #46b3a7); --spender-4: light-dark(#8a8f98, #767d89);
  --number: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
}
* { box-sizing: border-box; }
html { scrollbar-gutter: stable; }
body { background: var(--page); color: var(--text); font: 0.9375rem/1.5 system-ui, sans-serif; margin: 0; overflow-wrap: break-word; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 2px; }
.skip { left: -100vw; position: absolute; }
.skip:focus { background: var(--card); left: 1rem; padding: 0.5rem; top: 0.5rem; z-index: 3; }
.wrap { margin: 0 auto; max-width: 82rem; padding: 0 1rem; }
body > header { background: var(--card); border-bottom: 1px solid var(--line); }
.bar { align-items: center; display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding-bottom: 0.5rem; padding-top: 0.5rem; }
.bar > strong a { color: inherit; text-decoration: none; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.1rem 0.9rem; list-style: none; margin: 0; padding: 0; }
nav a { display: inline-block; min-height: 1.5rem; text-decoration: none; }
nav a:hover, nav a[aria-current] { text-decoration: underline; text-underline-offset: 0.3em; }
nav a[aria-current] { color: var(--text); font-weight: 600; }
form.search { margin-left: auto; display: flex; gap: 0.35rem; }
input, select { max-width: 100%; }
input, select, button, .button { background: var(--card); border: 1px solid var(--soft); border-radius: 4px; color: inherit; font: inherit; min-height: 1.9rem; padding: 0.15rem 0.6rem; }
button, .button { cursor: pointer; display: inline-block; text-decoration: none; white-space: nowrap; }
button.primary { background: var(--link); border-color: var(--link); color: var(--page); font-weight: 600; }
.facts { color: var(--soft); display: flex; flex-wrap: wrap; gap: 0.1rem 1.25rem; font-size: 0.875rem; margin: 0; padding-bottom: 0.5rem; }
.facts > * { margin: 0; }
.chip { border: 1px solid var(--line); border-radius: 999px; color: var(--text); display: inline-block; padding: 0 0.6rem; text-decoration: none; }
a.chip:hover { text-decoration: underline; }
.chip.bad { border-color: var(--bad); color: var(--bad); } .chip.warn { border-color: var(--warn); color: var(--warn); } .chip.good { border-color: var(--good); color: var(--good); }
main.wrap { padding-bottom: 3rem; padding-top: 0.5rem; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 1rem 0 0.5rem; }
h2 { font-size: 1.05rem; margin: 1.75rem 0 0.5rem; }
p { margin: 0.4rem 0; max-width: 65rem; }
.soft { color: var(--soft); } .bad { color: var(--bad); } .warn { color: var(--warn); } .good { color: var(--good); }
ul.needs { list-style: none; margin: 0; padding: 0; }
ul.needs > li { align-items: baseline; border-bottom: 1px solid var(--line); display: flex; flex-wrap: wrap; gap: 0.2rem 0.9rem; padding: 0.5rem 0; }
ul.needs > li > p { flex: 1 1 20rem; margin: 0; overflow-wrap: anywhere; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
caption { caption-side: top; color: var(--soft); font-size: 0.875rem; padding: 0.25rem 0; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: 0.3rem 0.9rem 0.3rem 0; text-align: left; vertical-align: top; }
th { color: var(--soft); font-size: 0.8125rem; font-weight: 600; white-space: nowrap; }
td { overflow-wrap: break-word; }
figure { margin: 0.5rem 0; }
.legend svg { display: inline; }
footer form { display: inline; }
.num { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.nowrap { white-space: nowrap; }
code, .mono { font-family: var(--number); font-size: 0.9em; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 4px; overflow-x: auto; padding: 0.6rem; white-space: pre-wrap; }
.actions { display: flex; flex-wrap: wrap; gap: 0.4rem; }
.filters { align-items: end; display: flex; flex-wrap: wrap; gap: 0.5rem 0.8rem; margin: 0.5rem 0; }
.filters > * { max-width: 100%; min-width: 0; }
.filters label { color: var(--soft); display: grid; font-size: 0.8125rem; grid-template-columns: minmax(0, 1fr); }
.notice { border: 1px solid var(--line); border-left: 4px solid var(--link); margin: 0.75rem 0; padding: 0.5rem 0.9rem; background: var(--card); }
.notice.bad { border-left-color: var(--bad); color: inherit; } .notice.good { border-left-color: var(--good); color: inherit; }
#connection { background: var(--bad); color: var(--page); padding: 0.3rem 1rem; text-align: center; }
#connection[hidden] { display: none; }
canvas, svg { display: block; max-width: 100%; }
canvas { touch-action: none; }
svg .good { fill: var(--good-fill); } svg .warn { fill: var(--warn-fill); } svg .bad { fill: var(--bad-fill); } svg .idle { fill: var(--idle-fill); } svg text { fill: var(--soft); font-size: 11px; } svg .axis { stroke: var(--line); }
svg .spender-0 { fill: var(--spender-0); } svg .spender-1 { fill: var(--spender-1); } svg .spender-2 { fill: var(--spender-2); } svg .spender-3 { fill: var(--spender-3); } svg .spender-4 { fill: var(--spender-4); } svg .forecast { fill: var(--idle-fill); } svg .now { fill: var(--text); }
progress { accent-color: var(--link); height: 0.9rem; vertical-align: middle; width: min(24rem, 60vw); }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; list-style: none; margin: 0.4rem 0; padding: 0; font-size: 0.875rem; }
footer.wrap { border-top: 1px solid var(--line); color: var(--soft); font-size: 0.875rem; padding-bottom: 2rem; padding-top: 0.75rem; }
dl { display: grid; gap: 0.2rem 1.2rem; grid-template-columns: max-content 1fr; margin: 0.5rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
figure.chart { margin: 0.75rem 0; }
#chart { border: 1px solid var(--line); height: min(28rem, 70vh); }
#chart-readout { min-height: 3em; margin: 0 0 0.25rem; }
.swatch { border: 1px solid var(--soft); display: inline-block; height: 0.8em; width: 0.8em; }
.swatch.up { background: var(--good-fill); } .swatch.down { background: var(--bad-fill); } .swatch.hollow { background: none; }
.swatch.revised { background: var(--link); } .swatch.gap { background: var(--gap-band); } .swatch.empty { background: var(--empty-band); }
ol.story { list-style: none; margin: 0.5rem 0; padding: 0; }
ol.story > li { border-bottom: 1px solid var(--line); overflow-wrap: anywhere; padding: 0.35rem 0; }
.on-paper { display: none; }
/* Canvases are painted anew for paper: scripts ask for the light colours before the browser draws the sheets. */
:root[data-paper] { color-scheme: light; }
@media (prefers-reduced-motion: no-preference) { .chip { transition: border-color 0.15s; } }
${MAP_STYLE}${NARROW_STYLE}`;
