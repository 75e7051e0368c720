/** The outcome of a tool call: an answer, a failure, or a call of a tool that does not exist. */
import { UNKNOWN_ID } from '../../contract/answer/errors.ts';
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { AS_OF_HEADER, COVERAGE_HEADER, provenanceHeaders } from '../../contract/answer/provenance.ts';
import {
  RPC_CODES,
  type ToolFailureData,
  type ToolFailureStatus,
  type ToolProvenance,
  toolFailureMessage,
} from '../../contract/interface/json-rpc.ts';
import { describeValue } from '../../contract/record/records.ts';
import { didYouMean } from '../../core/settings/did-you-mean.ts';

type ToolFailure = {
  readonly kind: 'failed';
  readonly code: number;
  readonly message: string;
  readonly data: ToolFailureData;
};

export type ToolOutcome =
  | {
      readonly kind: 'answered';
      readonly output: object;
      /** Null for a source without provenance. */
      readonly provenance: ToolProvenance | null;
    }
  | { readonly kind: 'unknown tool'; readonly message: string }
  | ToolFailure;

/** The output, or a failure with status 404 when nothing was found. */
export function answered(output: object | Missing): ToolOutcome {
  const provenance = toolProvenance(output);
  if (!isFound(output)) return failed(404, UNKNOWN_ID, provenance ?? {});
  return { kind: 'answered', output, provenance };
}

/** The provenance with the key names of tools, for `_meta` of a result and `data` of an error; null for a source without provenance. */
function toolProvenance(output: object | Missing): ToolProvenance | null {
  const { [COVERAGE_HEADER]: coverage, [AS_OF_HEADER]: asOf } = provenanceHeaders(output);
  if (coverage === undefined) return null;
  return { 'chandler/coverage': coverage, ...(asOf !== undefined && { 'chandler/as-of': asOf }) };
}

/** `argument` is the name of the wrong argument; null when their combination is wrong. */
export function invalid(argument: string | null, message: string): ToolFailure {
  return failed(400, message, argument === null ? {} : { argument }, RPC_CODES.invalidParams);
}

/** `name` is null when it was not a string; `names` are the tools that exist. */
export function unknownTool(name: string | null, names: readonly string[]): ToolOutcome {
  const rule = 'invalid parameters: name must be one of the tools of tools/list';
  if (name === null) return { kind: 'unknown tool', message: toolFailureMessage(400, rule) };
  const message = `${rule}, got ${describeValue(name)}${didYouMean(name.slice(0, 100), names)}`;
  return { kind: 'unknown tool', message: toolFailureMessage(400, message) };
}

/** Turns a rejection by `Access` into a failure of the tool. */
export function rejected(rejection: {
  readonly status: ToolFailureStatus;
  readonly message: string;
  readonly retryAfterSeconds?: number;
}): ToolFailure {
  const { status, message, retryAfterSeconds } = rejection;
  return failed(status, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}

/** `text` is the message of the REST interface for this status. */
export function failed(
  status: ToolFailureStatus,
  text: string,
  data: Omit<ToolFailureData, 'status'> = {},
  code: number = RPC_CODES.toolFailed,
): ToolFailure {
  return { kind: 'failed', code, message: toolFailureMessage(status, text), data: { status, ...data } };
}
