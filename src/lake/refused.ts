/** What was asked of an export cannot be; nothing was written. The message says what would be right. */
export class ExportRefused extends Error {
  override readonly name = 'ExportRefused';
}
