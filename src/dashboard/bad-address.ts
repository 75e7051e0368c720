/** The address of a page is wrong. The message names the field, its value, and what would be right. */
export class BadAddress extends Error {}
