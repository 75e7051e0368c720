/** `chandler doctor`: checks everything Chandler needs, and reports problems and how to fix them. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { type Check, failWith } from '../../background/doctor/check.ts';
import { checkSettings, checkWarehouse } from '../../background/doctor/checks.ts';
import { checkRefusal } from '../../background/doctor/database-checks.ts';
import { checkNode } from '../../background/doctor/settings-checks.ts';
import { checkUpstream } from '../../background/doctor/upstream-check.ts';
import { parseConfig } from '../../config.ts';
import { formatCounted } from '../../core/format.ts';
import { explainWithHolder } from '../../store/connection/lock.ts';
import { printable } from '../output/table.ts';
import { openCommandApp } from '../shell/command-app.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import { explain } from '../shell/explain-error.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';

type Options = { readonly online?: boolean; readonly json?: boolean };

export function doctorCommand(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description('check everything Chandler needs: report problems and how to fix them')
    .option('--online', 'also send one request to the upstream, and a message to the webhook if one is set')
    .option('--json', 'print JSON')
    .action(
      context.action(async (options: Options) => {
        const checks: Check[] = [];
        for await (const check of runChecks(context, options)) {
          checks.push(check);
          if (!options.json) printCheck(context.io.out, check);
        }
        const failed = checks.filter((check) => check.state === 'fail').length;
        const warned = checks.filter((check) => check.state === 'warn').length;
        if (options.json) printJson(context.io.out, checks);
        else {
          const verdict = failed > 0 ? `${formatCounted(failed, 'check')} failed` : 'Chandler is ready';
          context.io.out.write(`\n${verdict}${warned > 0 ? `, ${formatCounted(warned, 'warning')}` : ''}.\n`);
        }
        return failed > 0 ? EXIT.failed : EXIT.done;
      }),
    );
}

/** The checks in an order in which an early failure explains the later ones. Leaves out checks that cannot run. */
async function* runChecks(context: CommandContext, options: Options): AsyncGenerator<Check> {
  yield checkNode(process.versions.node);
  const parsed = parseConfig(context.env);
  if ('problems' in parsed) {
    yield* parsed.problems.map((problem) => failWith('configuration', problem));
    return;
  }
  const config = parsed.ok;
  const { online = false } = options;
  let isHomeless = false;
  for await (const check of checkSettings(config, { online, by: 'command', signal: context.signal })) {
    isHomeless ||= (check.name === 'home folder' || check.name === 'disk') && check.state === 'fail';
    yield check;
  }
  // Without its folder the embedded server cannot start.
  if (isHomeless) return;
  let app: App;
  try {
    app = await openCommandApp(config, { clock: context.clock, log: context.log(config), schema: 'require' });
  } catch (error) {
    yield failWith('database', explain(error).message);
    return;
  }
  let about = 'database';
  try {
    yield* checkWarehouse(app);
    about = 'upstream';
    if (online) yield await checkUpstream(app, context.signal);
    yield* await checkRefusal(app);
  } catch (error) {
    const lost = await explainWithHolder(error, app.database);
    yield failWith(lost === null ? about : 'database', explain(lost ?? error).message);
  } finally {
    await app.close();
  }
}

const MARKS = { ok: ' ok ', warn: 'warn', fail: 'FAIL' } as const;

function printCheck(out: Output, { name, state, found, fix }: Check): void {
  out.write(`${MARKS[state]}  ${name.padEnd(14)}  ${printable(found)}\n`);
  if (fix !== undefined) out.write(`${' '.repeat(22)}→ ${printable(fix)}\n`);
}
