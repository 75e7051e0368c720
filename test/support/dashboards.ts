/** Reads the dashboards of .observe/ for the tests. */
import { readdirSync, readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { z } from 'zod';
import { ROOT } from './compose-file.ts';

const FOLDER = `${ROOT}/.observe/dashboards`;

const datasource = z.object({ type: z.string(), uid: z.string() });
const target = z.object({
  datasource,
  refId: z.string(),
  expr: z.string().optional(),
  rawSql: z.string().optional(),
  format: z.string().optional(),
});
const panel = z.object({
  id: z.number(),
  type: z.string(),
  title: z.string(),
  gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
  targets: z.array(target).default([]),
});
const dashboard = z.object({
  uid: z.string(),
  title: z.string(),
  templating: z.object({ list: z.array(z.object({ name: z.string(), query: z.string(), datasource })) }),
  panels: z.array(panel),
});
export type Dashboard = z.infer<typeof dashboard>;
export type Panel = z.infer<typeof panel>;

export function readDashboards(): Dashboard[] {
  return readdirSync(FOLDER).map((name) => dashboard.parse(JSON.parse(readFileSync(`${FOLDER}/${name}`, 'utf8'))));
}

export type Selected = {
  readonly metric: string;
  /** The labels by which it is selected or grouped. */
  readonly labels: readonly string[];
};

/** The metrics in a Prometheus query, each with all labels of the query. @throws when it is not PromQL */
export function metricsIn(expr: string): Selected[] {
  const text = expr.replaceAll('$__rate_interval', '2m');
  const metrics: string[] = [];
  const labels: string[] = [];
  parser.parse(text).iterate({
    enter: (node) => {
      const said = text.slice(node.from, node.to);
      if (node.type.isError) throw new Error(`not PromQL at ${node.from}: ${text}`);
      if (node.name === 'Identifier' && node.node.parent?.name === 'VectorSelector') metrics.push(said);
      if (node.name === 'LabelName') labels.push(said);
    },
  });
  return metrics.map((metric) => ({ metric, labels }));
}

/** Expands the macros of Grafana in a Postgres query. @throws on a macro that is not supported here */
export function expandSql(
  sql: string,
  {
    from,
    to,
    variables,
  }: { readonly from: Date; readonly to: Date; readonly variables: Readonly<Record<string, string>> },
): string {
  const expanded = sql
    .replace(
      /\$__timeFilter\(([^)]+)\)/g,
      (_, column: string) => `${column} BETWEEN '${from.toISOString()}' AND '${to.toISOString()}'`,
    )
    .replace(/\$\{(\w+):sqlstring\}/g, (whole, name: string) => {
      const value = variables[name];
      return value === undefined ? whole : `'${value.replaceAll("'", "''")}'`;
    });
  if (expanded.includes('$')) throw new Error(`unknown to Grafana, or to this test: ${expanded}`);
  return expanded;
}
