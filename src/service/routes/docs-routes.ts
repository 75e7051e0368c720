/** `/openapi.json` for programs and `/docs` for people: the interface of this service as one page of HTML, open to everybody. */
import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { html, raw } from 'hono/html';

import {
  type OpenApiDocument,
  type OpenApiOperation,
  openApiDocument,
  type Schema,
} from '../../contract/interface/openapi.ts';
import type { Parameter } from '../../contract/interface/parameters.ts';
import { VERSION } from '../../core/version.ts';
import type { ServiceEnv } from '../http/request-input.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8886; --soft: #8881; }
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
code, pre { font: 0.9em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--soft); overflow-x: auto; padding: 0.75rem; white-space: pre-wrap; }
h2 { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: 1rem; }
section { margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
caption { font-weight: 600; padding: 0.5rem 0; text-align: left; }
th, td { border-bottom: 1px solid var(--line); padding: 0.35rem 0.75rem 0.35rem 0; text-align: left; vertical-align: top; }
nav ul { list-style: none; padding: 0; columns: 18rem; }
.skip { left: -100vw; position: absolute; }
.skip:focus { left: 1rem; }
summary { cursor: pointer; padding: 0.35rem 0; }
`;

/** Forbids scripts, loading and framing, because the page needs none of them; the one style is allowed by its hash. */
const DOCS_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export const DOCS_PATHS = ['/openapi.json', '/docs'] as const;
const CACHE = 'public, max-age=300';

export function docsRoutes(): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();
  // Made at the first request: most processes never get one.
  let made: Promise<{ json: string; page: string }> | null = null;
  const written = () => {
    made ??= write();
    return made;
  };
  routes.get(DOCS_PATHS[0], async (c) =>
    c.body((await written()).json, 200, { 'Content-Type': 'application/json; charset=UTF-8', 'Cache-Control': CACHE }),
  );
  routes.get(DOCS_PATHS[1], async (c) =>
    c.body((await written()).page, 200, {
      'Content-Type': 'text/html; charset=UTF-8',
      'Cache-Control': CACHE,
      'Content-Security-Policy': DOCS_POLICY,
      'Referrer-Policy': 'no-referrer',
    }),
  );
  return routes;
}

async function write(): Promise<{ json: string; page: string }> {
  const document = openApiDocument({ version: VERSION });
  return { json: `${JSON.stringify(document)}\n`, page: await docsPage(document) };
}

/** Markup: `html` escapes what is put into it, unless it is markup itself. */
type Html = ReturnType<typeof html>;

async function docsPage(document: OpenApiDocument): Promise<string> {
  const operations = Object.entries(document.paths).map(([path, { get }]) => ({ path, ...get }));
  const server = document.servers[0]!.url;
  const { title, version, description } = document.info;
  const page = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${raw(STYLE)}</style></head><body>
<a class="skip" href="#content">To the endpoints</a>
<header><h1>${title}</h1><p>${description}</p>
<p>Version ${version}. For programs: <a href="/openapi.json"><code>/openapi.json</code></a>.
<code>Authorization: Bearer &lt;key&gt;</code>, or the key alone, or none where the operator allows it.
Provenance and remaining quota are in the <a href="#headers">headers</a> of the answers.</p></header>
<nav aria-label="Endpoints"><ul>${operations.map(
    ({ path, operationId }) => html`<li><a href="#${operationId}"><code>${path}</code></a></li>`,
  )}</ul></nav>
<main id="content">${document.tags.map(
    ({ name }) =>
      html`<h2>${name}</h2>${operations
        .filter(({ tags }) => tags.includes(name))
        .map((operation) => sectionOf(operation, server))}`,
  )}<h2 id="headers">Headers of answers</h2>${headersTable(operations)}<h2>Records</h2>${Object.entries(
    document.components.schemas,
  ).map(
    ([name, schema]) => html`<section id="record-${name}"><h3>${name}</h3>${fieldsTable(name, schema)}</section>`,
  )}</main></body></html>
`;
  return String(await page);
}

