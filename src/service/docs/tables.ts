/** The tables of `/docs`: parameters, arguments, headers, and the fields of records. */
import { html } from 'hono/html';
import type { OpenApiOperation, Schema } from '../../contract/interface/openapi.ts';
import type { Parameter } from '../../contract/interface/parameters.ts';
import type { ListedTool } from '../rpc/toolbox.ts';

/** Markup. `html` escapes the values that are put into it, except those that are markup themselves. */
export type Html = ReturnType<typeof html>;

export function parametersTable(parameters: readonly Parameter[]): Html | '' {
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

/** The arguments of a tool, as `tools/list` returns them. */
export function argumentsTable({ inputSchema }: ListedTool): Html | '' {
  const { properties, required } = inputSchema;
  const rows = Object.entries(properties).map(([name, schema]) => {
    const { type, description, default: byDefault } = schema as ArgumentSchema;
    const isMentioned = byDefault === undefined || description?.includes('Default');
    const notes = [
      description ?? '',
      required.includes(name) ? 'Required.' : '',
      isMentioned ? '' : `Default ${String(byDefault)}.`,
    ];
    const text = notes.filter((note) => note !== '').join(' ');
    return html`<tr><th scope="row"><code>${name}</code></th><td>${type}</td><td>${text}</td></tr>`;
  });
  return rows.length === 0 ? '' : table('Arguments', ['Name', 'Type', 'Meaning'], rows);
}

type ArgumentSchema = {
  readonly type?: string;
  readonly description?: string;
  readonly default?: string | number;
};

/** Each header once, with the statuses that may have it. */
export function headersTable(operations: readonly OpenApiOperation[]): Html {
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

export function fieldsTable(name: string, schema: Schema): Html {
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

export function typeOf(schema: Schema): Html | string {
  if (schema.$ref) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return html`<a href="#record-${name}">${name}</a>`;
  }
  if (schema.anyOf) return html`${schema.anyOf.map((one, i) => html`${i > 0 ? ' or ' : ''}${typeOf(one)}`)}`;
  if (schema.type === 'array') return schema.items ? html`list of ${typeOf(schema.items)}` : 'list';
  if (schema.type === undefined) return 'anything';
  return typeof schema.type === 'string' ? schema.type : schema.type.join(' or ');
}

function table(caption: string, columns: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="wide"><table><caption>${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>
`;
}
