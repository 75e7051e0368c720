/** The error of a file that cannot be read in its expected format. */

/** The message completes a sentence that begins with the name of the file. */
export class NotReadable extends Error {
  override readonly name = 'NotReadable';
}

/** Wraps what a library throws about a damaged file, because it is meant for programmers. Errors of the system are thrown unchanged. */
export async function readableAs<T>(what: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const isOfSystem = (error as NodeJS.ErrnoException).syscall !== undefined;
    if (!(error instanceof Error) || error instanceof NotReadable || isOfSystem) throw error;
    throw new NotReadable(`is not a readable ${what} file (${error.message})`, { cause: error });
  }
}
