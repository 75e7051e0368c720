/** An export is not possible as requested; nothing was written. The message says what would be right. */
export class ExportRefused extends Error {
  override readonly name: string = 'ExportRefused';
}

/** Another process is writing to the destination. A later attempt may succeed. */
export class ExportBusy extends ExportRefused {
  override readonly name = 'ExportBusy';
}

/** An import is not possible as requested; nothing was stored. The message says what would be right. */
export class ImportRefused extends Error {
  override readonly name = 'ImportRefused';
}
