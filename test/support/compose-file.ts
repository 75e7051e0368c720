/** docker-compose.yml as Compose reads it: merged, with the variables of an environment filled in. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { parse } from 'yaml';
import { z } from 'zod';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export type Variables = Readonly<Record<string, string | undefined>>;

const limits = z.object({ limits: z.object({ memory: z.string() }) });
const serviceSchema = z.object({
  image: z.string(),
  build: z.string().optional(),
  command: z.array(z.string()),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  profiles: z.array(z.string()).default([]),
  restart: z.string(),
  init: z.boolean().default(false),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  container_name: z.string().optional(),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  healthcheck: z.object({ test: z.array(z.string()), start_period: z.string() }).optional(),
  logging: z.object({ driver: z.string(), options: z.record(z.string(), z.string()) }),
  stop_grace_period: z.string().optional(),
  deploy: z.object({ replicas: z.string().optional(), resources: limits }),
});
export type Service = z.infer<typeof serviceSchema>;

const composeSchema = z.object({
  name: z.string(),
  services: z.record(
    z.string(),
    z.preprocess((made) => ({ command: [], ...(made as object) }), serviceSchema),
  ),
  volumes: z.record(z.string(), z.null()),
});
export type ComposeFile = z.infer<typeof composeSchema>;

export function readText(path: string): string {
  return readFileSync(`${ROOT}/${path}`, 'utf8');
}

/** As written: anchors merged, no variables filled in. */
export function readRaw(): unknown {
  return parse(readText('docker-compose.yml'), { merge: true });
}

/** @throws when a required variable is not set */
export function readComposeFile(variables: Variables): ComposeFile {
  return composeSchema.parse(fillIn(readRaw(), variables));
}

/** Reads `.env.demo` and similar files. */
export function readEnvFile(path: string): Record<string, string> {
  return Object.fromEntries(Object.entries(parseEnv(readText(path))).map(([name, value]) => [name, value ?? '']));
}

/** The environment of a container of the service: a variable without a value is passed on if it is set. */
export function environmentOf({ environment }: Service, variables: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => {
      const set = value ?? variables[name];
      return set === undefined ? [] : [[name, set]];
    }),
  );
}

const VARIABLE = /\$(?:\$|\{([A-Z_]+)(?::([-?])([^}]*))?\})/g;

/** Names of the variables that the file refers to. */
export function variablesIn(text: string): string[] {
  return [...new Set([...text.matchAll(VARIABLE)].flatMap(([, name]) => (name === undefined ? [] : [name])))];
}

function fillIn(value: unknown, variables: Variables): unknown {
  if (Array.isArray(value)) return value.map((one) => fillIn(one, variables));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fillIn(one, variables)]));
  }
  if (typeof value !== 'string') return value;
  return value.replace(VARIABLE, (_, name?: string, kind?: string, rest = '') => {
    if (name === undefined) return '$';
    const set = variables[name];
    if (set !== undefined && set !== '') return set;
    if (kind === '-') return rest;
    throw new Error(`${name}: ${kind === '?' ? rest : 'has no value and no default'}`);
  });
}
