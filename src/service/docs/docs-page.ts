/** `/docs`: the interface of this service as one page of HTML, without scripts. */
import { createHash } from 'node:crypto';
import { html, raw } from 'hono/html';
import { EXAMPLES } from '../../contract/interface/examples.ts';
import { RPC_PATHS } from '../../contract/interface/json-rpc.ts';
import type { OpenApiDocument, OpenApiOperation } from '../../contract/interface/openapi.ts';
import type { ListedTool } from '../rpc/toolbox.ts';
import { callExample, type Reader, requestExample } from './curl.ts';
import { argumentsTable, fieldsTable, type Html, headersTable, parametersTable, typeOf } from './tables.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8886; --soft: #8881; }
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
code, pre { font: 0.9em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
th code { overflow-wrap: normal; }
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
export const DOCS_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export async function docsPage(
  document: OpenApiDocument,
  tools: readonly ListedTool[],
  reader: Reader,
): Promise<string> {
  const operations = Object.entries(document.paths).map(([path, { get }]) => ({ path, ...get }));
  const server = document.servers[0]!.url;
  const { title, version, description } = document.info;
  const page = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${raw(STYLE)}</style></head><body>
<a class="skip" href="#content">To the endpoints</a>
<header><h1>${title}</h1><p>${description}</p>
<p>Base address: <code>${reader.origin}${server}</code>. Tools: <code>${reader.origin}${RPC_PATHS[0]}</code>.
Version ${version}. For programs: <a href="/openapi.json"><code>/openapi.json</code></a>.</p>
<p>A key goes into <code>Authorization: Bearer &lt;key&gt;</code>, or alone into <code>Authorization</code>; without one, where the
operator allows it. Provenance and remaining quota are in the <a href="#headers">headers</a> of the answers. In the
example answers, prices are invented and lists are cut short.</p></header>
<nav aria-label="Endpoints"><strong>Endpoints</strong><ul>${operations.map(
    ({ path, operationId }) => html`<li><a href="#${operationId}"><code>${path}</code></a></li>`,
  )}</ul></nav>
<nav aria-label="Tools"><strong>Tools</strong><ul>${tools.map(
    ({ name }) => html`<li><a href="#tool-${name}"><code>${name}</code></a></li>`,
  )}</ul></nav>
<main id="content">${document.tags.map(
    ({ name }) =>
      html`<h2>${name}</h2>${operations
        .filter(({ tags }) => tags.includes(name))
        .map((operation) => endpointSection(operation, server, reader))}`,
  )}<h2 id="headers">Headers of answers</h2>${headersTable(operations)}<h2 id="tools">Tools</h2>
<p>For JSON-RPC 2.0 and MCP clients, by POST to <code>${RPC_PATHS[0]}</code>; MCP clients need only its address. The answer is in
<code>result.content[0].text</code>, as JSON.</p>${tools.map((tool) => toolSection(tool, reader))}<h2>Records</h2>${Object.entries(
    document.components.schemas,
  ).map(
    ([name, schema]) => html`<section id="record-${name}"><h3>${name}</h3>${fieldsTable(name, schema)}</section>`,
  )}</main></body></html>
`;
  return String(await page);
}

function endpointSection(
  operation: OpenApiOperation & { readonly path: string },
  server: string,
  reader: Reader,
): Html {
  const { path, operationId, summary, deprecated, parameters, responses } = operation;
  const answer = responses['200']?.content?.['application/json']?.schema;
  return html`<section id="${operationId}"><h3><code>GET ${server}${path}</code></h3><p>${summary}.</p>
${deprecated ? html`<p><strong>Deprecated.</strong></p>` : ''}${parametersTable(parameters)}
<pre>${requestExample(operation, server, reader)}</pre>
${answerExample(EXAMPLES.endpoints[operationId])}
${answer ? html`<p>Answer: ${typeOf(answer)}</p>` : ''}${answer?.items?.properties ? fieldsTable('a row', answer.items) : ''}
<details><summary>Statuses</summary><div class="wide"><table><tbody>${Object.entries(responses).map(
    ([status, response]) => html`<tr><th scope="row">${status}</th><td>${response.description}</td></tr>`,
  )}</tbody></table></div></details></section>
`;
}

function toolSection(tool: ListedTool, reader: Reader): Html {
  return html`<section id="tool-${tool.name}"><h3><code>${tool.name}</code></h3><p>${tool.description}</p>
${argumentsTable(tool)}
<pre>${callExample(tool, RPC_PATHS[0], reader)}</pre>
${answerExample(EXAMPLES.tools[tool.name])}</section>
`;
}

function answerExample(answer: unknown): Html | '' {
  if (answer === undefined) return '';
  return html`<details open><summary>Example answer</summary><pre>${JSON.stringify(answer, null, 2)}</pre></details>`;
}
