/** What was asked of an export cannot be; nothing was written. The message says what would be right. */
export class ExportRefused extends Error {
  override readonly name: string = 'ExportRefused';
}

/** Another process is writing there: later it may be right. */
export class ExportBusy extends ExportRefused {
  override readonly name = 'ExportBusy';
}

/** What was asked of an import cannot be; nothing was stored. The message says what would be right. */
export class ImportRefused extends Error {
  override readonly name = 'ImportRefused';
}
