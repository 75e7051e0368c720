/** For `npx drizzle-kit generate` only; the program itself migrates through `src/store/migration/migrate.ts`. */
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: [
    './src/store/schema.ts',
    './src/store/account-schema.ts',
    './src/store/rollup-schema.ts',
    './src/store/snapshot-schema.ts',
    './src/store/service-schema.ts',
    './src/store/serve-schema.ts',
    './src/store/catalogue-schema.ts',
  ],
  out: './migrations',
  schemaFilter: ['market', 'ops'],
});
