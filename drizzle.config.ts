/** For `npx drizzle-kit generate` only; the program itself migrates through `src/store/migration/migrate.ts`. */
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './src/store/schema/*.ts',
  out: './migrations',
  schemaFilter: ['market', 'ops'],
  breakpoints: false,
});
