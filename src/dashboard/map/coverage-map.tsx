/** The frame of the coverage map. `client/coverage.ts` shows it and draws in it. Without scripts it stays hidden. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { LOOKS } from './coverage-states.ts';

type CoverageMapProps = {
  readonly window: { readonly from: Instant; readonly to: Instant };
  /** The first visible row, from 0. */
  readonly row: number;
  readonly total: number;
  readonly marks: Marks;
};

/** Cursor and selection of the address in the present order, in rows and seconds. Null when there is none, or when its series has no row. */
export type Marks = {
  readonly cursor: readonly [row: number, at: number] | null;
  readonly selection: readonly [row: number, endRow: number, from: number, to: number] | null;
};

export const CoverageMap: FC<CoverageMapProps> = ({ window: { from, to }, row, total, marks }) => (
  <div>
    <noscript>
      <p class="notice">
        The map needs JavaScript, which this browser does not run. The table below has the same series.
      </p>
    </noscript>
    <section id="map" class="map" aria-label="Map of series and time" hidden>
      <div class="map-tools" role="toolbar" aria-label="What the map shows" aria-controls="map-scroll">
        <button type="button" data-do="in" aria-label="Zoom in">
          +
        </button>
        <button type="button" data-do="out" aria-label="Zoom out">
          −
        </button>
        <button type="button" data-do="earlier">
          ← Earlier
        </button>
        <button type="button" data-do="later">
          Later →
        </button>
        <button type="button" data-do="all">
          All time
        </button>
        <button type="button" data-do="drag" aria-pressed="false">
          Drag moves
        </button>
      </div>
      <div
        id="map-scroll"
        class="map-scroll"
        role="application"
        tabindex={0}
        aria-label="Coverage map: one row for each series, time from left to right"
        aria-describedby="map-help"
      >
        <div id="map-space">
          <canvas
            id="map-canvas"
            data-from={String(from)}
            data-to={String(to)}
            data-row={String(row)}
            data-total={String(total)}
            data-cursor={marks.cursor?.join()}
            data-selection={marks.selection?.join()}
          />
        </div>
      </div>
      <p id="map-unread" class="soft" />
      <p id="map-cell" class="map-cell" role="status" />
      <div id="map-selection" class="notice" role="status" hidden />
      <ul class="legend" aria-label="What the colours and patterns mean">
        {Object.entries(LOOKS).map(([look, text]) => (
          <li>
            <canvas class="swatch" data-look={look} width={26} height={14} />
            {text}
          </li>
        ))}
        <li>
          <canvas class="swatch" data-look="none" width={26} height={14} />
          not wanted
        </li>
      </ul>
      <details>
        <summary>Keyboard and mouse</summary>
        <div id="map-help">
          <p>
            Keyboard: the arrow keys move the cursor; with Shift they select. Page Up and Page Down move by a page of
            rows, Home and End to the first and the last row. Plus and minus zoom. Enter shows what it costs to fill the
            selection. Escape clears the selection.
          </p>
          <p>
            Mouse: a drag selects; with Shift it moves the map. A click sets the cursor; with Shift it selects up to
            that cell. A double click opens the coin. The wheel scrolls the rows; over the time axis, or with Ctrl, it
            zooms; with Shift it moves in time.
          </p>
          <p>Touch: two fingers zoom; one finger moves the map or selects, whichever the button for drags shows.</p>
        </div>
      </details>
    </section>
  </div>
);
