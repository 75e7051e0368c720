/** The steps that many endpoints share: parse a parameter or answer 400, look a record up or answer 404. */
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { quotes as quotesParameter } from '../../contract/interface/endpoint-parameters.ts';
import type { Parsed } from '../../contract/interface/parameters.ts';
import { answerJson, refuse, refuseId } from '../http/answer.ts';
import { type Answer, idOf, impossibleId, queryOf, type RequestInput } from '../http/request-input.ts';

/** Answers 400 when `parse` finds an invalid parameter. */
export function withParsed<T>(
  parse: (c: RequestInput) => Parsed<T>,
  answer: (c: RequestInput, value: T) => Response | Promise<Response>,
): Answer {
  return (c) => {
    const parsed = parse(c);
    return parsed.ok ? answer(c, parsed.value) : refuse(c, 400, parsed.message);
  };
}

/** `withParsed` for the parameter `quotes`. */
export function withQuotes(
  answer: (c: RequestInput, quotes: readonly string[]) => Response | Promise<Response>,
): Answer {
  return withParsed((c) => quotesParameter.parse(queryOf(c).get('quotes')), answer);
}

/** Answers with the record whose id is in the path, as `view` shows it, or with `id not found`. */
export function recordById<T extends object>(
  source: { readonly hasProvenance?: true },
  parameter: string,
  read: (id: string) => Promise<T | Missing>,
  view: (c: RequestInput, record: T) => object = (_, record) => record,
): Answer {
  return async (c) => {
    const id = idOf(c, parameter);
    const record = id === null ? impossibleId(source) : await read(id);
    return isFound(record) ? answerJson(c, record, { visible: view(c, record) }) : refuseId(c, record);
  };
}
