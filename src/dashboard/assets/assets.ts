/** The files that a page loads besides its HTML: one style sheet, Chandler's scripts, and the library for charts. All are served from here. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import { STYLE } from './style.ts';

const gzip = promisify(gzipCallback);

export const ASSETS = '/ui/assets/';

/** Chandler's scripts, compiled by the build. */
const SCRIPTS = new URL('../client/', import.meta.url);

const CHARTS = 'lightweight-charts.js';
const CHARTS_FILE = 'lightweight-charts.standalone.production.mjs';

type Asset = { readonly body: Uint8Array; readonly type: string; readonly tag: string; packed?: Promise<Uint8Array> };

const known = new Map<string, Asset | null>();

/** Null when no asset has this name. */
export function assetOf(name: string): Asset | null {
  const found = known.get(name);
  if (found !== undefined) return found;
  // Unknown names are not cached, because callers can invent any number of them.
  const asset = load(name);
  if (asset !== null) known.set(name, asset);
  return asset;
}

/** Compresses the asset once for all visitors. */
export function packedAsset(asset: Asset): Promise<Uint8Array> {
  asset.packed ??= gzip(asset.body, { level: 9 });
  return asset.packed;
}

function load(name: string): Asset | null {
  if (name === 'style.css') return asAsset(Buffer.from(STYLE), 'text/css; charset=UTF-8');
  if (name === CHARTS) return asAsset(readFileSync(chartsFile()), SCRIPT_TYPE);
  if (!/^[a-z][a-z-]*\.js$/.test(name)) return null;
  try {
    return asAsset(readFileSync(new URL(name, SCRIPTS)), SCRIPT_TYPE);
  } catch (error) {
    if ((error as { readonly code?: string }).code === 'ENOENT') return null;
    throw error;
  }
}

const SCRIPT_TYPE = 'text/javascript; charset=UTF-8';

function asAsset(body: Uint8Array, type: string): Asset {
  return { body, type, tag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` };
}

/** The package does not export the file for pages without a bundler. */
function chartsFile(): string {
  return join(dirname(createRequire(import.meta.url).resolve('lightweight-charts/package.json')), 'dist', CHARTS_FILE);
}
