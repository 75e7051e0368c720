/** All exports of drizzle's schema files (`src/store/schema/`). */
import { readdirSync } from 'node:fs';
import path from 'node:path';

const FOLDER = path.join(import.meta.dirname, '../../src/store/schema');

/** By file and name: two files may use the same name. */
export async function loadSchemaFiles(): Promise<Record<string, unknown>> {
  const files = readdirSync(FOLDER);
  const modules = await Promise.all(files.map((file) => import(path.join(FOLDER, file))));
  return Object.fromEntries(
    modules.flatMap((module, i) => Object.entries(module).map(([name, value]) => [`${files[i]}/${name}`, value])),
  );
}