function sectionOf(operation: OpenApiOperation & { readonly path: string }, server: string): Html {
  const { path, operationId, summary, deprecated, parameters, responses } = operation;
  const answer = responses['200']?.content?.['application/json']?.schema;
  return html`<section id="${operationId}"><h3><code>GET ${server}${path}</code></h3><p>${summary}.</p>
${deprecated ? html`<p><strong>Deprecated.</strong></p>` : ''}${parametersTable(parameters)}
<pre>${exampleOf(server + path, parameters)}</pre>
${answer ? html`<p>Answer: ${typeOf(answer)}</p>` : ''}${answer?.items?.properties ? fieldsTable('a row', answer.items) : ''}
<details><summary>Statuses</summary><div class="wide"><table><tbody>${Object.entries(responses).map(
    ([status, response]) => html`<tr><th scope="row">${status}</th><td>${response.description}</td></tr>`,
  )}</tbody></table></div></details></section>
`;
}

function parametersTable(parameters: readonly Parameter[]): Html | '' {
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, required, description, schema }) => {
    const { type, default: byDefault, minimum, maximum, enum: values } = schema;
    const notes = [
      description,
      required ? 'Required.' : '',
      byDefault === undefined ? '' : `Default ${byDefault}.`,
      minimum === undefined ? '' : `From ${minimum}${maximum === undefined ? '' : ` to ${maximum}`}.`,
      values ? `One of ${values.join(', ')}.` : '',
    ];
    const text = notes.filter((note) => note !== '').join(' ');
    return html`<tr><th scope="row"><code>${name}</code></th><td>${type}</td><td>${text}</td></tr>`;
  });
  return table('Parameters', ['Name', 'Type', 'Meaning'], rows);
}

/** Each header once, with the statuses that may have it. */
function headersTable(operations: readonly OpenApiOperation[]): Html {
  const found = new Map<string, { readonly description: string; readonly statuses: Set<string> }>();
  for (const { responses } of operations) {
    for (const [status, { headers = {} }] of Object.entries(responses)) {
      for (const [name, { description }] of Object.entries(headers)) {
        const header = found.get(name) ?? { description, statuses: new Set() };
        header.statuses.add(status);
        found.set(name, header);
      }
    }
  }
  const rows = [...found].map(([name, { description, statuses }]) => {
    const where = [...statuses].sort().join(', ');
    return html`<tr><th scope="row"><code>${name}</code></th><td>${where}</td><td>${description}</td></tr>`;
  });
  return table('Besides those of every answer', ['Name', 'Statuses', 'Meaning'], rows);
}

function fieldsTable(name: string, schema: Schema): Html {
  return table(`Fields of ${name}`, ['Name', 'Type'], fieldRows(schema, ''));
}

/** Nested fields by their path: `quotes.*.price`. */
function fieldRows(schema: Schema, prefix: string): Html[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    return [
      html`<tr><th scope="row"><code>${path}</code></th><td>${typeOf(field)}</td></tr>`,
      ...insideOf(field, path),
    ];
  });
}

function insideOf(field: Schema, path: string): Html[] {
  return [field, ...(field.anyOf ?? [])].flatMap((one) => [
    ...fieldRows(one, `${path}.`),
    ...(one.items ? fieldRows(one.items, `${path}[].`) : []),
    ...(one.additionalProperties ? insideOf(one.additionalProperties, `${path}.*`) : []),
  ]);
}

function typeOf(schema: Schema): Html | string {
  if (schema.$ref) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return html`<a href="#record-${name}">${name}</a>`;
  }
  if (schema.anyOf) return html`${schema.anyOf.map((one, i) => html`${i > 0 ? ' or ' : ''}${typeOf(one)}`)}`;
  if (schema.type === 'array') return schema.items ? html`list of ${typeOf(schema.items)}` : 'list';
  if (schema.type === undefined) return 'anything';
  return typeof schema.type === 'string' ? schema.type : schema.type.join(' or ');
}

function exampleOf(path: string, parameters: readonly Parameter[]): string {
  const filled = parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce((text, { name, schema }) => text.replace(`{${name}}`, String(schema.example)), path);
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map(({ name, schema }) => `${name}=${encodeURIComponent(String(schema.example))}`);
  return `curl 'http://127.0.0.1:8080${filled}${query.length > 0 ? `?${query.join('&')}` : ''}'`;
}

function table(caption: string, columns: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="wide"><table><caption>${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>
`;
}
