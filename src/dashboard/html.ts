import type { HtmlEscapedString } from 'hono/utils/html';

/** A piece of HTML. Texts in it are escaped. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;
