/** The style of the coverage map. Its script reads the colours of the stretches. Each stretch has a pattern as well. */
export const MAP_STYLE = `
:root {
  --map-final: light-dark(#2c8a50, #3f9e68); --map-final-mark: light-dark(#2c8a50, #3f9e68);
  --map-twice: light-dark(#9cc4be, #2f5d58); --map-twice-mark: light-dark(#12423b, #c4efe8);
  --map-once: light-dark(#2c8a50, #3f9e68); --map-once-mark: light-dark(#ffffff, #0c0e11);
  --map-missing: light-dark(#e8a33d, #c98529); --map-missing-mark: light-dark(#8a5200, #5a3800);
  --map-pending: light-dark(#b9c9ef, #34508c); --map-pending-mark: light-dark(#2f55b0, #a9c1ff);
  --map-provisional: light-dark(#e0f0e5, #1e3a2a); --map-provisional-mark: light-dark(#1c6b3a, #6fcf97);
  --map-refused: light-dark(#d5d9e0, #363c47); --map-refused-mark: light-dark(#565d69, #a3abb8);
  --map-failed: light-dark(#cc3b3b, #d65a55); --map-failed-mark: light-dark(#ffffff, #2a0b0a);
}
.map-tools { display: flex; flex-wrap: wrap; gap: 0.4rem; margin: 0.5rem 0; }
.map-tools button[aria-pressed="true"] { background: var(--link); border-color: var(--link); color: var(--page); }
.map-scroll { border: 1px solid var(--line); overflow-x: hidden; overflow-y: auto; overscroll-behavior: auto; }
.map-scroll canvas { cursor: crosshair; position: sticky; top: 0; touch-action: none; }
#coverage-filters label { min-width: 0; } #coverage-filters select { max-width: min(16rem, 88vw); }
.map-cell { min-height: 3em; overflow-wrap: anywhere; }
#map-unread:empty { display: none; }
canvas.swatch { border: 0; height: 14px; width: 26px; }
.swatch { display: inline-block; margin-right: 0.35rem; vertical-align: -2px; }
ul.reasons { list-style: none; margin: 0; min-width: 16rem; padding: 0; }
@media print {
  .map-tools, .map details, #coverage-filters { display: none; }
  /* As high as the canvas: on a screen there is room to scroll all rows. */
  .map-scroll, #map-space { height: auto !important; overflow: visible; }
  .map-scroll { width: fit-content; } .map-scroll canvas { height: auto !important; position: static; }
}
`;
